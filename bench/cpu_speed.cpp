// The CPU target beside what a machine can do: tanh-GELU of 64 M f32 elements beside a copy of the same bytes on all
// threads, a 1024 x 1024 x 1024 f32 product beside OpenBLAS; on one thread a Jacobi step and a blur beside plain loops,
// and a pad and a slice of [H, W, 3] beside those of [H, 3 W]. The two of a pair take turns in one run, so that both
// see the same machine; each is checked once. Exit code 1 when a share is below its bar.
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

#include "plain_loops.h"
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

tenon::Options one_thread() {
  tenon::Options options = tenon::default_options();
  options.threads = 1;
  return options;
}

// x' of f32 [n, n]: the mean of four neighbours, zero outside.
bool compare_jacobi(double seconds) {
  constexpr std::int64_t kSide = 3000, kCount = kSide * kSide;
  tenon::Graph g("jacobi");
  const tenon::Tensor p = pad(g.input("x", tenon::DType::f32, {kSide, kSide}), {1, 1}, {1, 1});
  const auto at = [&](std::int64_t i, std::int64_t j) { return slice(p, {{i, i + kSide}, {j, j + kSide}}); };
  g.output("y", ((at(0, 1) + at(2, 1)) + (at(1, 0) + at(1, 2))) * 0.25);
  const tenon::Executable run = tenon::compile(g, "cpu", one_thread());
  Floats in(kCount), ours(kCount), theirs(kCount);
  in.randomise();
  const std::vector<tenon::Buffer> inputs = {in.buffer({kSide, kSide})}, outputs = {ours.buffer({kSide, kSide})};
  const Pair pair = take_turns([&] { run.run(inputs, outputs); },
                               [&] { plain::jacobi(in.data.get(), theirs.data.get(), kSide, kSide); }, seconds);
  const bool right = std::memcmp(ours.data.get(), theirs.data.get(), kCount * sizeof(float)) == 0;
  return report("Jacobi step f32, 3000^2", pair, "plain C, one thread", 0.8, right);
}

bool compare_blur(double seconds) {
  constexpr std::int64_t kRows = 2160, kPixels = 3840, kCount = kRows * kPixels * 3;
  tenon::Graph g("blur");
  const tenon::Tensor x = g.input("x", tenon::DType::u8, {kRows, kPixels, 3});
  const tenon::Tensor p = pad(cast(x, tenon::DType::i16), {1, 1, 0}, {1, 1, 0});
  tenon::Tensor sum = slice(p, {{0, kRows}, {0, kPixels}});
  for (int k = 1; k < 9; ++k) sum = sum + slice(p, {{k / 3, k / 3 + kRows}, {k % 3, k % 3 + kPixels}});
  g.output("y", cast(floor_div(sum, 9), tenon::DType::u8));
  const tenon::Executable run = tenon::compile(g, "cpu", one_thread());
  std::vector<std::uint8_t> in(kCount), ours(kCount), theirs(kCount);
  std::minstd_rand bits(7);
  std::generate(in.begin(), in.end(), [&] { return static_cast<std::uint8_t>(bits() >> 8); });
  const std::vector<std::int64_t> shape = {kRows, kPixels, 3};
  const std::vector<tenon::Buffer> inputs = {{in.data(), tenon::DType::u8, shape}},
                                   outputs = {{ours.data(), tenon::DType::u8, shape}};
  const Pair pair = take_turns([&] { run.run(inputs, outputs); },
                               [&] { plain::blur(in.data(), theirs.data(), kRows, kPixels); }, seconds);
  return report("blur u8, 2160 x 3840 x 3", pair, "plain C, one thread", 0.8, ours == theirs);
}

// A view of a picture, and the same of rows of three times the elements.
bool compare_pictures(const std::string& what, double seconds,
                      const std::function<tenon::Tensor(const tenon::Tensor&, std::int64_t)>& view) {
  constexpr std::int64_t kRows = 2160, kPixels = 3840;
  const auto compiled = [&](const std::vector<std::int64_t>& shape, std::int64_t columns) {
    tenon::Graph g("view");
    g.output("y", view(g.input("x", tenon::DType::f32, {shape.begin(), shape.end()}), columns));
    return tenon::compile(g, "cpu", one_thread());
  };
  const std::vector<std::int64_t> picture = {kRows, kPixels, 3}, flat = {kRows, kPixels * 3};
  const tenon::Executable of_picture = compiled(picture, 1), of_flat = compiled(flat, 3);
  constexpr std::size_t kMost = (kRows + 2) * (kPixels + 2) * 3;
  Floats in(kMost), ours(kMost), theirs(kMost);
  in.randomise();
  const auto run = [&](const tenon::Executable& executable, const std::vector<std::int64_t>& shape, Floats& out) {
    const std::vector<tenon::Buffer> inputs = {in.buffer(shape)};
    const std::vector<tenon::Buffer> outputs = {out.buffer(executable.output_shapes({shape})[0])};
    executable.run(inputs, outputs);
  };
  const Pair pair = take_turns([&] { run(of_picture, picture, ours); }, [&] { run(of_flat, flat, theirs); }, seconds);
  const bool right = std::memcmp(ours.data.get(), theirs.data.get(), kMost * sizeof(float)) == 0;
  return report(what + " f32, 2160 x 3840 x 3", pair, "of 2160 x 11520", 0.9, right);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  fmt::print("{} threads\n", std::thread::hardware_concurrency());
  const auto padded = [](const tenon::Tensor& x, std::int64_t columns) {
    return columns == 1 ? pad(x, {1, columns, 0}, {1, columns, 0}) : pad(x, {1, columns}, {1, columns});
  };
  const auto sliced = [](const tenon::Tensor& x, std::int64_t columns) {
    return slice(x, {{1, 2159}, {columns, 3839 * columns}});
  };
  bool met = compare_gelu(seconds);
  met = compare_matmul(seconds) && met;
  met = compare_jacobi(seconds) && met;
  met = compare_blur(seconds) && met;
  met = compare_pictures("pad", seconds, padded) && met;
  met = compare_pictures("slice", seconds, sliced) && met;
  return met ? 0 : 1;
}
