// Rows of which each is stored while the next is read: the same bytes as stored at once, and where it is done.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/cpu/kernels.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::test {
namespace {

// Small as the tensors are, they are worth sharing: all in one kernel.
ir::Plan plan_of(const ir::Graph& graph) {
  ir::PlanOptions options;
  options.cost.bandwidth_gb_s = 1e-3;
  return ir::make_plan(graph, options);
}

codegen::Kernel kernel_of(const ir::Plan& plan, const RunOptions& options) {
  EXPECT_EQ(plan.groups.size(), 1U) << print(plan);
  return test::scheduled_kernel(plan, 0, codegen::specialize(plan, options.bindings), test_target(options));
}

codegen::ReduceSchedule& schedule_of(codegen::Kernel& kernel) {
  return std::get<codegen::ReduceSchedule>(kernel.schedule);
}

bool stores_late(const std::string& text, const RunOptions& options = {.l3_bytes = 1}) {
  codegen::Kernel kernel = kernel_of(plan_of(ir::parse(text)), options);
  return schedule_of(kernel).late_stores;
}

ir::HostArray random_array(const ir::Type& type, const Bindings& bindings) {
  std::mt19937 random(7);
  std::vector<std::int64_t> shape;
  for (const Dim& extent : type.shape) shape.push_back(extent.evaluate(bindings));
  ir::HostArray array = ir::make_array(type.dtype, shape);
  for (std::int64_t i = 0; i < ir::element_count(array); ++i) {
    if (is_real(type.dtype)) {
      ir::set_real(array, i, std::normal_distribution<double>(0, 2)(random));
    } else {
      ir::set_integer(array, i, static_cast<std::int64_t>(random() % 4));
    }
  }
  return array;
}

// Expects the graph's one kernel to give the same bytes when it stores late, which are what the interpreter says.
void expect_the_same(const std::string& text, const RunOptions& given) {
  RunOptions options = given;
  options.keep_schedule = true;
  options.l3_bytes = 1;
  const ir::Graph graph = ir::parse(text);
  const ir::Plan plan = plan_of(graph);
  codegen::Kernel kernel = kernel_of(plan, options);
  schedule_of(kernel).team.mapping = codegen::RowMapping::thread;  // short rows as well
  schedule_of(kernel).grain = 2;
  schedule_of(kernel).late_stores = true;
  std::vector<ir::HostArray> inputs, of_kernel;
  for (const ir::ValueId input : plan.graph.inputs)
    inputs.push_back(random_array(plan.graph.type(input), options.bindings));
  for (const ir::ValueId input : plan.groups[0].inputs) {
    const auto at = std::find(plan.graph.inputs.begin(), plan.graph.inputs.end(), input) - plan.graph.inputs.begin();
    of_kernel.push_back(inputs.at(static_cast<std::size_t>(at)));
  }
  const std::vector<ir::HostArray> late = run(kernel, of_kernel, options);
  schedule_of(kernel).late_stores = false;
  const std::vector<ir::HostArray> at_once = run(kernel, of_kernel, options);
  std::vector<ir::HostArray> outputs;
  for (std::size_t i = 0; i < late.size(); ++i) EXPECT_EQ(late[i].bytes, at_once[i].bytes) << i << " of\n" << text;
  for (const ir::ValueId output : plan.graph.outputs) {
    const auto& of_group = plan.groups[0].outputs;
    outputs.push_back(
        late.at(static_cast<std::size_t>(std::find(of_group.begin(), of_group.end(), output) - of_group.begin())));
  }
  for (const ir::Comparison& one : ir::compare_with_interpreter(graph, inputs, outputs, options.bindings))
    EXPECT_TRUE(one.equal) << text;
}

// Rows shorter than a turn, of whole turns, and with something left; vectors of two widths; results that are aligned to
// a line, only to an element, or to nothing that could go around the caches. 7 rows and 2.
void expect_the_same_in_every_size(const std::string& text) {
  for (const char* dtype : {"f32", "bf16"})
    for (const int n : {2, 63, 64, 130, 256, 1000}) {
      const int rows = n == 130 ? 2 : 7;
      const std::string sized =
          fmt::format(fmt::runtime(text), fmt::arg("t", dtype), fmt::arg("m", rows), fmt::arg("n", n));
      for (const int vector_bytes : {0, 32})
        for (const std::size_t misalign : {0, 4}) {
          const RunOptions options{.vector_bytes = vector_bytes, .threads = n == 256 ? 2 : 1, .misalign = misalign};
          expect_the_same(sized, options);
        }
    }
}

// Its exponentials are kept, and overwritten by those of the next row as that one is read.
TEST(LateStores, Softmax) { expect_the_same_in_every_size("graph g(x: {t}[{m}, {n}]) {{ y = softmax(x); return y }}"); }

// Nothing is kept: the row is read again while the next is, with what all rows share.
TEST(LateStores, LayerNorm) {
  expect_the_same_in_every_size(
      "graph g(x: {t}[{m}, {n}], w: {t}[{n}], b: {t}[{n}]) {{ y = layer_norm(x, w, b); return y }}");
}

// One sweep ahead of the stores, two results of different widths, and one element of each row.
TEST(LateStores, OneSweepAndTwoResults) {
  expect_the_same_in_every_size(
      "graph g(x: {t}[{m}, {n}]) {{ s = sum(x, axis=1, keepdims=true); y = mul(x, s); z = cast(add(x, s), dtype=f32)"
      "; return y, z, s }}");
}

// Exponentials that the first of two sweeps keeps; and a factor of each row, which is another for the row before.
TEST(LateStores, WhatTheFirstSweepKeeps) {
  expect_the_same_in_every_size(
      "graph g(x: {t}[{m}, {n}], f: f32[{m}, 1]) {{ e = exp(mul(cast(x, dtype=f32), 0.1)); "
      "s = sum(e, axis=1, keepdims=true); v = max(abs(sub(e, s)), axis=1, keepdims=true); "
      "y = mul(mul(e, v), f); return y }}");
}

// Four sweeps: shares of a third.
TEST(LateStores, ThreeSweepsAhead) {
  expect_the_same_in_every_size(
      "graph g(x: {t}[{m}, {n}]) {{ a = max(x, axis=1, keepdims=true); b = min(sub(x, a), axis=1, keepdims=true); "
      "c = max(mul(x, b), axis=1, keepdims=true); y = add(x, c); return y }}");
}

// Rows of several axes, whose number is taken apart, with a factor that is looked up: there is none for a row ahead of
// the first or behind the last.
TEST(LateStores, RowsWithAFactorThatIsLookedUp) {
  expect_the_same(
      "graph g(x: f32[2, 5, 300], t: f32[4], i: i32[2, 5]) { f = expand_dims(take(t, i, axis=0), axis=2); "
      "y = mul(softmax(x), f); return y }",
      {});
}

TEST(LateStores, SizesKnownWhenItRuns) {
  for (const std::int64_t n : {0, 1, 100, 640})
    expect_the_same("graph g(x: f32[m, n]) { y = log_softmax(x); return y }", {.bindings = {{"m", 5}, {"n", n}}});
}

// Where a row's elements come once all is known, memory has the time.
TEST(LateStores, WhereItIsDone) {
  EXPECT_TRUE(stores_late("graph g(x: f32[64, 4096]) { y = softmax(x); return y }"));
  // Nothing goes around the caches.
  EXPECT_FALSE(stores_late("graph g(x: f32[64, 4096]) { y = softmax(x); return y }", {.l3_bytes = 64 << 20}));
  // A core's own cache does not hold two rows and what is kept of a third.
  EXPECT_FALSE(stores_late("graph g(x: f32[8, 4000000]) { y = softmax(x); return y }"));
  // What is not kept has to be read again, which the first level must hold.
  for (const int n : {512, 16384})
    EXPECT_EQ(
        stores_late(fmt::format("graph g(x: bf16[64, {0}], w: bf16[{0}], b: bf16[{0}]) {{ y = layer_norm(x, w, b);"
                                " return y }}",
                                n)),
        n == 512);
  // Memory has no time to spare where f32 is normed.
  EXPECT_FALSE(stores_late("graph g(x: f32[64, 512], w: f32[512], b: f32[512]) { y = layer_norm(x, w, b); return y }"));
  // Elements that are stored as the row is read.
  EXPECT_FALSE(
      stores_late("graph g(x: f32[64, 4096]) { e = exp(x); y = div(e, sum(e, axis=1, keepdims=true)); return e, y }"));
  // Columns.
  EXPECT_FALSE(stores_late("graph g(x: f32[4096, 64]) { y = softmax(x, axis=0); return y }"));
}

}  // namespace
}  // namespace tenon::test
