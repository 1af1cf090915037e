// Powers by constants that are products, roots and quotients: what pow is, at the edges of every dtype.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/graph/build.h"
#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"
#include "tests/numerics/edge_values.h"

namespace tenon::test {
namespace {

using ir::ValueId;

class Powers : public ::testing::TestWithParam<std::tuple<std::string, DType>> {
 protected:
  void SetUp() override { require(std::get<0>(GetParam())); }
};

TEST_P(Powers, ByConstantsAtTheEdges) {
  const auto& [target, dtype] = GetParam();
  if (target == "cuda_on_host" && dtype != DType::f32 && dtype != DType::i32) return;  // compiles for seconds
  ir::Graph graph;
  std::vector<ir::HostArray> data;
  const auto input = [&](const std::string& name, const ir::HostArray& array) {
    data.push_back(array);
    return ir::append_input(graph, name, array.dtype, {Dim(array.shape[0])});
  };
  const ValueId edges = input("edges", edge_values(dtype)), patterns = input("patterns", bit_patterns(dtype));
  int number = 0;
  for (const double exponent : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 16.0}) {
    const bool whole = exponent == std::rint(exponent) && exponent >= 0;
    if (!is_real(dtype) && !whole) continue;
    const ir::Scalar literal = is_real(dtype) ? ir::Scalar(exponent) : ir::Scalar(static_cast<std::int64_t>(exponent));
    for (ValueId x : {edges, patterns})
      ir::append_output(graph, ir::append_one(graph, ir::Op::pow, {x, ir::append_literal(graph, literal, dtype)}),
                        fmt::format("y{}", number++));
  }
  if (target != "cuda_on_host") return expect_right_on(graph, target, data);
  for (const ir::Comparison& output :
       ir::compare_with_interpreter(graph, data, GuardedProgram(graph, target, true)(data)))
    EXPECT_TRUE(is_right(output));
}

INSTANTIATE_TEST_SUITE_P(
    On, Powers,
    ::testing::Combine(::testing::Values("cpu", "cuda", "cuda_on_host"),
                       ::testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                                         DType::i64, DType::i32, DType::i8, DType::u8)),
    [](const auto& each) { return fmt::format("{}_{}", std::get<0>(each.param), name_of(std::get<1>(each.param))); });

// The zeros' signs, which a comparison by value does not see.
TEST(PowersOfZero, KeepTheSignOfPow) {
  const ir::Graph graph = ir::parse(R"(graph zero(x: f32[2]) {
    a = reciprocal(pow(x, 0.5))
    b = reciprocal(pow(x, 1.5))
    c = reciprocal(pow(x, 2.0))
    d = reciprocal(pow(x, 3.0))
    e = pow(x, -1.0)
    f = pow(x, -0.5)
    return a, b, c, d, e, f
  })");
  std::vector<ir::HostArray> inputs = data_for(graph, {});
  ir::set_real(inputs[0], 0, 0.0);
  ir::set_real(inputs[0], 1, -0.0);
  expect_right_on(graph, "cpu", inputs);
  const auto outputs = GuardedProgram(graph, "cpu", true)(inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(ir::get_real(outputs[i], 1), (i == 3 || i == 4 ? -1 : 1) * std::numeric_limits<double>::infinity()) << i;
}

}  // namespace
}  // namespace tenon::test
