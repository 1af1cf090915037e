// Attention over a table of cases in which every two features meet: dtype, lengths, head sizes, grouping, masks, bias,
// soft-cap, log-sum-exp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

struct Case {
  const char* dtype;
  int queries, keys, depth, width, heads, kv_heads;
  const char* options;  // of the call
  const char* bias;     // its shape; null: none
};

const Case kCases[] = {
    {"f32", 1, 1, 1, 1, 1, 1, "", nullptr},
    {"f32", 113, 203, 16, 16, 2, 2, "causal=true", nullptr},
    {"f32", 64, 64, 64, 64, 2, 1, "window=17, causal=true", "64, 64"},
    {"f32", 1, 77, 128, 64, 4, 2, "softcap=20.0", nullptr},
    {"f32", 128, 129, 5, 7, 2, 2, "window=40", "2, 1, 129"},
    {"f16", 64, 64, 64, 64, 4, 4, "causal=true", nullptr},
    {"f16", 113, 203, 40, 80, 4, 2, "softcap=30.0, causal=true", "113, 203"},
    {"f16", 239, 1, 80, 16, 2, 1, "", "239, 1"},
    {"f16", 128, 129, 256, 256, 2, 2, "window=64, causal=true", nullptr},
    {"f16", 1, 77, 64, 64, 8, 1, "causal=true, scale=0.3", "4, 8, 1, 77"},
    {"bf16", 128, 129, 128, 128, 2, 2, "causal=true", nullptr},
    {"bf16", 1, 77, 16, 40, 4, 1, "window=5", nullptr},
    {"bf16", 239, 1, 40, 5, 2, 2, "causal=true, softcap=5.0", nullptr},
    {"bf16", 113, 203, 256, 128, 2, 1, "scale=0.02", "1, 203"},
    {"bf16", 64, 64, 80, 80, 3, 3, "window=1", "3, 1, 1"},
    {"f64", 64, 64, 5, 16, 2, 1, "causal=true", nullptr},
    {"f64", 113, 203, 64, 40, 2, 2, "softcap=50.0, window=100", "113, 203"},
    {"f16", 33, 20, 64, 64, 2, 2, "causal=true", nullptr},  // rows that see no key
    {"f32", 5, 0, 8, 8, 2, 1, "", nullptr},                 // no keys at all
    {"bf16", 0, 9, 8, 8, 2, 1, "", nullptr},                // no queries
};

std::string text_of(const Case& c, bool with_lse) {
  const std::string shape = fmt::format("{}[{}, {{}}, {{}}, {{}}]", c.dtype, c.queries > 128 ? 1 : 4);
  const auto type = [&](int heads, int length, int size) {
    return fmt::format(fmt::runtime(shape), heads, length, size);
  };
  std::string text = fmt::format("graph attend(q: {}, k: {}, v: {}", type(c.heads, c.queries, c.depth),
                                 type(c.kv_heads, c.keys, c.depth), type(c.kv_heads, c.keys, c.width));
  if (c.bias != nullptr) text += fmt::format(", bias: {}[{}]", c.dtype, c.bias);
  text += fmt::format(") {{\n  y{} = attention(q, k, v{}{}{}{})\n  return y{}\n}}\n", with_lse ? ", l" : "",
                      c.bias != nullptr ? ", bias" : "", *c.options ? ", " : "", c.options,
                      with_lse ? ", lse=true" : "", with_lse ? ", l" : "");
  return text;
}

class Attention : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override { require(std::get<0>(GetParam())); }
};

TEST_P(Attention, IsTheInterpreters) {
  const auto& [target, at] = GetParam();
  expect_right(ir::parse(text_of(kCases[at], at % 2 == 1)), target);
}
INSTANTIATE_TEST_SUITE_P(On, Attention,
                         ::testing::Combine(::testing::ValuesIn(all_targets()),
                                            ::testing::Range(0, static_cast<int>(std::size(kCases)))),
                         [](const auto& each) {
                           const Case& c = kCases[std::get<1>(each.param)];
                           return fmt::format("{}_{}_{}_{}x{}_{}", std::get<0>(each.param), std::get<1>(each.param),
                                              c.dtype, c.queries, c.keys, c.depth);
                         });

class AttentionOf : public OnTarget {};

TEST_P(AttentionOf, HeadsThatLieInsideRows) {
  expect_right(ir::parse(R"(graph packed(qkv: bf16[batch, seq, 3, 4, 16]) {
    q, k, v = split(qkv, sections=[1, 1, 1], axis=2)
    y = attention(transpose(squeeze(q, axis=2), perm=[0, 2, 1, 3]), transpose(squeeze(k, axis=2), perm=[0, 2, 1, 3]),
                  transpose(squeeze(v, axis=2), perm=[0, 2, 1, 3]), causal=true)
    merged = reshape(transpose(y, perm=[0, 2, 1, 3]), shape=[batch, seq, 64])
    return merged
  })"),
               GetParam(),
               {{{"batch", 2}, {"seq", 37}},
                {{"batch", 1}, {"seq", 1}},
                {{"batch", 3}, {"seq", 64}},
                {{"batch", 0}, {"seq", 8}}});
}

TEST_P(AttentionOf, ScoresThroughAnyFunction) {
  expect_right(ir::parse(R"(graph by_hand(q: f32[2, 3, 45, 24], k: f32[2, 3, 70, 24], v: f32[2, 3, 70, 20],
                                          slopes: f32[3, 1, 1], lengths: i32[2, 1, 1, 1]) {
    scores = mul(matmul(q, transpose(k, perm=[0, 1, 3, 2])), 0.2)
    i = iota(shape=[45, 70], axis=0, dtype=i32)
    j = iota(shape=[45, 70], axis=1, dtype=i32)
    bent = mul(tanh(mul(scores, 0.1)), 10)
    biased = add(bent, mul(slopes, cast(abs(sub(j, i)), dtype=f32)))
    seen = less(j, add(mul(abs(lengths), 3), 5))
    y = matmul(softmax(where(seen, biased, -inf)), v)
    return y
  })"),
               GetParam());
}
TENON_ON_EACH_TARGET(AttentionOf);

// Keys are neighbours in the norm's factors, so that values are made several at a time: of f64 and of the keys' axis.
class AttentionToComputedValues : public OnTarget {};
TEST_P(AttentionToComputedValues, AlongTheKeys) {
  const ir::Graph graph = ir::parse(R"(graph computed(q: f64[34, 16], k: f64[34, 16], v: f64[34, 16]) {
    y = attention(q, k, rms_norm(v))
    return y
  })");
  if (GetParam() != "cuda_on_host") return expect_right(graph, GetParam());
  const std::vector<ir::HostArray> inputs = data_for(graph, {});
  for (const ir::Comparison& output :
       ir::compare_with_interpreter(graph, inputs, GuardedProgram(graph, GetParam(), true)(inputs)))
    EXPECT_TRUE(is_right(output));
}
INSTANTIATE_TEST_SUITE_P(On, AttentionToComputedValues, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test
