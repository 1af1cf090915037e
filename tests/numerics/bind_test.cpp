// Bound inputs on every target: uploaded, what depends on them alone computed there, and the same results.
#include "ir/interpret/interpret.h"
#include "ir/text/text.h"
#include "src/api/host_array.h"
#include "src/driver/pipeline.h"
#include "tenon/weights.h"
#include "tests/harness/targets.h"

namespace tenon {
namespace {

class BindOn : public test::OnTarget {};

// Inputs whose names begin with w are bound, in two steps, fused and as single operators.
TEST_P(BindOn, ResultsAreThoseOfTheGraph) {
  const ir::Graph graph = ir::parse(
      "graph g(w1: f32[24, 16], x: f32[5, 16], w2: f32[24], w3: f32[24], wt: f16[24]) {\n"
      "  h = linear(x, w1)\n  s = mul(w2, rsqrt(add(exp(w3), 0.5)))\n  y = mul(h, s)\n"
      "  z = add(softmax(y), cast(tanh(wt), dtype=f32))\n  return y, z\n}\n");
  std::vector<ir::HostArray> inputs;
  std::vector<Array> free;
  Weights first, second;
  for (const ir::ValueId input : graph.inputs) {
    std::vector<std::int64_t> shape;
    for (const Dim& extent : graph.type(input).shape) shape.push_back(extent.constant());
    const Array array = Array::normal(shape, static_cast<std::int64_t>(inputs.size()) + 1, graph.type(input).dtype);
    inputs.push_back(src::to_host(array));
    const std::string& name = graph.value(input).name;
    if (name[0] != 'w')
      free.push_back(array);
    else
      (name == "w2" ? second : first).add(name, array);
  }
  for (const bool fuse : {true, false}) {
    if (!fuse && GetParam() == "cuda_on_host") continue;  // a kernel compiles for seconds
    Options options = default_options();
    options.fuse = fuse;
    const Executable whole = src::compile_graph(graph, test::backend_of(GetParam()), options);
    const Executable run = whole.bind(first).bind(second);
    EXPECT_LT(run.stats().bound_bytes, 4 * (24 * 16 + 2 * 24) + 2 * 24);
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<ir::HostArray> results;
      for (const Array& result : run(free)) results.push_back(src::to_host(result));
      for (const ir::Comparison& comparison : ir::compare_with_interpreter(graph, inputs, results, {}))
        EXPECT_TRUE(comparison.equal) << "fuse " << fuse << ", worst " << comparison.max_tolerance_ratio;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, BindOn, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon
