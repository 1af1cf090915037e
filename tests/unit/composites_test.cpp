// What composites compute, by the interpreter, against numbers worked out here.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ir/graph/build.h"
#include "ir/interpret/interpret.h"
#include "ir/passes/passes.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

HostArray array_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  HostArray array = make_array(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_real(dtype)) {
      set_real(array, static_cast<std::int64_t>(i), values[i]);
    } else {
      set_integer(array, static_cast<std::int64_t>(i), static_cast<std::int64_t>(values[i]));
    }
  }
  return array;
}

std::vector<std::vector<double>> run(const std::string& text, const std::vector<HostArray>& inputs) {
  std::vector<std::vector<double>> outputs;
  for (const HostArray& array : interpret(parse(text), inputs)) {
    outputs.emplace_back();
    for (std::int64_t i = 0; i < element_count(array); ++i)
      outputs.back().push_back(is_real(array.dtype) ? get_real(array, i) : static_cast<double>(get_integer(array, i)));
  }
  return outputs;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double relative = 1e-5) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isfinite(expected[i])) {
      EXPECT_NEAR(actual[i], expected[i], relative * std::max(1e-3, std::fabs(expected[i]))) << i;
    } else {
      EXPECT_TRUE(actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])))
          << i << ": " << actual[i];
    }
  }
}

// One-operand call on values of an f32 vector.
std::vector<double> on(const std::string& call, const std::vector<double>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return run("graph g(x: f32[n]) { return " + call + " as y }", {array_of(DType::f32, {n}, values)})[0];
}

const std::vector<double> kValues{-100, -4, -1, -0.125, 0, 0.125, 1, 4, 100};

void expect_function(const std::string& call, double (*f)(double), double relative = 2e-6) {
  std::vector<double> expected;
  for (double x : kValues) expected.push_back(f(x));
  SCOPED_TRACE(call);
  expect_near(on(call, kValues), expected, relative);
}

TEST(Activations, AreTheirFormulas) {
  expect_function("relu(x)", [](double x) { return std::max(x, 0.0); });
  expect_function("leaky_relu(x, negative_slope=0.25)", [](double x) { return x >= 0 ? x : 0.25 * x; });
  expect_function("elu(x, alpha=1.5)", [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); });
  expect_function("sigmoid(x)", [](double x) { return 1 / (1 + std::exp(-x)); });
  expect_function("silu(x)", [](double x) { return x / (1 + std::exp(-x)); });
  expect_function("softplus(x)", [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); });
  expect_function("mish(x)", [](double x) { return x * std::tanh(x > 30 ? x : std::log1p(std::exp(x))); });
  expect_function("gelu(x)", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }, 1e-4);
  expect_function(
      "gelu(x, approximate=\"tanh\")",
      [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, 1e-4);
  expect_function("swiglu(x, 2.0)", [](double x) { return 2 * x / (1 + std::exp(-x)); });
}

TEST(Activations, KeepInfinities) {
  expect_near(on("elu(x)", {-kInf, kInf}), {-1, kInf});
  expect_near(on("softplus(x)", {-kInf, kInf}), {0, kInf});
  expect_near(on("sigmoid(x)", {-kInf, kInf}), {0, 1});
}

TEST(Softmax, IsStableAndGivesZerosForARowOfMinusInfinity) {
  expect_near(on("softmax(x)", {1000, 1000}), {0.5, 0.5});
  expect_near(on("softmax(x)", {0, std::log(3.0), -kInf}), {0.25, 0.75, 0});
  expect_near(on("softmax(x)", {-kInf, -kInf}), {0, 0});
  expect_near(on("log_softmax(x)", {0, std::log(3.0)}), {std::log(0.25), std::log(0.75)});
  expect_near(on("logsumexp(x)", {1000, 1000}), {1000 + std::log(2.0)});
  expect_near(on("logsumexp(x)", {-kInf, -kInf}), {-kInf});
  expect_near(on("logsumexp(x)", {0, kInf}), {kInf});
}

TEST(Statistics, MeanAndVariance) {
  expect_near(on("mean(x)", {1, 2, 6}), {3});
  expect_near(on("var(x)", {1, 2, 6}), {14.0 / 3});
  expect_near(on("var(x, ddof=1)", {1, 2, 6}), {7});
  expect_near(on("mean(x)", {}), {std::nan("")});
  expect_near(on("var(x, ddof=1)", {5}), {std::nan("")});
}

TEST(Norms, LayerNormAndRmsNorm) {
  const HostArray x = array_of(DType::f32, {2, 2}, {1, 3, -2, 2}), w = array_of(DType::f32, {2}, {2, 3}),
                  b = array_of(DType::f32, {2}, {10, 20});
  expect_near(
      run("graph g(x: f32[n, 2], w: f32[2], b: f32[2]) { return layer_norm(x, w, b, eps=0.0) as y }", {x, w, b})[0],
      {8, 23, 8, 23});
  expect_near(run("graph g(x: f32[n, 2], w: f32[2]) { return rms_norm(x, w, eps=3.0) as y }", {x, w})[0],
              {2 / std::sqrt(8.0), 9 / std::sqrt(8.0), -4 / std::sqrt(7.0), 6 / std::sqrt(7.0)});
}

TEST(CrossEntropy, PicksTheTargetsLogit) {
  const HostArray x = array_of(DType::f32, {2, 3}, {0, 0, std::log(2.0), 100, 0, 0}),
                  t = array_of(DType::i64, {2}, {2, 1});
  const std::string head = "graph g(x: f32[n, 3], t: i64[n]) { return cross_entropy(x, t";
  expect_near(run(head + ") as y }", {x, t})[0], {std::log(2.0), 100});
  expect_near(run(head + ", reduction=\"mean\") as y }", {x, t})[0], {(std::log(2.0) + 100) / 2});
  expect_near(run(head + ", reduction=\"sum\") as y }", {x, t})[0], {std::log(2.0) + 100});
}

// ---- attention, against the definition ----------------------------------------------------------------------------

struct Attention {
  int q_heads = 4, k_heads = 2, queries = 3, keys = 5, depth = 4, value_depth = 2;
  bool causal = false;
  int window = -1;
  double softcap = 0;
  std::vector<double> q{}, k{}, v{}, bias{}, output{}, lse{};

  void fill() {
    std::uint32_t state = 1;
    const auto numbers = [&](int count) {
      std::vector<double> list;
      for (int i = 0; i < count; ++i)
        list.push_back(static_cast<int>((state = state * 1664525u + 1013904223u) >> 27) / 16.0 - 1);
      return list;
    };
    q = numbers(q_heads * queries * depth);
    k = numbers(k_heads * keys * depth);
    v = numbers(k_heads * keys * value_depth);
    bias = numbers(q_heads * keys);
  }

  void reference() {
    const int group = q_heads / k_heads;
    for (int h = 0; h < q_heads; ++h)
      for (int i = 0; i < queries; ++i) {
        std::vector<double> weights;
        for (int j = 0; j < keys; ++j) {
          double s = 0;
          for (int d = 0; d < depth; ++d)
            s += q[static_cast<std::size_t>((h * queries + i) * depth + d)] *
                 k[static_cast<std::size_t>((h / group * keys + j) * depth + d)];
          s /= std::sqrt(depth);
          if (softcap > 0) s = softcap * std::tanh(s / softcap);
          s += bias[static_cast<std::size_t>(h * keys + j)];
          const int last = i + keys - queries;
          const bool seen = (!causal || j <= last) && (window < 0 || j >= last - window);
          weights.push_back(seen ? std::exp(s) : 0);
        }
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        lse.push_back(std::log(sum));
        for (int d = 0; d < value_depth; ++d) {
          double y = 0;
          for (int j = 0; j < keys; ++j)
            y += weights[static_cast<std::size_t>(j)] *
                 v[static_cast<std::size_t>((h / group * keys + j) * value_depth + d)];
          output.push_back(sum > 0 ? y / sum : 0);
        }
      }
  }

  std::string text() const {
    return "graph g(q: f32[1, " + std::to_string(q_heads) + ", sq, 4], k: f32[1, " + std::to_string(k_heads) +
           ", sk, 4], v: f32[1, " + std::to_string(k_heads) + ", sk, 2], b: f32[" + std::to_string(q_heads) +
           ", 1, sk]) {\n  o, l = attention(q, k, v, b, causal=" + (causal ? "true" : "false") +
           ", window=" + std::to_string(window) + ", softcap=" + std::to_string(softcap) +
           ", lse=true)\n  return o, l\n}\n";
  }

  void check() {
    fill();
    reference();
    const auto results =
        run(text(),
            {array_of(DType::f32, {1, q_heads, queries, depth}, q), array_of(DType::f32, {1, k_heads, keys, depth}, k),
             array_of(DType::f32, {1, k_heads, keys, value_depth}, v), array_of(DType::f32, {q_heads, 1, keys}, bias)});
    expect_near(results[0], output);
    expect_near(results[1], lse);
  }
};

TEST(AttentionComposite, GroupedQueries) { Attention{}.check(); }
TEST(AttentionComposite, OneKeyHeadForAll) { Attention{.k_heads = 1}.check(); }
TEST(AttentionComposite, AsManyKeyHeads) { Attention{.q_heads = 2}.check(); }
TEST(AttentionComposite, CausalAlignedAtTheEnd) { Attention{.causal = true}.check(); }
TEST(AttentionComposite, CausalWindowAndSoftcap) {
  Attention{.queries = 5, .causal = true, .window = 1, .softcap = 2}.check();
}
TEST(AttentionComposite, WindowAlone) { Attention{.window = 0}.check(); }
TEST(AttentionComposite, RowsThatSeeNothing) { Attention{.queries = 6, .keys = 3, .causal = true}.check(); }

// ---- random -------------------------------------------------------------------------------------------------------

std::vector<double> random(const std::string& call, std::int64_t seed = 42) {
  return run("graph g(seed: i64) { return " + call + " as y }",
             {array_of(DType::i64, {}, {static_cast<double>(seed)})})[0];
}

TEST(Random, UniformNumbersFillTheUnitInterval) {
  for (const char* dtype : {"f32", "f64", "f16", "bf16"}) {
    SCOPED_TRACE(dtype);
    const auto numbers = random("random_uniform(seed, shape=[20000], dtype=" + std::string(dtype) + ")");
    double sum = 0, squares = 0;
    for (double x : numbers) {
      ASSERT_GE(x, 0);
      ASSERT_LT(x, 1);
      sum += x;
      squares += x * x;
    }
    EXPECT_NEAR(sum / 20000, 0.5, 0.01);
    EXPECT_NEAR(squares / 20000, 1.0 / 3, 0.01);
  }
}

TEST(Random, NormalNumbersHaveTheMomentsOfANormal) {
  for (const char* dtype : {"f32", "f64", "f16", "bf16"}) {
    SCOPED_TRACE(dtype);
    const auto numbers = random("random_normal(seed, shape=[20000], dtype=" + std::string(dtype) + ")");
    double sum = 0, squares = 0, fourth = 0;
    for (double x : numbers) {
      ASSERT_TRUE(std::isfinite(x));
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
    }
    EXPECT_NEAR(sum / 20000, 0, 0.03);
    EXPECT_NEAR(squares / 20000, 1, 0.03);
    EXPECT_NEAR(fourth / 20000, 3, 0.2);
  }
}

// Box-Muller in f64 from the same words, as the composite's comment defines it.
TEST(Random, NormalNumbersAreWithinFourUlpOfTheFormula) {
  const auto numbers = random("random_normal(seed, shape=[4096])");
  const auto first = random("random_bits(seed, shape=[4096], word=0)"),
             second = random("random_bits(seed, shape=[4096], word=1)");
  double worst = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double a = static_cast<double>(static_cast<std::uint32_t>(static_cast<std::int32_t>(first[i])) >> 8);
    const double b = static_cast<double>(static_cast<std::uint32_t>(static_cast<std::int32_t>(second[i])) >> 8);
    const double expected = std::sqrt(-2 * std::log((a + 1) * 0x1p-24)) * std::cos(2 * M_PI * (b * 0x1p-24));
    const float rounded = static_cast<float>(std::fabs(expected));
    const double ulp = static_cast<double>(std::nextafterf(rounded, INFINITY)) - static_cast<double>(rounded);
    worst = std::max(worst, std::fabs(numbers[i] - expected) / ulp);
  }
  EXPECT_LE(worst, 4);
}

TEST(Random, DropoutKeepsAndScales) {
  const auto y =
      run("graph g(x: f32[n], seed: i64) { return dropout(x, seed, p=0.25) as y }",
          {array_of(DType::f32, {10000}, std::vector<double>(10000, 3.0)), array_of(DType::i64, {}, {1})})[0];
  int kept = 0;
  for (double value : y) {
    ASSERT_TRUE(value == 0 || value == 4);
    kept += value == 4;
  }
  EXPECT_NEAR(kept, 7500, 200);
}

}  // namespace
}  // namespace tenon::ir
