// matmul in double: batches broadcast, rows shared out over threads, each product blocked for the cache.
#include <algorithm>
#include <cmath>
#include <thread>

#include "ir/graph/check.h"
#include "ir/interpret/interpreter.h"
#include "ir/ops/contraction.h"
#include "ir/ops/formats.h"

namespace tenon::ir {
namespace {

// 1-D operands as matrices, batches apart: C[batch, m, n] = A[batch, m, k] B[batch, k, n].
struct Product {
  std::int64_t m, n, k;
  Extents batch;
  Strides a, b;  // offsets of each batch's matrix
};

Product product_of(const Extents& a, const Extents& b) {
  Product p;
  p.m = a.size() == 1 ? 1 : a[a.size() - 2];
  p.k = a.back();
  p.n = b.size() == 1 ? 1 : b.back();
  Extents batch_a(a.begin(), a.end() - (a.size() == 1 ? 1 : 2)), batch_b(b.begin(), b.end() - (b.size() == 1 ? 1 : 2));
  p.batch.assign(std::max(batch_a.size(), batch_b.size()), 1);
  for (const Extents& batch : {batch_a, batch_b})
    for (std::size_t i = 0; i < batch.size(); ++i) {
      std::int64_t& extent = p.batch[p.batch.size() - batch.size() + i];
      if (extent == 1) extent = batch[i];
    }
  p.a = broadcast_strides(batch_a, p.batch);
  p.b = broadcast_strides(batch_b, p.batch);
  for (std::int64_t& stride : p.a.of) stride *= p.m * p.k;
  for (std::int64_t& stride : p.b.of) stride *= p.k * p.n;
  return p;
}

constexpr std::int64_t kRows = 4, kColumns = 8, kDepth = 256, kPanels = 64;

// acc[4][8] += A's four rows times a packed panel of B (depth x 8).
[[gnu::always_inline]] inline void tile(const double* a, std::int64_t a_stride, const double* panel, std::int64_t depth,
                                        double* acc) {
  using Four = double __attribute__((vector_size(32)));
  Four sum[kRows][2];
  __builtin_memcpy(sum, acc, sizeof sum);
  for (std::int64_t p = 0; p < depth; ++p, panel += kColumns) {
    Four b[2];
    __builtin_memcpy(b, panel, sizeof b);
    for (int r = 0; r < kRows; ++r) {
      const double x = a[r * a_stride + p];
      sum[r][0] += x * b[0];
      sum[r][1] += x * b[1];
    }
  }
  __builtin_memcpy(acc, sum, sizeof sum);
}

using Tile = void (*)(const double*, std::int64_t, const double*, std::int64_t, double*);

void tile_baseline(const double* a, std::int64_t a_stride, const double* panel, std::int64_t depth, double* acc) {
  tile(a, a_stride, panel, depth, acc);
}
#ifdef __x86_64__
// The same multiplications and additions four at a time; no fma, so that every host gets the same bits.
[[gnu::target("avx2")]] void tile_avx2(const double* a, std::int64_t a_stride, const double* panel, std::int64_t depth,
                                       double* acc) {
  tile(a, a_stride, panel, depth, acc);
}
Tile best_tile() { return __builtin_cpu_supports("avx2") ? tile_avx2 : tile_baseline; }
#else
Tile best_tile() { return tile_baseline; }
#endif

// B[depth, columns] at row stride n, as panels of 8 columns, the last filled up with zeros.
void pack(const double* b, std::int64_t n, std::int64_t depth, std::int64_t columns, std::vector<double>& packed) {
  double* to = packed.data();
  for (std::int64_t j = 0; j < columns; j += kColumns)
    for (std::int64_t p = 0; p < depth; ++p)
      for (std::int64_t c = 0; c < kColumns; ++c) *to++ = j + c < columns ? b[p * n + j + c] : 0;
}

// Four rows (fewer at the end) of one block of C += A B.
void multiply_rows(Tile kernel, const double* a, std::int64_t k, std::int64_t rows, std::int64_t depth,
                   const std::vector<double>& packed, std::int64_t columns, double* c, std::int64_t n) {
  double padded[kRows * kDepth];
  if (rows < kRows) {
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t p = 0; p < depth; ++p) padded[r * kDepth + p] = r < rows ? a[r * k + p] : 0;
    a = padded;
    k = kDepth;
  }
  for (std::int64_t j = 0; j < columns; j += kColumns) {
    double acc[kRows * kColumns] = {};
    const std::int64_t width = std::min(kColumns, columns - j);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(c + r * n + j, width, acc + r * kColumns);
    kernel(a, k, packed.data() + j * depth, depth, acc);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(acc + r * kColumns, width, c + r * n + j);
  }
}

// C[rows, n] = A[rows, k] B[k, n].
void multiply(const double* a, const double* b, double* c, std::int64_t rows, const Product& p) {
  static const Tile kernel = best_tile();
  const std::int64_t width = kPanels * kColumns;
  std::vector<double> packed(
      static_cast<std::size_t>(kDepth * std::min(width, (p.n + kColumns - 1) / kColumns * kColumns)));
  for (std::int64_t depth = 0; depth < p.k; depth += kDepth)
    for (std::int64_t column = 0; column < p.n; column += width) {
      const std::int64_t deep = std::min(kDepth, p.k - depth), wide = std::min(width, p.n - column);
      pack(b + depth * p.n + column, p.n, deep, wide, packed);
      for (std::int64_t i = 0; i < rows; i += kRows)
        multiply_rows(kernel, a + i * p.k + depth, p.k, std::min(kRows, rows - i), deep, packed, wide,
                      c + i * p.n + column, p.n);
    }
}

struct Task {
  std::int64_t a, b, c, rows;
};

void run(const std::vector<Task>& tasks, const Product& p, const double* a, const double* b, double* c) {
  const auto share = [&](std::size_t first, std::size_t step) {
    for (std::size_t t = first; t < tasks.size(); t += step)
      multiply(a + tasks[t].a, b + tasks[t].b, c + tasks[t].c, tasks[t].rows, p);
  };
  double work = static_cast<double>(p.n) * static_cast<double>(p.k);
  for (std::size_t t = 0; t < tasks.size(); ++t) work += static_cast<double>(tasks[t].rows * p.n * p.k);
  const std::size_t threads =
      work < 1e7 ? 1 : std::min<std::size_t>({16, std::thread::hardware_concurrency(), tasks.size()});
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(share, t, threads);
  share(0, std::max<std::size_t>(threads, 1));
  for (std::thread& thread : others) thread.join();
}

std::vector<Task> tasks_of(const Product& p) {
  constexpr std::int64_t kChunk = 128;
  std::vector<Task> tasks;
  std::int64_t c = 0;
  const std::int64_t run = p.batch.empty() ? 1 : p.batch.back();
  for_each_run(p.batch, std::array{p.a, p.b}, [&](const std::array<std::int64_t, 2>& at) {
    for (std::int64_t j = 0; j < run; ++j, c += p.m * p.n)
      for (std::int64_t i = 0; i < p.m; i += kChunk) {
        const std::int64_t sa = p.batch.empty() ? 0 : p.a.of.back(), sb = p.batch.empty() ? 0 : p.b.of.back();
        tasks.push_back({at[0] + j * sa + i * p.k, at[1] + j * sb, c + i * p.n, std::min(kChunk, p.m - i)});
      }
  });
  return tasks;
}

// ---- disturbance ------------------------------------------------------------------------------------------------

// Operand i, each element off by up to `unit` of itself. `salt` keeps the operands' errors apart.
void disturb_operand(const Step& step, std::size_t i, double unit) {
  Array x = step.operand(i);
  const auto salt = static_cast<std::int64_t>(i) << 40;
  for (std::size_t j = 0; j < x.reals.size(); ++j)
    x.reals[j] += x.reals[j] * unit * step.numerics.noise(salt + static_cast<std::int64_t>(j));
  step.operands[i] = std::make_shared<Array>(std::move(x));
}

// Whether a cast narrows this operand. An attention kernel rounds its weights before it knows their sum, so what a cast
// rounds there has another scale, and its rounding error is as large but not the same (docs/numerics.md).
bool narrowed_by_cast(const Step& step, std::size_t i) {
  const Node* producer = &step.graph.producer(step.node.operands[i]);
  while (kind_of(producer->op) == Kind::view && producer->operands.size() == 1)
    producer = &step.graph.producer(producer->operands[0]);
  return producer->op == Op::cast && is_real(step.graph.type(producer->operands[0]).dtype) &&
         size_of(step.graph.type(producer->operands[0]).dtype) > size_of(step.graph.type(producer->results[0]).dtype);
}

void disturb_operands(const Step& step) {
  const bool tf32 = step.node.attrs.get_or<bool>("tf32", false);
  for (std::size_t i = 0; i < 2; ++i) {
    if (tf32) disturb_operand(step, i, 0x1p-11);
    if (narrowed_by_cast(step, i)) disturb_operand(step, i, unit_roundoff(step.operand(i).dtype));
  }
}

bool is_whole(const Array& x, double& largest) {
  bool whole = true;
  for (const double v : x.reals) {
    whole = whole && v == std::rint(v);
    largest = std::max(largest, std::fabs(v));
  }
  return whole;
}

// The products of whole numbers so small that f32 adds them up exactly in any order need no disturbance.
bool multiplies_exactly(const Step& step, std::int64_t k, double roundoff) {
  double a = 0, b = 0;
  return is_whole(step.operand(0), a) && is_whole(step.operand(1), b) && a * b * static_cast<double>(k) * roundoff <= 1;
}

// By how much of |row| |column| tensor cores may miss a product of f8 operands as they are stored: they cut each sum of
// 32 products to 13 bits, and sums within a block add up such errors.
double error_of_f8(const Step& step, std::int64_t k) {
  const std::int64_t asked = step.node.attrs.get_or<std::int64_t>("block", 0);
  if (!may_multiply_f8(step.operand(0).dtype, step.operand(1).dtype, step.result_dtype(), asked)) return 0;
  constexpr double kCut = 0x1p-13;  // four of them, of which a comparison's factor of 4 allows for
  const std::int64_t terms = std::min(k, std::max(kBlockOfF8, asked));
  return kCut * static_cast<double>(terms) / kBlockOfF8;
}

// sum |a||b| of one result.
double sum_of_magnitudes(const Step& step, const Product& p, const Task& task, std::int64_t i, std::int64_t j) {
  const double* a = step.operand(0).reals.data() + task.a + i * p.k;
  const double* b = step.operand(1).reals.data() + task.b + j;
  double sum = 0;
  for (std::int64_t q = 0; q < p.k; ++q) sum += std::fabs(a[q] * b[q * p.n]);
  return sum;
}

// sum |a||b| <= |row of A| |column of B|, so that the error's bound needs no second product; terms of random sign have
// partial sums near |row| |column| / sqrt(k). Only where that bound leaves the range the sum itself is asked for: a
// row's one great element must not make all of its products overflow on the way.
void disturb(const Step& step, const Product& p, const std::vector<Task>& tasks, Array& result) {
  const Array &a = step.operand(0), &b = step.operand(1);
  const DType compute = compute_type(a.dtype);
  const double of_f8 = error_of_f8(step, p.k);
  const bool exact = multiplies_exactly(step, p.k, std::max(of_f8, unit_roundoff(compute)));
  const double chance = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(p.k, 1)));
  const double largest = real_format(compute).largest;
  std::vector<double> columns(static_cast<std::size_t>(p.n));
  for (const Task& task : tasks) {
    std::fill(columns.begin(), columns.end(), 0.0);
    for (std::int64_t q = 0; q < p.k; ++q)
      for (std::int64_t j = 0; j < p.n; ++j) {
        const double x = b.reals[static_cast<std::size_t>(task.b + q * p.n + j)];
        columns[static_cast<std::size_t>(j)] += x * x;
      }
    for (std::int64_t i = 0; i < task.rows; ++i) {
      double row = 0;
      for (std::int64_t q = 0; q < p.k; ++q) {
        const double x = a.reals[static_cast<std::size_t>(task.a + i * p.k + q)];
        row += x * x;
      }
      for (std::int64_t j = 0; j < p.n; ++j) {
        const std::int64_t at = task.c + i * p.n + j;
        double& c = result.reals[static_cast<std::size_t>(at)];
        double norms = std::sqrt(row * columns[static_cast<std::size_t>(j)]);
        if (norms > largest) {
          const double sum = sum_of_magnitudes(step, p, task, i, j);
          if (sum < norms) norms = sum;  // not where it is NaN
        }
        const double partial = std::max(std::fabs(c), norms * chance);
        double error = Numerics::sum_error(compute, p.k, norms, partial, p.k);
        if (of_f8 > 0) error += of_f8 * norms;  // norms may be infinite
        c = step.numerics.settle_within(result.dtype, c, exact ? 0 : error, at);
      }
    }
  }
}

// An attention kernel never reads the keys that a mask excludes as a block, so 0 times infinity or NaN in the rows of
// `v` may be left out, and so may be what stands opposite the zeros of a triangular factor. Runs of one sign leave all
// of it out, which leaves such elements undecided. What is left may still overflow on the way, so that this comes
// before the disturbance.
void leave_out_zeros(const Step& step, const Product& p, const std::vector<Task>& tasks, Array& result) {
  const Array &a = step.operand(0), &b = step.operand(1);
  const auto finite = [](double x) { return std::isfinite(x); };
  const auto all_finite = [&](const Array& x) { return std::all_of(x.reals.begin(), x.reals.end(), finite); };
  if ((all_finite(a) && all_finite(b)) || step.numerics.noise(-1) < 0) return;
  for (const Task& task : tasks)
    for (std::int64_t i = 0; i < task.rows; ++i)
      for (std::int64_t j = 0; j < p.n; ++j) {
        double& c = result.reals[static_cast<std::size_t>(task.c + i * p.n + j)];
        if (finite(c)) continue;
        c = 0;
        for (std::int64_t q = 0; q < p.k; ++q) {
          const double left = a.reals[static_cast<std::size_t>(task.a + i * p.k + q)];
          const double right = b.reals[static_cast<std::size_t>(task.b + q * p.n + j)];
          if (left != 0 && right != 0) c += left * right;
        }
      }
}

}  // namespace

Array interpret_matmul(const Step& step) {
  if (step.numerics.disturbs()) disturb_operands(step);
  const Array &a = step.operand(0), &b = step.operand(1);
  TENON_CHECK(is_real(a.dtype) && is_real(b.dtype), "matmul of integers");
  Array result(step.result_dtype(), step.result_shape());
  const Product p = product_of(a.shape, b.shape);
  const std::vector<Task> tasks = tasks_of(p);
  run(tasks, p, a.reals.data(), b.reals.data(), result.reals.data());
  if (step.numerics.disturbs()) {
    leave_out_zeros(step, p, tasks, result);
    disturb(step, p, tasks, result);
  } else {
    for (double& c : result.reals) c = step.numerics.keep(result.dtype, c);
  }
  return result;
}

}  // namespace tenon::ir
