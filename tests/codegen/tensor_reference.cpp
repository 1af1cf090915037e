#include "tests/codegen/tensor_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ir/ops/formats.h"
#include "ir/ops/random.h"

namespace tenon::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xff};  // a NaN in every real dtype

std::int64_t count_of(const codegen::Operand& operand, const Bindings& bindings) {
  return element_count(operand.shape).evaluate(bindings);
}

std::uint64_t bits_of(DType dtype, double value) {
  return is_real(dtype) ? ir::encode_real(dtype, value) : static_cast<std::uint64_t>(value != 0);
}

double epsilon(DType dtype) { return std::ldexp(1.0, -ir::real_format(dtype).mantissa_bits - 1); }

// Points of a range: both ends, and some between.
std::vector<std::int64_t> samples(std::int64_t extent, int count) {
  std::vector<std::int64_t> points;
  if (extent <= count) {
    for (std::int64_t i = 0; i < extent; ++i) points.push_back(i);
    return points;
  }
  std::mt19937_64 random(static_cast<std::uint64_t>(extent));
  points = {0, 1, extent - 2, extent - 1};
  while (static_cast<int>(points.size()) < count)
    points.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent)));
  return points;
}

struct Worst {
  double excess = 0;
  std::string where;
  void see(double got, double want, double tolerance, const std::string& at) {
    const bool same = (std::isnan(got) && std::isnan(want)) || got == want;
    const double error = same                                        ? 0
                         : std::isfinite(got) && std::isfinite(want) ? std::fabs(got - want) / tolerance
                                                                     : 1e300;
    if (error <= excess) return;
    excess = error;
    where = at + ": got " + std::to_string(got) + ", want " + std::to_string(want);
  }
};

}  // namespace

void check_matmul(const MatmulCase& c, const Bindings& at, const std::vector<Array>& arrays, int points) {
  const std::int64_t batch = c.batch.evaluate(at), m = c.m.evaluate(at), n = c.n.evaluate(at), k = c.k.evaluate(at);
  const Array &a = arrays[0], &b = arrays[1], &out = arrays.back();
  const double sum_error = c.tf32 ? 0x1p-10 : c.out == DType::f64 ? 0x1p-50 : 0x1p-21;
  Worst worst;
  for (std::int64_t l = 0; l < batch; ++l)
    for (std::int64_t i : samples(m, points))
      for (std::int64_t j : samples(n, points)) {
        double sum = 0, magnitude = 1e-30;
        for (std::int64_t d = 0; d < k; ++d) {
          const std::int64_t row = c.a_flipped ? m - 1 - i : i;
          double x = a.at(l * m * k + (c.a_transposed ? d * m + i : row * k + d));
          if (c.prologue) x = std::max(x, 0.0);
          const double y = b.at(l * k * n + (c.b_transposed ? j * k + d : d * n + j));
          sum += x * y;
          magnitude += std::fabs(x * y);
        }
        double tolerance = sum_error * magnitude;
        if (c.epilogue) {
          sum += arrays[2].at(j);
          sum *= std::tanh(sum);
          sum += arrays[3].at((l * m + i) * n + j);
          tolerance = 3 * tolerance + 4 * sum_error * (1 + std::fabs(sum));
        }
        tolerance +=
            1.01 * epsilon(c.out) * std::max(std::fabs(sum), std::ldexp(1.0, ir::real_format(c.out).min_exponent));
        const double got = out.at((l * m + i) * n + j);
        worst.see(got, sum, tolerance, std::to_string(l) + "," + std::to_string(i) + "," + std::to_string(j));
      }
  EXPECT_LE(worst.excess, 1) << c.name << " at " << worst.where;
  const auto unwritten = std::count_if(out.values.begin(), out.values.end(), [](double x) { return std::isnan(x); });
  EXPECT_EQ(unwritten, 0) << c.name;
}

namespace {

bool sees(const AttentionCase& c, const std::vector<Array>& arrays, std::int64_t h, std::int64_t i, std::int64_t j,
          std::int64_t queries, std::int64_t keys) {
  const auto document = [&](std::int64_t at) {
    return std::pair(at / 150, at / 150 % 2 == 1 ? arrays[3].at(at) : 0.0);
  };
  const std::int64_t last = i + keys - queries;
  switch (c.mask) {
    case Mask::none: return true;
    case Mask::causal: return j <= last;
    case Mask::window: return j <= last && j >= last - 128;
    case Mask::loaded: return arrays[3].at(i * keys + j) != 0;
    case Mask::lengths: return static_cast<double>(j) <= 60 * arrays[3].at(h) + 30;
    case Mask::documents: return document(i) == document(j) && j <= i;
    case Mask::prefixes: return static_cast<double>(j) <= 80 * arrays[3].at(i) + static_cast<double>(i / 100 * 50);
  }
  return true;
}

// The random number of an element, in a kernel whose last input is the seed.
std::int32_t drawn(const AttentionCase& c, const std::vector<Array>& arrays, std::int64_t stream,
                   std::int64_t element) {
  const auto seed = static_cast<std::int64_t>(arrays[3].at(0)) + AttentionCase::kSeed;
  return static_cast<std::int32_t>(ir::random_bits(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(stream),
                                                   static_cast<std::uint64_t>(element + *c.draws_from)));
}

}  // namespace

void check_attention(const AttentionCase& c, const Bindings& at, const Kernel& kernel,
                     const std::vector<Array>& arrays) {
  const std::int64_t heads = c.heads.evaluate(at), queries = c.queries.evaluate(at), keys = c.keys.evaluate(at);
  const std::int64_t depth = c.depth.evaluate(at), width = c.width.evaluate(at);
  std::size_t first_output = 0;
  while (!kernel.operands[first_output].written) ++first_output;
  Worst worst, worst_lse;
  const double error = c.dtype == DType::f64 ? 0x1p-45 : c.dtype == DType::f32 ? 0x1p-18 : 2 * epsilon(c.dtype);
  for (std::int64_t h = 0; h < heads; h += std::max<std::int64_t>(1, heads / 3))
    for (std::int64_t i : samples(queries, 40)) {
      const std::int64_t g = h / c.group;
      std::vector<double> scores;
      double top = -kInfinity;
      for (std::int64_t j = 0; j < keys; ++j) {
        double s = 0;
        for (std::int64_t d = 0; d < depth; ++d)
          s += arrays[0].at((h * queries + i) * depth + d) *
               arrays[1].at(g * keys * depth + (c.keys_transposed ? d * keys + j : j * depth + d));
        s *= 0.125;
        if (c.softcap) s = std::tanh(s / 30) * 30;
        if (c.draws_from) s += 0x1p-32 * drawn(c, arrays, AttentionCase::kStreamOfScores, (h * queries + i) * keys + j);
        if (c.bias) s += arrays[3].at((h * queries + i) * keys + j);
        if (c.alibi) s += static_cast<double>(j - i) * 0.0625;
        scores.push_back(sees(c, arrays, h, i, j, queries, keys) ? s : -kInfinity);
        top = std::max(top, scores.back());
      }
      double sum = 0;
      for (double& s : scores) sum += s = std::exp(s - (top == -kInfinity && !c.by_hand ? 0 : top));
      for (std::int64_t e : samples(width, 30)) {
        double mix = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          const bool keeps = !c.dropout     ? true
                             : c.draws_from ? drawn(c, arrays, AttentionCase::kStreamOfWeights,
                                                    (h * queries + i) * keys + j) >= AttentionCase::kLeastKept
                                            : arrays[3].at(i * keys + j) != 0;
          const double kept = !c.dropout ? 1 : keeps ? 1.25 : 0;
          mix += kept * scores[static_cast<std::size_t>(j)] * arrays[2].at((g * keys + j) * width + e);
        }
        const double want = c.by_hand ? mix / sum : mix / (sum == 0 ? 1 : sum);
        worst.see(arrays[first_output].at((h * queries + i) * width + e), keys == 0 && c.by_hand ? 0 : want, error,
                  std::to_string(h) + "," + std::to_string(i) + "," + std::to_string(e));
      }
      if (c.lse)
        worst_lse.see(arrays[first_output + 1].at(h * queries + i), top + std::log(sum), 1e-5 * (1 + std::fabs(top)),
                      std::to_string(h) + "," + std::to_string(i));
    }
  EXPECT_LE(worst.excess, 1) << c.name << " at " << worst.where;
  EXPECT_LE(worst_lse.excess, 1) << c.name << " lse at " << worst_lse.where;
  if (c.by_hand) return;
  const Array& out = arrays[first_output];
  EXPECT_EQ(std::count_if(out.values.begin(), out.values.end(), [](double x) { return std::isnan(x); }), 0) << c.name;
}

std::vector<Array> run(const Kernel& kernel, const codegen::Source& source, const Bindings& bindings,
                       const Launch& launch) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Array> arrays;
  std::vector<Bytes> buffers;
  for (const codegen::Operand& operand : kernel.operands) {
    const auto bytes = static_cast<std::size_t>(size_of(operand.dtype));
    const auto count = static_cast<std::size_t>(count_of(operand, bindings));
    Bytes data(count * bytes + kGuardBytes, kGuard);
    Array array;
    for (std::size_t i = 0; i < count && !operand.written; ++i) {
      const double value =
          is_real(operand.dtype) ? ir::round_to(operand.dtype, uniform(random)) : uniform(random) > 0.3;
      array.values.push_back(value);
      const std::uint64_t bits = bits_of(operand.dtype, value);
      std::memcpy(data.data() + i * bytes, &bits, bytes);
    }
    arrays.push_back(std::move(array));
    buffers.push_back(std::move(data));
  }
  launch(source, buffers, bindings);
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    const codegen::Operand& operand = kernel.operands[i];
    if (!operand.written) continue;
    const auto bytes = static_cast<std::size_t>(size_of(operand.dtype));
    const Bytes& data = buffers[i];
    const auto count = static_cast<std::size_t>(count_of(operand, bindings));
    const auto behind = data.begin() + static_cast<std::ptrdiff_t>(count * bytes);
    EXPECT_TRUE(std::all_of(behind, data.end(), [](std::byte b) { return b == kGuard; }))
        << "wrote behind " << operand.name;
    for (std::size_t at = 0; at < count; ++at) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, data.data() + at * bytes, bytes);
      arrays[i].values.push_back(ir::decode_real(operand.dtype, bits));
    }
  }
  return arrays;
}

}  // namespace tenon::test
