// The CPU target beside what a machine can do: tanh-GELU of 64 M f32 elements beside a copy of the same bytes on all
// threads, a 1024 x 1024 x 1024 f32 product beside OpenBLAS. The two of a pair take turns in one run, so that both see
// the same machine; each is checked once. Exit code 1 when a share is below its bar.
//     tenon_cpu_speed [SECONDS]    per pair; default 3
// OpenBLAS is looked for at run time (Debian: libopenblas0) and its row is skipped without it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "tenon/tenon.h"

namespace {

using Clock = std::chrono::steady_clock;

// Pages that are touched before the first measurement, at the alignment that an executable asks for.
struct Floats {
  explicit Floats(std::size_t n) : count(n), data(static_cast<float*>(std::aligned_alloc(256, n * sizeof(float)))) {
    std::fill_n(data.get(), n, 0.0F);
  }
  void randomise() {
    std::minstd_rand bits(7);
    std::uniform_real_distribution<float> real(-3, 3);
    std::generate_n(data.get(), count, [&] { return real(bits); });
  }
  tenon::Buffer buffer(std::vector<std::int64_t> shape) const { return {data.get(), tenon::DType::f32, shape}; }
  float operator[](std::size_t i) const { return data.get()[i]; }

  struct Free {
    void operator()(float* memory) const { std::free(memory); }  // NOLINT: of aligned_alloc
  };
  std::size_t count;
  std::unique_ptr<float, Free> data;
};

struct Pair {
  double ours = 0, theirs = 0;  ///< medians in milliseconds
  double share() const { return theirs / ours; }
};

double milliseconds_of(const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Pair take_turns(const std::function<void()>& ours, const std::function<void()>& theirs, double seconds) {
  std::vector<double> a, b;
  ours();
  theirs();
  const auto begin = Clock::now();
  while (a.size() < 9 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    a.push_back(milliseconds_of(ours));
    b.push_back(milliseconds_of(theirs));
  }
  return {median(a), median(b)};
}

// One contiguous part for each thread.
void copy_on_all_threads(float* to, const float* from, std::size_t count) {
  const std::size_t parts = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = count * i / parts, end = count * (i + 1) / parts;
    threads.emplace_back([=] { std::memcpy(to + begin, from + begin, (end - begin) * sizeof(float)); });
  }
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

bool report(const std::string& what, const Pair& pair, const std::string& peer, double bar, bool right) {
  const bool met = pair.share() >= bar && right;
  fmt::print("{:<28} {:>9.3f} ms   {:<26} {:>9.3f} ms   share {:.2f}, bar {:.2f}: {}\n", what, pair.ours, peer,
             pair.theirs, pair.share(), bar,
             !right ? "WRONG RESULT"
             : met  ? "met"
                    : "BELOW");
  return met;
}

bool compare_gelu(double seconds) {
  constexpr std::int64_t kCount = 64 << 20;
  tenon::Graph g("gelu");
  const tenon::Tensor x = g.input("x", tenon::DType::f32, {kCount});
  g.output("y", 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))));
  const tenon::Executable run = tenon::compile(g, "cpu");
  Floats in(kCount), out(kCount), copied(kCount);
  in.randomise();
  const std::vector<tenon::Buffer> inputs = {in.buffer({kCount})}, outputs = {out.buffer({kCount})};
  const Pair pair = take_turns([&] { run.run(inputs, outputs); },
                               [&] { copy_on_all_threads(copied.data.get(), in.data.get(), kCount); }, seconds);
  bool right = true;
  for (std::size_t i = 0; i < in.count; i += 997) right = right && std::fabs(out[i] - gelu(in[i])) < 1e-6;
  return report("tanh-GELU f32, 64 M", pair, "copy of the same bytes", 0.8, right);
}

// void cblas_sgemm(order, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);

bool compare_matmul(double seconds) {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  const auto sgemm = library == nullptr ? nullptr : reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  if (sgemm == nullptr) {
    fmt::print("matmul: skipped, no OpenBLAS here (Debian: apt-get install libopenblas0)\n");
    return true;
  }
  constexpr int kSide = 1024, kRowMajor = 101, kAsIs = 111;
  tenon::Graph g("product");
  const tenon::Tensor a = g.input("a", tenon::DType::f32, {kSide, kSide});
  const tenon::Tensor b = g.input("b", tenon::DType::f32, {kSide, kSide});
  g.output("y", matmul(a, b));
  const tenon::Executable run = tenon::compile(g, "cpu");
  Floats left(kSide * kSide), right(kSide * kSide), ours(kSide * kSide), theirs(kSide * kSide);
  left.randomise();
  right.randomise();
  const std::vector<tenon::Buffer> inputs = {left.buffer({kSide, kSide}), right.buffer({kSide, kSide})};
  const std::vector<tenon::Buffer> outputs = {ours.buffer({kSide, kSide})};
  const Pair pair = take_turns([&] { run.run(inputs, outputs); },
                               [&] {
                                 sgemm(kRowMajor, kAsIs, kAsIs, kSide, kSide, kSide, 1, left.data.get(), kSide,
                                       right.data.get(), kSide, 0, theirs.data.get(), kSide);
                               },
                               seconds);
  bool close = true;  // sums of 1024 products of at most 9
  for (std::size_t i = 0; i < ours.count; ++i) close = close && std::fabs(ours[i] - theirs[i]) < 2e-2;
  return report("matmul f32, 1024^3", pair, "OpenBLAS", 0.5, close);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  fmt::print("{} threads\n", std::thread::hardware_concurrency());
  const bool gelu_met = compare_gelu(seconds), matmul_met = compare_matmul(seconds);
  return gelu_met && matmul_met ? 0 : 1;
}
