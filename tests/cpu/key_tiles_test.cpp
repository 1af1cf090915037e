// Tiles of keys on the CPU target: those that a mask hides wholly are in no loop, and what is wholly visible is not
// masked (codegen/emit/llvm/tensor/key_tiles.h). Tiles have 64 keys.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class CpuKeyTiles : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { require(GetParam()); }
};

// softmax(where(visible, q k', -inf)) v, with the numbers of `inputs` that `visible` compares.
std::string masked(const std::string& inputs, const std::string& visible, const char* dtype = "f32", int queries = 300,
                   int keys = 300) {
  return fmt::format(R"(graph g(q: {0}[2, {1}, 16], k: {0}[2, {2}, 16], v: {0}[2, {2}, 24], {3}) {{
    i = iota(shape=[{1}, 1], dtype=i32)
    j = iota(shape=[{2}], dtype=i32)
    {4}
    s = matmul(q, transpose(k, perm=[0, 2, 1]), dtype=f32)
    masked = where(visible, mul(s, 0.25), -inf)
    m = max(masked, axis=-1, keepdims=true)
    w = exp(sub(masked, where(equal(m, -inf), 0.0, m)))
    y = matmul(cast(div(w, sum(w, axis=-1, keepdims=true)), dtype={0}), v)
    return y
  }})",
                     dtype, queries, keys, inputs, visible);
}

// Documents of 1, 2, … times `step` tokens.
ir::HostArray documents(std::int64_t count, std::int64_t step) {
  ir::HostArray array{DType::i32, {count}, std::vector<std::byte>(static_cast<std::size_t>(count) * 4)};
  std::int64_t document = 0, left = step;
  for (std::int64_t i = 0; i < count; ++i, --left) {
    if (left == 0) left = ++document * step + step;
    ir::set_integer(array, i, document);
  }
  return array;
}

void expect_right_with(const std::string& text, const std::vector<ir::HostArray>& numbers, const std::string& target) {
  SCOPED_TRACE(text);
  const ir::Graph graph = ir::parse(text);
  std::vector<ir::HostArray> inputs = data_for(graph, {});
  for (std::size_t i = 0; i < numbers.size(); ++i) inputs[i + 3].bytes = numbers[i].bytes;
  expect_right_on(graph, target, inputs);
}

TEST_P(CpuKeyTiles, Documents) {
  const std::string same = "equal(reshape(document, shape=[300, 1]), document)";
  for (const auto& [dtype, step] : {std::pair("f32", 7), std::pair("bf16", 64), std::pair("f64", 150)}) {
    const std::string document = "document: i32[300]";
    expect_right_with(masked(document, "visible = " + same, dtype), {documents(300, step)}, GetParam());
    expect_right_with(masked(document, "visible = logical_and(less_equal(j, i), " + same + ")", dtype),
                      {documents(300, step)}, GetParam());
    expect_right_with(masked(document, "visible = logical_and(greater(j, sub(i, 40)), " + same + ")", dtype),
                      {documents(300, step)}, GetParam());
  }
}

// `first`, and one more every `step` elements, up to `last`.
ir::HostArray steps(DType dtype, std::int64_t count, std::int64_t step, std::int64_t first, std::int64_t last) {
  ir::HostArray array{dtype, {count}, std::vector<std::byte>(static_cast<std::size_t>(count * size_of(dtype)))};
  for (std::int64_t i = 0; i < count; ++i) ir::set_integer(array, i, std::min(first + i / step, last));
  return array;
}

// Of tiles that are hidden, that are visible wholly, and in part.
TEST_P(CpuKeyTiles, EveryComparisonOfEveryInteger) {
  const std::vector<std::string> equalities = {"equal", "not_equal"};
  const std::vector<std::string> all = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"};
  for (const DType dtype : {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::bool_}) {
    const std::int64_t first = dtype == DType::u8 ? 252 : dtype == DType::bool_ ? 0 : -1;
    const std::int64_t last = dtype == DType::bool_ ? 1 : first + 3;
    for (const std::string& op : dtype == DType::bool_ ? equalities : all)
      expect_right_with(masked(fmt::format("a: {0}[100], b: {0}[200]", name_of(dtype)),
                               fmt::format("visible = {}(reshape(a, shape=[100, 1]), b)", op), "f32", 100, 200),
                        {steps(dtype, 100, 40, first, last), steps(dtype, 200, 50, first, last)}, GetParam());
  }
}

TEST_P(CpuKeyTiles, PaddingPrefixesAndWhatIsJoined) {
  for (const char* visible :
       {"visible = logical_not(padding)", "visible = logical_or(less(j, prefix), less_equal(j, i))",
        "visible = logical_and(padding, less(j, prefix))", "visible = logical_or(real, padding)",
        "visible = logical_not(logical_or(equal(j, prefix), logical_not(real)))"})
    for (const std::int64_t step : {50, 128})
      expect_right_with(masked("padding: bool[300], prefix: i32[300, 1], real: bool[300, 1]", visible),
                        {steps(DType::bool_, 300, step, 0, 1), steps(DType::i32, 300, 1, 30, 200),
                         steps(DType::bool_, 300, 299 - step, 0, 1)},
                        GetParam());
}

// Queries of 5 see all keys, or none; the others see none.
TEST_P(CpuKeyTiles, RowsThatSeeNothing) {
  for (const std::int64_t document : {5, 20})
    expect_right_with(masked("a: i32[300, 1], b: i32[300]", "visible = equal(a, b)"),
                      {steps(DType::i32, 300, 50, 0, 9), steps(DType::i32, 300, 300, document, document)}, GetParam());
}

TEST_P(CpuKeyTiles, ShortAndSymbolicLengths) {
  for (const int queries : {1, 33})
    for (const int keys : {1, 63, 64, 65, 130})
      expect_right(ir::parse(masked(fmt::format("a: i32[{}, 1], b: i32[{}]", queries, keys), "visible = less(a, b)",
                                    "f32", queries, keys)),
                   GetParam());
  expect_right(ir::parse(R"(graph g(q: f32[2, n, 8], k: f32[2, m, 8], v: f32[2, m, 8], a: i32[n, 1], b: i32[m]) {
    s = matmul(q, transpose(k, perm=[0, 2, 1]))
    y = matmul(softmax(where(equal(a, b), s, -inf)), v)
    return y
  })"),
               GetParam(), {{{"n", 5}, {"m", 0}}, {{"n", 40}, {"m", 1}}, {{"n", 70}, {"m", 190}}});
}

// A sum of weights that is added in blocks, over tiles that are not all there.
TEST_P(CpuKeyTiles, LongSums) {
  expect_right(ir::parse(masked("a: i32[3, 1], b: i32[5000]", "visible = less(a, b)", "f32", 3, 5000)), GetParam());
}

// What a hidden tile holds, not even NaN changes a result; what it holds of a tile of which something is visible does.
TEST_P(CpuKeyTiles, HiddenTilesAreNotRead) {
  const ir::Graph graph =
      ir::parse(masked("document: i32[300]", "visible = equal(reshape(document, shape=[300, 1]), document)"));
  std::vector<ir::HostArray> inputs = data_for(graph, {});
  inputs[3] = documents(300, 64);  // 64 tokens, then 128, then the rest
  for (std::int64_t j = 64; j < 192; ++j) ir::set_real(inputs[2], j * 24 + 5, std::numeric_limits<double>::quiet_NaN());
  const std::vector<ir::HostArray> outputs = GuardedProgram(graph, GetParam(), true)(inputs);
  for (std::int64_t i = 0; i < 300; ++i)
    EXPECT_EQ(std::isnan(ir::get_real(outputs[0], i * 24 + 5)), i >= 64 && i < 192) << i;
}

INSTANTIATE_TEST_SUITE_P(On, CpuKeyTiles, ::testing::Values("cpu", "cpu_avx2", "cpu_sse"),
                         [](const auto& each) { return each.param; });

// ---- schedules and text -------------------------------------------------------------------------------------------

struct Emitted {
  std::string schedule, text;
  std::size_t candidates = 0;  // schedules that a tuner tries
};
Emitted emitted(const std::string& visible, bool block_mask = true) {
  codegen::Target target = backend_of("cpu")->target();
  target.may.block_mask = block_mask;
  const ir::Plan plan = ir::make_plan(ir::parse(masked("document: i32[320]", visible, "f32", 320, 320)), {});
  for (const std::vector<int>& set : launched_together(plan))
    for (const codegen::Launch& launch : src::make_launches(plan, set, codegen::unspecialized(plan), target))
      if (launch.members[0].kernel_class == ir::KernelClass::attend)
        return {codegen::print(launch.members[0].schedule), codegen::emit_llvm(launch.members[0], target).text,
                codegen::candidate_schedules(launch.members[0], target).size()};
  ADD_FAILURE() << "no attention in " << visible;
  return {};
}

constexpr const char* kSameDocument = "visible = equal(reshape(document, shape=[320, 1]), document)";

TEST(CpuKeyTilesText, TilesAreTestedWhereAMaskTellsThemApart) {
  require("cpu");
  const auto tests = [](const Emitted& kernel) {
    EXPECT_EQ(kernel.schedule.find(" block_mask") != std::string::npos,
              kernel.text.find("\ntests:") != std::string::npos);
    EXPECT_EQ(kernel.candidates, kernel.schedule.find(" block_mask") != std::string::npos ? 2 : 1);
    return kernel.text.find("\ntests:") != std::string::npos;
  };
  EXPECT_TRUE(tests(emitted(kSameDocument)));
  EXPECT_FALSE(tests(emitted(kSameDocument, false)));
  EXPECT_FALSE(tests(emitted("visible = less_equal(j, i)")));
}

// Scores are computed twice where there is a mask: of tiles that are visible wholly, and of others.
TEST(CpuKeyTilesText, AVisibleTileIsNotMasked) {
  require("cpu");
  for (const char* visible : {kSameDocument, "visible = less_equal(j, i)"}) {
    const std::string text = emitted(visible).text;
    const std::size_t tile = text.find("\ntile:"), open = text.find("\nthen", tile),
                      rest = text.find("\nthen", open + 1);
    ASSERT_NE(rest, std::string::npos) << text;
    const auto masks = [&](std::size_t from) {
      const std::string part = text.substr(from, text.find("\ndone", from) - from);
      EXPECT_NE(part.find("fmul"), std::string::npos) << part;
      return part.find("float 0xFFF0000000000000") != std::string::npos;
    };
    EXPECT_FALSE(masks(open)) << text;
    EXPECT_TRUE(masks(rest)) << text;
  }
}

}  // namespace
}  // namespace tenon::test
