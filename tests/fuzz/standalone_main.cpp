// Drives a fuzz target without libFuzzer: PROGRAM CORPUS SECONDS [SEED]. Runs every file below the folder CORPUS, then
// mutations of them until SECONDS have passed. The seed is printed, and on a crash the input is left in a file whose
// name is printed, so that a finding can be repeated: PROGRAM FILE.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937_64;
namespace fs = std::filesystem;

constexpr std::size_t kMaxSize = 1 << 16;
constexpr unsigned kSecondsPerInput = 20;

// The input being run, for the signal handler: the process is lost when it reads them.
const Bytes* running = nullptr;
char crash_file[64];

extern "C" void on_crash(int signal) {
  const int file = open(crash_file, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (file >= 0 && running != nullptr && write(file, running->data(), running->size()) >= 0) {
    const char* const what = signal == SIGALRM ? "input takes too long, kept in " : "crash, input kept in ";
    for (const char* part : {what, static_cast<const char*>(crash_file), "\n"})
      if (write(STDERR_FILENO, part, std::char_traits<char>::length(part)) < 0) break;
  }
  _exit(1);
}

/// On a stack of its own, so that a finding that overflows the stack is kept as well.
void install_handlers() {
  static char stack[1 << 16];
  const stack_t description{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&description, nullptr);
  struct sigaction action{};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGALRM}) sigaction(signal, &action, nullptr);
}

void run(const Bytes& input) {
  running = &input;
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  alarm(0);
}

Bytes read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<Bytes> read_corpus(const fs::path& path) {
  if (fs::is_regular_file(path)) return {read_file(path)};
  std::vector<fs::path> files;
  if (fs::is_directory(path))
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Bytes> inputs;
  for (const fs::path& file : files) inputs.push_back(read_file(file));
  return inputs;
}

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

/// A range [begin, end) of `bytes`, short ones more often.
std::pair<std::size_t, std::size_t> some_range(const Bytes& bytes, Random& random) {
  const std::size_t begin = below(random, bytes.size() + 1);
  const std::size_t longest = std::min(bytes.size() - begin, std::size_t{1} << below(random, 10));
  return {begin, begin + below(random, longest + 1)};
}

Bytes cut(const Bytes& bytes, Random& random) {
  const auto [begin, end] = some_range(bytes, random);
  return Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end));
}

/// What graph files are made of, so that mutation often yields nearly valid ones.
const std::string& some_token(Random& random) {
  static const std::vector<std::string> tokens = {"graph ",
                                                  "return ",
                                                  "(",
                                                  ")",
                                                  "[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  ",",
                                                  ":",
                                                  "=",
                                                  "\"",
                                                  "#",
                                                  "\n",
                                                  "-1",
                                                  "0",
                                                  "1",
                                                  "1e-5",
                                                  "0x1p3",
                                                  "-inf",
                                                  "nan",
                                                  "true",
                                                  "f32",
                                                  "bf16",
                                                  "i64",
                                                  "bool",
                                                  "rows",
                                                  "add(",
                                                  "axis=",
                                                  "->",
                                                  "null",
                                                  "[[[[[[[[[",
                                                  "((((((((((",
                                                  "\\u0000",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551616",
                                                  "4294967296"};
  return tokens[below(random, tokens.size())];
}

void insert(Bytes& bytes, const Bytes& piece, Random& random) {
  const auto place = static_cast<std::ptrdiff_t>(below(random, bytes.size() + 1));
  bytes.insert(bytes.begin() + place, piece.begin(), piece.end());
}

void mutate_once(Bytes& bytes, const std::vector<Bytes>& corpus, Random& random) {
  switch (random() % 7) {
    case 0:  // flip a bit
      if (!bytes.empty()) bytes[below(random, bytes.size())] ^= static_cast<std::uint8_t>(1U << below(random, 8));
      break;
    case 1:  // set a byte
      if (!bytes.empty()) bytes[below(random, bytes.size())] = static_cast<std::uint8_t>(random());
      break;
    case 2: {  // drop a range
      const auto [begin, end] = some_range(bytes, random);
      bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end));
      break;
    }
    case 3: {  // repeat a range, sometimes very often
      const Bytes piece = cut(bytes, random);
      const std::size_t times = random() % 16 == 0 ? 1000 : 1;
      for (std::size_t i = 0; i < times && bytes.size() < kMaxSize; ++i) insert(bytes, piece, random);
      break;
    }
    case 4:  // splice in a range of another input
      insert(bytes, cut(corpus[below(random, corpus.size())], random), random);
      break;
    default: {  // a token, the likeliest to get past the first error
      const std::string& token = some_token(random);
      insert(bytes, Bytes(token.begin(), token.end()), random);
    }
  }
}

Bytes mutate(const std::vector<Bytes>& corpus, Random& random) {
  Bytes bytes = corpus[below(random, corpus.size())];
  for (std::size_t count = 1 + below(random, 6); count > 0; --count) mutate_once(bytes, corpus, random);
  bytes.resize(std::min(bytes.size(), kMaxSize));
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [SECONDS [SEED]]\n", argv[0]);
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0;
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : std::random_device{}();
  std::snprintf(crash_file, sizeof crash_file, "fuzz-finding-%llu", static_cast<unsigned long long>(seed));
  install_handlers();

  std::vector<Bytes> corpus = read_corpus(argv[1]);
  for (const Bytes& input : corpus) run(input);
  std::printf("%zu inputs from %s, then mutations for %g s with seed %llu\n", corpus.size(), argv[1], seconds,
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);

  if (corpus.empty()) corpus.emplace_back();
  Random random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::size_t count = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) run(mutate(corpus, random));
  std::printf("%zu mutations without a finding\n", count);
  return 0;
}
