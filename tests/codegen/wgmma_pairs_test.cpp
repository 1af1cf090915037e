// Two products of the same rows in one kernel (a gate and what it scales): what the kernels of such plans compute on
// the host, and that they compile without a spill or a remark.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/differential.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using codegen::ContractSchedule;
using codegen::Kernel;

// The schedule of each kernel that multiplies a pair, in order.
std::vector<ContractSchedule> pairs_of(const ir::Graph& graph, const Bindings& bindings) {
  const auto backend = backend_of("hopper_on_host");
  const ir::Plan plan = src::plan(graph, *backend, default_options());
  std::vector<ContractSchedule> pairs;
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const Kernel kernel =
        scheduled_kernel(plan, static_cast<int>(i), codegen::specialize(plan, bindings), backend->target());
    expect_compiles_for(emit_cuda(kernel, backend->target()), {backend->target().arch});
    const auto* schedule = std::get_if<ContractSchedule>(&kernel.schedule);
    if (schedule != nullptr && schedule->products == 2) pairs.push_back(*schedule);
  }
  return pairs;
}

// That the graph has a kernel with a pair, which the interpreter agrees with.
ContractSchedule expect_pair(const std::string& text, const Bindings& bindings = {}, const std::string& fields = "") {
  SCOPED_TRACE(text);
  RandomCase c{ir::parse(text), bindings, {}, {}};
  c.inputs = random_inputs(c.graph, bindings, 7);
  Options options = default_options();
  options.cache = false;
  const Verdict verdict =
      check_with_schedules(c, "hopper_on_host", options, [&](const Kernel& kernel) -> std::optional<codegen::Schedule> {
        const codegen::Schedule other = codegen::parse_schedule("contract loop=wgmma tile_k=64 products=2 " + fields);
        if (fields.empty() || kernel.kernel_class != ir::KernelClass::contract) return std::nullopt;
        EXPECT_EQ(verify(other, kernel, backend_of("hopper_on_host")->target()), "");
        return other;
      });
  EXPECT_TRUE(verdict.same) << verdict.difference;
  const auto pairs = pairs_of(c.graph, bindings);
  EXPECT_EQ(pairs.size(), 1U);
  return pairs.empty() ? ContractSchedule{} : pairs[0];
}

constexpr const char* kSwiglu = R"(graph swiglu_layer(x: bf16[104, 136], gate: bf16[136, 72], up: bf16[136, 72]) {
  y = swiglu(matmul(x, gate), matmul(x, up))
  return y
})";

TEST(WarpgroupPairs, AGateAndWhatItScalesAreOneKernel) { expect_pair(kSwiglu); }

TEST(WarpgroupPairs, MatricesMayLieEitherWay) {
  expect_pair(R"(graph linear(x: f16[200, 72], gate: f16[40, 72], up: f16[40, 72]) {
    y = mul(relu(linear(x, gate)), linear(x, up))
    return y
  })");
}

// A weight's halves, gate first.
TEST(WarpgroupPairs, HalvesOfOneMatrixAreAPair) {
  expect_pair(R"(graph halves(x: bf16[72, 136], w: bf16[136, 144]) {
    gate, up = split(matmul(x, w), sections=[72, 72], axis=-1)
    y = swiglu(gate, up)
    return y
  })");
  expect_pair(R"(graph rows(x: bf16[m, 64], w: bf16[96, 64]) where m in [33, 4096] {
    gate, up = split(linear(x, w), sections=[48, 48], axis=-1)
    y = mul(sigmoid(gate), up)
    return y
  })",
              {{"m", 77}});
}

// Rows off 16-byte boundaries are brought by threads, whichever way they lie; both matrices' lines run the same way.
TEST(WarpgroupPairs, ThreadsBringOddRows) {
  expect_pair(R"(graph odd(x: bf16[77, 45], gate: bf16[45, 63], up: bf16[45, 63]) {
    y = swiglu(matmul(x, gate), matmul(x, up))
    return y
  })");
  expect_pair(R"(graph one_is_odd(x: bf16[77, 48], gate: bf16[48, 64], w: bf16[48, 67]) {
    up = slice(w, axis=[1], start=[3], stop=[67])
    y = swiglu(matmul(x, gate), matmul(x, up))
    return y
  })");
}

// What is computed on the way may come of a matrix that lies across the other one; the rows may be computed, too.
TEST(WarpgroupPairs, ThreadsBringWhatIsComputedOnTheWay) {
  expect_pair(R"(graph across(x: bf16[72, 85], a: bf16[85, 47], b: bf16[47, 85], s: bf16[47]) {
    rows = relu(x)
    y = mul(sigmoid(matmul(rows, a)), matmul(rows, mul(transpose(b), s)))
    return y
  })");
  expect_pair(R"(graph integers(x: bf16[72, 61], s: bf16[72, 1], a: bf16[61, 45], t: bf16[61, 1], b: i8[61, 45]) {
    rows = mul(x, s)
    y = mul(sigmoid(matmul(rows, mul(a, t))), matmul(rows, cast(b, dtype=bf16)))
    return y
  })");
}

// Rows of x begin off 16-byte boundaries and are copied once, for both.
TEST(WarpgroupPairs, PaddedRowsAreShared) {
  const auto backend = backend_of("hopper_on_host");
  const ir::Graph graph = ir::parse(R"(graph padded(x: bf16[4096, 2047], gate: bf16[4096, 2048], up: bf16[4096, 2048]) {
    y = swiglu(matmul(transpose(x), gate), matmul(transpose(x), up))
    return y
  })");
  EXPECT_EQ(src::plan(graph, *backend, default_options()).groups.size(), 2U);
}

TEST(WarpgroupPairs, BatchesBiasesAndSeveralResults) {
  expect_pair(
      R"(graph batches(x: bf16[2, 72, 64], gate: bf16[2, 64, 40], up: bf16[2, 64, 40], b: bf16[40], r: bf16[2, 72, 40]) {
    g = add(matmul(x, gate), b)
    u = matmul(x, up)
    y = add(mul(gelu(g, approximate="tanh"), u), r)
    return y, u
  })");
}

TEST(WarpgroupPairs, EveryKindOfTile) {
  for (const char* fields : {"tile_m=64 tile_n=64 consumers=1 stages=2", "tile_m=128 tile_n=128 turns stages=2",
                             "tile_m=128 tile_n=192 stages=3", "tile_m=64 tile_n=128 turns cluster=1 stages=3",
                             "tile_m=128 tile_n=256 stages=4"})
    expect_pair(R"(graph transposed(x: bf16[264, 72], gate: bf16[104, 72], up: bf16[104, 72]) {
      y = swiglu(linear(x, gate), linear(x, up))
      return y
    })",
                {}, fields);
  expect_pair(kSwiglu, {}, "tile_m=64 tile_n=256 consumers=1 stages=2 cluster=2");
}

TEST(WarpgroupPairs, SwitchedOffTheyAreTwoKernels) {
  const auto backend = backend_of("hopper_on_host");
  Options options = default_options();
  options.disable = {"pair_products"};
  EXPECT_EQ(src::plan(ir::parse(kSwiglu), *backend, options).groups.size(), 2U);
  options.disable = {};
  EXPECT_EQ(src::plan(ir::parse(kSwiglu), *backend, options).groups.size(), 1U);
}

}  // namespace
}  // namespace tenon::test
