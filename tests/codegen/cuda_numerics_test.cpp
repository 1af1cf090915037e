// What generated CUDA computes, against the interpreter: graphs as one kernel each, run on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "codegen/source.h"
#include "ir/check.h"
#include "ir/fusion/plan.h"
#include "ir/passes/passes.h"
#include "ir/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/cuda_on_host.h"

namespace tenon::codegen {
namespace {

// The plan of a graph that the planner makes one kernel of, with operands in the graph's order.
ir::Plan one_kernel(const ir::Graph& graph) {
  std::set<std::string> passes;
  for (const ir::Pass& pass : ir::pass_table()) passes.emplace(pass.name);
  ir::PlanOptions options;
  options.max_operands = 200;
  ir::Plan plan = ir::make_plan(graph, options, passes);
  TENON_CHECK(plan.groups.size() == 1, "not one kernel:\n" + ir::print(plan));
  ir::Group& group = plan.groups[0];
  std::vector<ir::Layout> layouts;
  for (ir::ValueId output : plan.graph.outputs) {
    const auto at = std::find(group.outputs.begin(), group.outputs.end(), output) - group.outputs.begin();
    layouts.push_back(group.layouts.at(static_cast<std::size_t>(at)));
  }
  group.inputs = plan.graph.inputs;
  group.outputs = plan.graph.outputs;
  group.layouts = std::move(layouts);
  return plan;
}

ir::HostArray random_array(DType dtype, const std::vector<std::int64_t>& shape, std::mt19937_64& random) {
  ir::HostArray array = ir::make_array(dtype, shape);
  if (array.bytes.size() == 131072) {  // every pattern of 16 bits
    for (std::size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = std::byte(i % 2 == 0 ? i / 2 : i / 512);
    return array;
  }
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -3.5, 0.5, 100, 1e-5};
  for (std::int64_t i = 0; i < ir::element_count(array); ++i) {
    if (is_real(dtype)) {
      const bool odd = random() % 64 == 0;
      ir::set_real(array, i, odd ? special[random() % 9] : std::normal_distribution<double>(0, 2)(random));
    } else {
      ir::set_integer(array, i, static_cast<std::int64_t>(random() % 64) - (dtype == DType::u8 ? 0 : 20));
    }
  }
  return array;
}

struct Result {
  ir::Graph written;
  ir::Plan plan;
  Source source;
  Kernel kernel;
};

using Adjust = std::function<void(Kernel&)>;

// The text's graph as one kernel.
Result lowered(const std::string& text, const Bindings& bindings = {}, const Adjust& adjust = {}) {
  Result result;
  result.written = ir::parse(text);
  result.plan = one_kernel(ir::eliminate_dead_code(ir::eliminate_common_subexpressions(ir::decompose(result.written))));
  const Target target = test::cuda_target_for("sm_90a");
  result.kernel = lower(result.plan, 0, specialize(result.plan, bindings), target);
  if (auto* reduce = std::get_if<ReduceSchedule>(&result.kernel.schedule))
    reduce->splits = std::min(reduce->splits, 3);  // a thread for each of a device's takes too long here
  if (adjust) adjust(result.kernel);
  result.source = emit_cuda(result.kernel, target);
  return result;
}

// Expects it to compute what the interpreter says.
Result expect_right(const std::string& text, const Bindings& bindings = {}, const Adjust& adjust = {}) {
  const Result run = lowered(text, bindings, adjust);
  const ir::Plan& plan = run.plan;
  std::mt19937_64 random(20240807);
  std::vector<ir::HostArray> inputs, outputs;
  std::vector<void*> pointers;
  const auto concrete = [&](const ir::Type& type) {
    std::vector<std::int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(extent.evaluate(bindings));
    return shape;
  };
  for (ir::ValueId input : plan.graph.inputs) {
    const ir::Type& type = plan.graph.type(input);
    inputs.push_back(random_array(type.dtype, concrete(type), random));
  }
  for (ir::ValueId output : plan.graph.outputs) {
    outputs.push_back(ir::make_array(plan.graph.type(output).dtype, concrete(plan.graph.type(output))));
    for (std::byte& byte : outputs.back().bytes) byte = std::byte{0x7f};  // a missing store shows
  }
  for (auto* arrays : {&inputs, &outputs})
    for (ir::HostArray& array : *arrays) pointers.push_back(array.bytes.data());
  test::run_cuda_on_host(run.source, pointers, bindings);
  const auto comparisons = ir::compare_with_interpreter(run.written, inputs, outputs, bindings);
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    EXPECT_TRUE(comparisons[i].equal) << "result " << i << ": " << comparisons[i].mismatches << " of "
                                      << comparisons[i].elements << ", first at " << comparisons[i].first_mismatch
                                      << "\n"
                                      << print(run.kernel) << test::kernel_part(run.source.text);
  return run;
}

// The map ops that take `dtype`.
std::vector<const ir::OpInfo*> maps_of(DType dtype) {
  std::vector<const ir::OpInfo*> ops;
  for (const ir::OpInfo& op : ir::all_ops())
    if (op.kind == ir::Kind::map && ir::accepts(op.accepts, dtype) && op.attributes.empty()) ops.push_back(&op);
  return ops;
}

// Each of `ops` on a, b, c (and p where a condition is wanted), a result of its own.
std::string graph_of_maps(DType dtype, const std::vector<const ir::OpInfo*>& ops) {
  const std::string type(name_of(dtype));
  std::string text = "graph g(a: " + type + "[67], b: " + type + "[67], c: " + type + "[67], p: bool[67]) {\n";
  std::string results;
  for (const ir::OpInfo* op : ops) {
    const std::string name(op->name);
    const char* arguments[] = {"a", "a, b", "a, b, c"};
    text += "  r_" + name + " = " + name + "(" + (name == "where" ? "p, b, c" : arguments[op->operands - 1]) + ")\n";
    results += (results.empty() ? "r_" : ", r_") + name;
  }
  return text + "  return " + results + "\n}";
}

class EveryDType : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(CudaNumerics, EveryDType, testing::ValuesIn(kAllDTypes),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(EveryDType, MapsComputeWhatTheTableSays) { expect_right(graph_of_maps(GetParam(), maps_of(GetParam()))); }

TEST_P(EveryDType, MapsCompileEverywhere) {
  const std::vector<const ir::OpInfo*> ops = maps_of(GetParam());
  for (std::size_t first = 0; first < ops.size(); first += 16) {
    const auto begin = ops.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = ops.begin() + static_cast<std::ptrdiff_t>(std::min(first + 16, ops.size()));
    test::expect_compiles_everywhere(lowered(graph_of_maps(GetParam(), {begin, end})).source);
  }
}

TEST_P(EveryDType, CastsToEveryOther) {
  std::string text, results;
  for (const DType to : kAllDTypes) {
    const std::string name(name_of(to));
    text += "  c_" + name + " = cast(x, dtype=" + name + ")\n";
    results += (results.empty() ? "c_" : ", c_") + name;
  }
  const bool sixteen_bits = size_of(GetParam()) == 2;  // then x holds every pattern
  expect_right("graph g(x: " + std::string(name_of(GetParam())) + (sixteen_bits ? "[65536]" : "[1000]") + ") {\n" +
               text + "  return " + results + "\n}");
}

TEST(CudaNumerics, BitcastsKeepTheBits) {
  expect_right("graph g(x: i32[100]) { a = bitcast(x, dtype=f32); return a }");
  expect_right("graph g(y: i16[100]) { b = bitcast(neg(y), dtype=bf16); c = bitcast(b, dtype=i16); return b, c }");
  expect_right("graph g(z: u8[100]) { d = bitcast(z, dtype=f8e5m2); return d }");
}

std::string all_reductions(DType dtype, const std::string& shape, const std::string& axis) {
  std::string text = "graph g(x: " + std::string(name_of(dtype)) + shape + ") {\n";
  std::string results;
  for (const ir::OpInfo& op : ir::all_ops()) {
    if (op.kind != ir::Kind::reduce || !ir::accepts(op.accepts, dtype)) continue;
    const std::string name(op.name);
    text += "  r_" + name + " = " + name + "(x" + axis + ")\n";
    results += (results.empty() ? "r_" : ", r_") + name;
  }
  return text + "  return " + results + "\n}";
}

TEST_P(EveryDType, ReductionsByAWarp) {
  const Result run = expect_right(all_reductions(GetParam(), "[rows, 48]", ", axis=1"), {{"rows", 5}});
  EXPECT_EQ(std::get<ReduceSchedule>(run.kernel.schedule).mapping, RowMapping::warp);
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaNumerics, ReductionsByABlock) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i8}) {
    const Result run = expect_right(all_reductions(dtype, "[rows, 5001]", ", axis=1"), {{"rows", 2}});
    EXPECT_EQ(std::get<ReduceSchedule>(run.kernel.schedule).mapping, RowMapping::block);
  }
}

TEST(CudaNumerics, ReductionsByAThread) {
  const Result run = expect_right(all_reductions(DType::f32, "[rows, 2]", ", axis=1"), {{"rows", 150}});
  EXPECT_EQ(std::get<ReduceSchedule>(run.kernel.schedule).mapping, RowMapping::thread);
}

TEST(CudaNumerics, ReductionsAlongColumns) {
  const Result run = expect_right(all_reductions(DType::f32, "[19, columns]", ", axis=0"), {{"columns", 45}});
  EXPECT_EQ(std::get<ReduceSchedule>(run.kernel.schedule).mapping, RowMapping::column);
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaNumerics, ReductionsOverSeveralAxes) {
  expect_right(all_reductions(DType::f32, "[3, rows, 5, 8]", ", axis=[0, 2]"), {{"rows", 7}});
  expect_right(all_reductions(DType::bf16, "[3, rows, 5, 8]", ", axis=[1, 3]"), {{"rows", 7}});
  expect_right(all_reductions(DType::i32, "[rows, 5]", ""), {{"rows", 70}});
}

TEST(CudaNumerics, NothingReducedGivesTheIdentity) {
  expect_right("graph g(x: f32[4, rows]) { s = sum(x, axis=1); m = max(x, axis=1); return s, m }", {{"rows", 0}});
}

TEST(CudaNumerics, AReductionOfOneElementIsTheElement) {
  expect_right(all_reductions(DType::f16, "[rows, 1]", ", axis=1"), {{"rows", 9}});
}

TEST(CudaNumerics, Softmax) {
  for (const char* columns : {"1", "5", "8", "100", "1000", "rows"})
    expect_right(std::string("graph g(x: f32[rows, ") + columns + "]) { y = softmax(x); return y }", {{"rows", 77}});
}

TEST(CudaNumerics, RowsInRegistersOrReadAgain) {
  const std::string text =
      "graph g(x: bf16[rows, 512], w: bf16[512], b: bf16[512]) { y = layer_norm(x, w, b); return y }";
  const Result run = expect_right(text, {{"rows", 3}});
  EXPECT_TRUE(std::get<ReduceSchedule>(run.kernel.schedule).persistent);
  expect_right(text, {{"rows", 3}},
               [](Kernel& kernel) { std::get<ReduceSchedule>(kernel.schedule).persistent = false; });
}

TEST(CudaNumerics, NormsWithWhatSurroundsThem) {
  expect_right(
      "graph g(x: bf16[rows, 256], r: bf16[rows, 256], w: bf16[256]) {\n"
      "  s = add(x, r)\n  y = rms_norm(s, w)\n  return s, y\n}",
      {{"rows", 3}});
  expect_right("graph g(x: f32[rows, 50]) { y = log_softmax(x); return y }", {{"rows", 3}});
  expect_right("graph g(x: f32[rows, 50], t: i64[rows]) { y = cross_entropy(x, t); return y }", {{"rows", 3}});
  expect_right("graph g(x: f32[20, n]) { y = var(x, axis=0); z = sub(x, mean(x, axis=0)); return y, z }", {{"n", 40}});
}

TEST(CudaNumerics, StatisticsStoredBesideTheRowsThatNeedThem) {
  expect_right(
      "graph g(x: bf16[rows, 257], dy: bf16[rows, 257]) {\n"
      "  real = cast(x, dtype=f32)\n  m = mean(real, axis=1, keepdims=true)\n  centred = sub(real, m)\n"
      "  rstd = rsqrt(add(mean(mul(centred, centred), axis=1, keepdims=true), 0.01))\n"
      "  normal = mul(centred, rstd)\n  g = cast(dy, dtype=f32)\n"
      "  dx = mul(rstd, sub(g, mul(normal, mean(mul(g, normal), axis=1, keepdims=true))))\n  return m, rstd, dx\n}",
      {{"rows", 33}});
}

ReduceSchedule& reduce_schedule(Kernel& kernel) { return std::get<ReduceSchedule>(kernel.schedule); }

TEST(CudaNumerics, PartsOfRowsAreCombinedByASecondFunction) {
  const auto in_parts = [](Kernel& kernel) {
    ReduceSchedule& schedule = reduce_schedule(kernel);
    schedule.mapping = RowMapping::block;
    schedule.threads = 32;
    schedule.splits = 3;
  };
  for (const DType dtype : {DType::f32, DType::i8}) {
    const Result run = expect_right(all_reductions(dtype, "[3, 1501]", ", axis=1"), {}, in_parts);
    EXPECT_FALSE(run.source.finish_entry.empty());
  }
  test::expect_compiles_everywhere(
      expect_right("graph g(x: f32[n]) { s = sum(x); a = argmin(x); return s, a }", {{"n", 2099}}, in_parts).source);
  expect_right("graph g(x: bf16[2048]) { y = exp(x); s = mean(y); return y, s }", {}, in_parts);
}

TEST(CudaNumerics, ColumnsInVectorsAndParts) {
  const auto in_parts = [](Kernel& kernel) {
    EXPECT_EQ(reduce_schedule(kernel).mapping, RowMapping::column);
    reduce_schedule(kernel).threads = 64;
    reduce_schedule(kernel).splits = 2;
  };
  for (const DType dtype : {DType::f64, DType::u8}) {
    const Result run = expect_right(all_reductions(dtype, "[37, 24]", ", axis=0"), {}, in_parts);
    EXPECT_GT(std::get<ReduceSchedule>(run.kernel.schedule).vector, 1);
  }
  expect_right("graph g(x: bf16[19, n], w: bf16[n]) { y = mul(sum(mul(x, w), axis=0), w); return y }", {{"n", 48}});
  expect_right("graph g(x: bf16[19, 48]) { y = softmax(x, axis=0); v = var(x, axis=0); return y, v }");
  test::expect_compiles_everywhere(
      expect_right("graph g(x: bf16[40, 24], s: bf16[40, 1]) { y = mul(x, s); c = sum(y, axis=0); return y, c }", {},
                   in_parts)
          .source);
}

TEST(CudaNumerics, RowsThatVectorsDoNotDivideArePeeled) {
  const auto again = [](Kernel& kernel) {
    reduce_schedule(kernel).persistent = false;
    reduce_schedule(kernel).unroll = 2;
    reduce_schedule(kernel).threads = 64;
  };
  for (const char* columns : {"257", "1002"})
    for (const char* dtype : {"f32", "bf16"}) {
      const std::string type(dtype), shape = std::string("[3, ") + columns + "]";
      const std::string softmax =
          "graph g(x: " + type + shape + ") { y = softmax(x); a = argmax(x, axis=1); return y, a }";
      const std::string norm = "graph g(x: " + type + shape + ", r: " + type + shape + ", w: bf16[" + columns +
                               "]) {\n  s = add(x, r)\n  y = rms_norm(s, cast(w, dtype=" + type +
                               "))\n  return s, y\n}";
      for (const std::string& text : {softmax, norm}) {
        const Result run = expect_right(text);
        EXPECT_TRUE(std::get<ReduceSchedule>(run.kernel.schedule).peeled);
        test::expect_compiles_everywhere(run.source);
        expect_right(text, {}, again);
      }
    }
  expect_right("graph g(x: f16[rows, n]) { y = layer_norm(x); return y }", {{"rows", 3}, {"n", 777}});
}

TEST(CudaNumerics, BlocksOfAClusterShareARow) {
  const auto of_two = [](Kernel& kernel) {
    ReduceSchedule& schedule = reduce_schedule(kernel);
    schedule.mapping = RowMapping::block;
    schedule.threads = 32;
    schedule.cluster = 2;
    schedule.online = false;
    schedule.unroll = 1;
    schedule.row_elements = 32;
    schedule.persistent = true;
  };
  for (const char* columns : {"1024", "1999"}) {
    const std::string shape = std::string("[3, ") + columns + "]";
    for (const char* dtype : {"f32", "bf16"}) {
      const Result run = expect_right(
          "graph g(x: " + std::string(dtype) + shape + ") { y = softmax(x); a = argmin(x, axis=1); return y, a }", {},
          of_two);
      EXPECT_EQ(run.source.launch.cluster, 2);
      test::expect_compiles_for(run.source, {"sm_90a", "sm_100a", "sm_120"});
    }
    expect_right("graph g(x: f16" + shape + ") { y = layer_norm(x); return y }", {}, of_two);
  }
}

TEST(CudaNumerics, ExponentialsAreSummedBesideTheirMaximum) {
  const auto online = [](int unroll) {
    return [unroll](Kernel& kernel) {
      ReduceSchedule& schedule = reduce_schedule(kernel);
      schedule.persistent = false;
      schedule.online = true;
      schedule.unroll = unroll;
    };
  };
  for (const auto& [columns, unroll] : {std::pair{"600", 1}, {"1003", 4}}) {
    const std::string shape = std::string("[3, ") + columns + "]";
    expect_right("graph g(x: f32" + shape + ") { y = softmax(x); return y }", {}, online(unroll));
    expect_right("graph g(x: f64" + shape + ") { y = logsumexp(x, axis=1); return y }", {}, online(unroll));
    const Result run = expect_right("graph g(x: bf16" + shape + ", t: i64[3]) { y = cross_entropy(x, t); return y }",
                                    {}, online(unroll));
    const auto& body = run.kernel.body;  // the logit is gathered, not summed
    EXPECT_EQ(
        std::count_if(body.begin(), body.end(), [](const Instr& instr) { return instr.kind == InstrKind::reduce; }), 2);
    test::expect_compiles_everywhere(run.source);
    // Vectors that hold nothing but -inf come before and after others; a row is -inf throughout.
    expect_right("graph g(x: f32" + shape + ", n: i32[3, 1]) {\n  i = iota(shape=[3, " + columns +
                     "], axis=1, dtype=i32)\n  y = softmax(where(greater(mod(i, 400), mul(n, 10)), x, -inf))\n"
                     "  return y\n}",
                 {}, online(unroll));
  }
}

TEST(CudaNumerics, Views) {
  expect_right("graph g(x: f32[rows, 12]) { y = add(transpose(x), 1.0); return y }", {{"rows", 8}});
  expect_right(
      "graph g(x: f32[6, 4]) { y = neg(reshape(x, shape=[3, 8])); z = neg(reshape(flip(x), shape=[4, 6])); return y }");
  expect_right("graph g(x: bf16[rows, 8], y: bf16[rows, 24]) { z = exp(concat(x, y, axis=1)); return z }",
               {{"rows", 9}});
  expect_right("graph g(x: f32[rows, 8]) { z = exp(pad(x, low=[1, 2], high=[0, 3], value=2)); return z }",
               {{"rows", 9}});
  expect_right(
      "graph g(x: f32[20, 9]) { z = exp(slice(x, axis=[0, 1], start=[1, 8], stop=[20, 0], step=[3, -2])); return z }");
  expect_right("graph g(t: f16[10, 8], i: i32[rows]) { z = exp(take(t, i)); return z }", {{"rows", 21}});
  expect_right("graph g(x: f32[rows, 6]) { s = sum(pad(x, low=[0, 1], high=[0, 1]), axis=1); return s }",
               {{"rows", 9}});
}

const MapSchedule& map_schedule(const Result& run) { return std::get<MapSchedule>(run.kernel.schedule); }

TEST_P(EveryDType, TransposesThroughSharedMemory) {
  const Result run =
      expect_right("graph g(x: " + std::string(name_of(GetParam())) + "[rows, columns]) { y = transpose(x); return y }",
                   {{"rows", 48}, {"columns", 80}});
  EXPECT_EQ(map_schedule(run).tile_axis, 0);
  EXPECT_EQ(map_schedule(run).tile_vector, 16 / size_of(GetParam()));
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaNumerics, TransposesOfAnyExtent) {
  for (const auto& [rows, columns] : {std::pair{1, 70}, {70, 1}, {33, 66}, {97, 20}, {130, 65}}) {
    const Result run =
        expect_right("graph g(x: bf16[m, n]) { y = add(transpose(x), 1.0); return y }", {{"m", rows}, {"n", columns}});
    EXPECT_EQ(map_schedule(run).tile_axis, rows > 1 && columns > 1 ? 0 : -1);
  }
  const Result small = expect_right("graph g(x: f32[37, 41]) { y = neg(transpose(x)); return y }");
  EXPECT_EQ(print(small.kernel.schedule), "map threads=256 vector=1 unroll=1 tile_axis=0 tile=32x32 tile_vector=1");
}

TEST(CudaNumerics, TransposesWithBatchesBroadcastsAndOtherOperands) {
  const Result batched = expect_right(
      "graph g(x: f32[2, rows, 3, 40], z: f32[40], r: f32[2, 3, 40, rows]) {\n"
      "  t = transpose(x, perm=[0, 2, 3, 1])\n  y = add(mul(t, reshape(z, shape=[40, 1])), r)\n  return y\n}",
      {{"rows", 36}});
  EXPECT_GE(map_schedule(batched).tile_axis, 0);
  const Result two = expect_right(
      "graph g(x: f16[rows, 40], y: f64[rows, 40]) { z = add(cast(transpose(x), dtype=f64), transpose(y)); return z }",
      {{"rows", 50}});
  EXPECT_EQ(map_schedule(two).tile_vector, 8);
  test::expect_compiles_everywhere(two.source);
}

TEST(CudaNumerics, TransposesOfPaddedAndSlicedOperands) {
  expect_right("graph g(x: f32[rows, 40]) { y = exp(transpose(pad(x, low=[1, 2], high=[0, 3], value=2))); return y }",
               {{"rows", 41}});
  expect_right("graph g(x: f32[rows, 40], y: f32[rows, 24]) { z = transpose(concat(x, y, axis=1)); return z }",
               {{"rows", 41}});
  expect_right(
      "graph g(x: bf16[64, 80]) { y = transpose(slice(x, axis=[0, 1], start=[1, 8], stop=[64, 80])); return y }");
}

TEST(CudaNumerics, TransposedResultsLeaveThroughSharedMemory) {
  for (const char* dtype : {"bf16", "f32", "u8", "f64"}) {
    const std::string text = "graph g(x: " + std::string(dtype) + "[m, n], r: " + dtype +
                             "[m]) {\n  y = add(x, reshape(r, shape=[m, 1]))\n"
                             "  z = transpose(y)\n  return y, z\n}";
    const Result run = expect_right(text, {{"m", 48}, {"n", 80}});
    EXPECT_EQ(map_schedule(run).tile_axis, 0);
    test::expect_lines(run.source.text, {".put(row, column, y", "__syncthreads();", "flush_tile<"});
    test::expect_compiles_everywhere(run.source);
    expect_right(text, {{"m", 33}, {"n", 70}});
  }
}

TEST(CudaNumerics, ShortAxesAreTransposedWithoutATile) {
  const Result run = expect_right("graph g(x: f32[rows, 3]) { y = transpose(x); return y }", {{"rows", 40}});
  EXPECT_EQ(map_schedule(run).tile_axis, -1);
  const Result permuted = expect_right(
      "graph g(x: bf16[2, rows, 3, 16]) { y = neg(transpose(x, perm=[0, 2, 1, 3])); return y }", {{"rows", 40}});
  EXPECT_EQ(print(permuted.kernel.schedule), "map threads=256 vector=8 unroll=1");
}

TEST(CudaNumerics, OddRowsInVectors) {
  const std::string biased =
      "graph g(x: bf16[rows, 37], b: bf16[37], s: f32[rows, 1]) {\n"
      "  y = add(add(x, b), cast(s, dtype=bf16))\n  z = cast(y, dtype=f32)\n  return y, z\n}";
  const Result run = expect_right(biased, {{"rows", 75}});
  EXPECT_EQ(print(run.kernel.schedule), "map threads=256 vector=4 flat unroll=1");
  expect_right(biased, {{"rows", 1}});
  expect_right(biased, {{"rows", 75}}, [](Kernel& kernel) { kernel.wide_index = true; });
  // rows shorter than a vector, of a known and an unknown extent
  expect_right("graph g(x: bf16[rows, 3], b: bf16[3]) { y = mul(x, b); return y }", {{"rows", 43}});
  expect_right("graph g(x: bf16[2, rows, n], b: bf16[n]) { y = mul(x, b); return y }", {{"rows", 43}, {"n", 3}});
  expect_right("graph g(x: f16[rows, 5, n], b: f16[5, 1]) { y = mul(x, b); return y }", {{"rows", 7}, {"n", 13}});
}

TEST(CudaNumerics, MisalignedSlicesInVectors) {
  const Result run = expect_right(
      "graph g(x: bf16[rows, 40]) { y = exp(slice(x, axis=[1], start=[1], stop=[40])); return y }", {{"rows", 21}});
  EXPECT_TRUE(map_schedule(run).flat);
  expect_right("graph g(x: f32[rows, 40]) { y = exp(slice(x, axis=[1], start=[0], stop=[40], step=[3])); return y }",
               {{"rows", 21}});
  expect_right("graph g(x: bf16[rows, 31], y: bf16[rows, 10]) { z = exp(concat(x, y, axis=1)); return z }",
               {{"rows", 21}});
}

TEST(CudaNumerics, PairsOfARotation) {
  const Result run = expect_right(
      "graph rotary(x: bf16[3, rows, 32], c: bf16[rows, 32], s: bf16[rows, 32]) {\n"
      "  p = reshape(x, shape=[3, rows, 16, 2])\n"
      "  even = slice(p, axis=[-1], start=[0], stop=[1])\n  odd = slice(p, axis=[-1], start=[1], stop=[2])\n"
      "  turned = reshape(concat(neg(odd), even, axis=-1), shape=[3, rows, 32])\n"
      "  y = add(mul(x, c), mul(turned, s))\n  return y\n}",
      {{"rows", 10}});
  EXPECT_EQ(print(run.kernel.schedule), "map threads=256 vector=8 unroll=1");
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaNumerics, EveryCandidateOfAMapIsRight) {
  const Target target = test::cuda_target_for("sm_90a");
  for (const char* text : {"graph g(x: bf16[m, n]) { y = exp(transpose(x)); return y }",
                           "graph g(x: bf16[m, n], b: bf16[n]) { y = mul(x, b); return y }"}) {
    for (const auto& [rows, columns] : {std::pair{40, 72}, {41, 35}}) {
      const Bindings sizes = {{"m", rows}, {"n", columns}};
      const auto candidates = candidate_schedules(lowered(text, sizes).kernel, target);
      ASSERT_GE(candidates.size(), 5U);
      EXPECT_EQ(print(candidates[0]), print(lowered(text, sizes).kernel.schedule));
      for (const Schedule& schedule : candidates)
        expect_right(text, sizes, [&](Kernel& kernel) { kernel.schedule = schedule; });
    }
  }
}

TEST(CudaNumerics, RandomBitsAreTheInterpreters) {
  expect_right(
      "graph g(seed: i64) { a = random_uniform(seed, shape=[101]); b = random_uniform(seed, shape=[64], stream=3); "
      "return a }");
  expect_right("graph g(seed: i64, x: f32[rows, 8]) { y = dropout(x, seed, p=0.25); return y }", {{"rows", 10}});
  expect_right("graph g(seed: i64) { y = random_normal(seed, shape=[100]); return y }");
  // four words of a block at once, also across the ends of rows; and where a vector begins inside a block
  const std::string odd =
      "graph g(seed: i64, x: bf16[rows, 13], r: bf16[13]) {\n"
      "  y = add(dropout(x, seed, p=0.25), r)\n  return y\n}";
  test::expect_lines(expect_right(odd, {{"rows", 10}}).source.text, {"random_elements<8>("});
  expect_right(
      "graph g(seed: i64) { y = slice(random_uniform(seed, shape=[101]), axis=[0], start=[3], stop=[99]); return y }");
}

TEST(CudaNumerics, WideOffsetsGiveTheSame) {
  const auto widen = [](Kernel& kernel) { kernel.wide_index = true; };
  expect_right("graph g(x: f32[rows, 41]) { y = add(transpose(x), 1.0); return y }", {{"rows", 38}}, widen);
  expect_right("graph g(x: f32[rows, 12]) { y = add(transpose(x), 1.0); return y }", {{"rows", 8}}, widen);
  expect_right("graph g(x: f32[rows, 100]) { y = softmax(x); a = argmax(x, axis=1); return y, a }", {{"rows", 3}},
               widen);
}

TEST(CudaNumerics, UnrolledAndRaggedMaps) {
  expect_right("graph g(x: bf16[n]) { y = mul(x, x); return y }", {{"n", 1003}},
               [](Kernel& kernel) { kernel.schedule = MapSchedule{.threads = 64, .vector = 8, .unroll = 2}; });
}

}  // namespace
}  // namespace tenon::codegen
