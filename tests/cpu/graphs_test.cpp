// Whole graphs through the compiler onto the CPU target, against the interpreter: every map operator and conversion on
// every dtype with values at the edges, then one graph or more of each kernel class.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/interpret/interpret.h"
#include "ir/ops/op.h"
#include "ir/text/text.h"
#include "src/driver/pipeline.h"

namespace tenon::test {
namespace {

constexpr double kEdges[] = {0.0,
                             -0.0,
                             1,
                             -1,
                             0.5,
                             -0.5,
                             2,
                             -2,
                             1.5,
                             2.5,
                             3,
                             7,
                             -7,
                             1e-3,
                             127,
                             128,
                             -128,
                             -129,
                             255,
                             256,
                             32767,
                             32768,
                             65504,
                             65536,
                             448,
                             464,
                             480,
                             1e-5,
                             6e-8,
                             1e-40,
                             1e10,
                             -1e10,
                             3e38,
                             1e300,
                             -1e300,
                             1e-310,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};

// Ordinary numbers and some of the edges.
ir::HostArray make_input(DType dtype, const std::vector<std::int64_t>& shape, std::mt19937& engine, bool edges) {
  ir::HostArray array = ir::make_array(dtype, shape);
  std::normal_distribution<double> normal(0, is_f8(dtype) ? 1 : 2);
  for (std::int64_t i = 0; i < ir::element_count(array); ++i) {
    const bool edge = edges && engine() % 3 == 0;
    if (is_real(dtype)) {
      ir::set_real(array, i, edge ? kEdges[engine() % std::size(kEdges)] : normal(engine));
    } else {
      ir::set_integer(array, i,
                      edge ? static_cast<std::int64_t>(engine() * 0x9E3779B97F4A7C15ULL)
                           : static_cast<std::int64_t>(engine() % 9) - 4);
    }
  }
  return array;
}

Options quiet_options() {
  Options options;
  options.cache = false;
  options.threads = 2;
  return options;
}

void check_graph(const std::string& text, const Bindings& bindings = {}, bool edges = false, bool fuse = true) {
  static const auto backend = src::open_backend("cpu", quiet_options());
  const ir::Graph graph = ir::parse(text);
  std::mt19937 engine(7);
  std::vector<ir::HostArray> inputs;
  std::vector<Buffer> buffers;
  for (const ir::ValueId id : graph.inputs) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : graph.type(id).shape) shape.push_back(dim.evaluate(bindings));
    inputs.push_back(make_input(graph.type(id).dtype, shape, engine, edges));
  }
  for (ir::HostArray& input : inputs) buffers.push_back({input.bytes.data(), input.dtype, input.shape});
  Options options = quiet_options();
  options.fuse = fuse;
  const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  std::vector<ir::HostArray> outputs;
  std::vector<Buffer> results;
  for (const ir::ValueId id : graph.outputs) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : graph.type(id).shape) shape.push_back(dim.evaluate(bindings));
    outputs.push_back(ir::make_array(graph.type(id).dtype, shape));
  }
  for (ir::HostArray& output : outputs) results.push_back({output.bytes.data(), output.dtype, output.shape});
  executable.run(buffers, results, bindings);
  const auto comparisons = ir::compare_with_interpreter(graph, inputs, outputs, bindings);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const ir::Comparison& c = comparisons[i];
    EXPECT_TRUE(c.equal) << text << "\noutput " << i << ": " << c.mismatches << " of " << c.elements
                         << " differ, first at " << c.first_mismatch << ", worst error over tolerance "
                         << c.max_tolerance_ratio << "\nis "
                         << (c.first_mismatch >= 0
                                 ? (is_real(outputs[i].dtype)
                                        ? ir::get_real(outputs[i], c.first_mismatch)
                                        : static_cast<double>(ir::get_integer(outputs[i], c.first_mismatch)))
                                 : 0)
                         << "\n"
                         << (c.equal ? "" : executable.plan());
  }
}

void check_map(const ir::OpInfo& op, DType dtype, const std::string& attributes = "") {
  std::string parameters, arguments;
  for (int i = 0; i < op.operands; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    const bool condition = op.op == ir::Op::where && i == 0;
    parameters += fmt::format("{}{}: {}[203]", i ? ", " : "", name, condition ? "bool" : name_of(dtype));
    arguments += (i ? ", " : "") + name;
  }
  check_graph(
      fmt::format("graph g({}) {{\n  y = {}({}{})\n  return y\n}}\n", parameters, op.name, arguments, attributes), {},
      true);
}

TEST(CpuGraphs, EveryMapOperatorOnEveryDtype) {
  for (const ir::OpInfo& op : ir::all_ops()) {
    if (op.kind != ir::Kind::map || op.op == ir::Op::cast || op.op == ir::Op::bitcast) continue;
    for (const DType dtype : kAllDTypes)
      if (ir::accepts(op.accepts, dtype)) check_map(op, dtype);
  }
}

TEST(CpuGraphs, EveryCastAndBitcast) {
  for (const DType from : kAllDTypes)
    for (const DType to : kAllDTypes) {
      check_map(ir::info(ir::Op::cast), from, fmt::format(", dtype={}", name_of(to)));
      if (size_of(from) == size_of(to) && from != DType::bool_ && to != DType::bool_)
        check_map(ir::info(ir::Op::bitcast), from, fmt::format(", dtype={}", name_of(to)));
    }
}

TEST(CpuGraphs, EveryReductionOverRowsColumnsAndAll) {
  for (const ir::OpInfo& op : ir::all_ops()) {
    if (op.kind != ir::Kind::reduce) continue;
    for (const DType dtype : kAllDTypes) {
      if (!ir::accepts(op.accepts, dtype)) continue;
      for (const char* axis : {"axis=1", "axis=0", "axis=[0, 1]"})
        check_graph(
            fmt::format("graph g(a: {}[19, 45]) {{\n  y = {}(a, {})\n  return y\n}}\n", name_of(dtype), op.name, axis));
    }
  }
}

TEST(CpuGraphs, Random) {
  check_graph(
      "graph g(s: i64[]) {\n  y = random_bits(s, shape=[3, 41], stream=5)\n  z = random_bits(s, shape=[70], word=2)\n  "
      "return y, z\n}\n");
  check_graph(
      "graph g(s: i64[]) {\n  y = random_uniform(s, shape=[300])\n  z = random_normal(s, shape=[301])\n  return y, "
      "z\n}\n");
}

TEST(CpuGraphs, Views) {
  check_graph(
      "graph g(a: f32[6, 10]) {\n  b = transpose(a)\n  c = reshape(b, shape=[15, 4])\n  d = flip(c, axis=[1])\n  y = "
      "add(d, 1.0)\n  return y\n}\n");
  check_graph(
      "graph g(a: f32[6, 10], b: f32[6, 3]) {\n  c = concat(a, b, axis=1)\n  d = pad(c, low=[1, 2], high=[0, 3], "
      "value=2.5)\n  y = mul(d, d)\n  return y\n}\n");
  check_graph("graph g(a: bf16[50, 24], i: i32[7, 3]) {\n  c = take(a, i, axis=0)\n  y = neg(c)\n  return y\n}\n");
  check_graph(
      "graph g(a: f32[20, 30]) {\n  c = slice(a, start=[1, 28], stop=[19, 2], step=[3, -4])\n  y = exp(c)\n  return "
      "y\n}\n");
}

// 0 / 0 of the elements that padding hides, where the numbers are so few that the compiler knows which those are.
TEST(CpuGraphs, PaddedQuotientsOfFewElements) {
  for (const char* quotient : {"div(x, z)", "floor_div(x, z)", "mod(x, z)"})
    for (const char* dtype : {"f32", "f64", "bf16"})
      check_graph(fmt::format("graph g(x: {0}[1], z: {0}[1]) {{\n  y = pad({1}, low=[3], high=[0])\n  return y\n}}\n",
                              dtype, quotient));
}

TEST(CpuGraphs, NormsAndSoftmaxAtSeveralBatches) {
  for (const std::int64_t n : {0, 1, 7, 33}) {
    check_graph(
        "graph g(x: bf16[n, 200], w: f32[200], b: f32[200]) {\n  y = layer_norm(cast(x, dtype=f32), w, b)\n  return "
        "y\n}\n",
        {{"n", n}});
    check_graph("graph g(x: f16[n, 77]) {\n  y = softmax(x)\n  z = logsumexp(x, axis=1)\n  return y, z\n}\n",
                {{"n", n}});
    check_graph(
        "graph g(x: f32[n, 50], t: i64[n]) {\n  y = cross_entropy(x, take(iota(shape=[50]), t))\n  return y\n}\n",
        {{"n", n}});
  }
}

TEST(CpuGraphs, MatmulsWithPrologueAndEpilogue) {
  for (const char* dtype : {"f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"})
    check_graph(
        fmt::format("graph g(x: {0}[3, 37, 65], w: {0}[65, 90]) {{\n  y = matmul(x, w)\n  return y\n}}\n", dtype));
  check_graph(
      "graph g(x: bf16[rows, 64], w: bf16[64, 200], b: bf16[200], r: bf16[rows, 200]) {\n  y = add(gelu(add(matmul(x, "
      "w), b), approximate=\"tanh\"), r)\n  return y\n}\n",
      {{"rows", 45}});
  check_graph("graph g(x: f32[1, 300], w: f32[40, 300], b: f32[40]) {\n  y = relu(linear(x, w, b))\n  return y\n}\n");
}

TEST(CpuGraphs, Attention) {
  check_graph(
      "graph g(q: f32[2, 4, 50, 16], k: f32[2, 4, 70, 16], v: f32[2, 4, 70, 24]) {\n  y = attention(q, k, v)\n  return "
      "y\n}\n");
  check_graph(
      "graph g(q: bf16[2, 4, n, 32], k: bf16[2, 2, n, 32], v: bf16[2, 2, n, 32]) {\n  y = attention(q, k, v, "
      "causal=true)\n  return y\n}\n",
      {{"n", 100}});
  check_graph(
      "graph g(q: f32[1, 2, 5, 8], k: f32[1, 2, 90, 8], v: f32[1, 2, 90, 8], b: f32[2, 5, 90]) {\n  y, l = "
      "attention(q, k, v, b, causal=true, window=20, softcap=5.0, lse=true)\n  return y, l\n}\n");
  check_graph(
      "graph g(q: f32[3, 1, 64], k: f32[3, 200, 64], v: f32[3, 200, 64]) {\n  y = attention(q, k, v)\n  return y\n}\n");
}

// Rows of 1 to 16 elements, of which lanes have one each where that is faster; more rows than lanes, and an odd number.
TEST(CpuGraphs, ShortRows) {
  for (const char* dtype : {"f32", "bf16", "f64", "i8"})
    for (const int row : {1, 2, 3, 7, 8, 16})
      for (const char* body : {"max(x, axis=1)", "argmin(x, axis=1)", "sum(x, axis=1)"})
        check_graph(fmt::format("graph g(x: {}[333, {}]) {{\n  y = {}\n  return y\n}}\n", dtype, row, body), {}, true);
  for (const char* dtype : {"f32", "bf16"})
    for (const int row : {2, 3, 5, 8}) {
      check_graph(fmt::format("graph g(x: {}[333, {}]) {{\n  y = softmax(x)\n  return y\n}}\n", dtype, row));
      check_graph(fmt::format("graph g(x: {0}[333, {1}], w: {0}[{1}]) {{\n  y = layer_norm(x, w)\n  return y\n}}\n",
                              dtype, row));
      check_graph(fmt::format("graph g(x: {}[n, 9, {}]) {{\n  y = logsumexp(x, axis=2)\n  return y\n}}\n", dtype, row),
                  {{"n", 37}});
    }
  check_graph("graph g(x: f32[6, 5, 14, 2, 9, 2]) {\n  y = max(x, axis=[3, 5])\n  return y\n}\n", {}, true);
}

}  // namespace
}  // namespace tenon::test
