// Plan, lower, emit, run on the host, compare.
#include "tests/codegen/cuda_numerics.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <random>
#include <set>

#include "ir/fusion/plan.h"
#include "ir/graph/check.h"
#include "ir/ops/op.h"
#include "ir/passes/passes.h"
#include "ir/text/text.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/cuda_on_host.h"
#include "tests/harness/fenced.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// The plan of a graph that the planner makes one kernel of, with operands in the graph's order.
ir::Plan one_kernel(const ir::Graph& graph) {
  std::set<std::string> passes;
  for (const ir::Pass& pass : ir::pass_table()) passes.emplace(pass.name);
  ir::PlanOptions options;
  options.max_operands = 200;
  options.mixed_order = true;
  options.cost.bandwidth_gb_s = 1e-3;  // small as the tensors are, they are worth sharing
  ir::Plan plan = ir::cut_into_groups(ir::run_passes(graph, passes), options);
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

}  // namespace

CudaKernel one_cuda_kernel(const std::string& text, const Bindings& bindings, const Adjust& adjust) {
  CudaKernel result;
  result.written = ir::parse(text);
  result.plan = one_kernel(ir::eliminate_dead_code(ir::eliminate_common_subexpressions(ir::decompose(result.written))));
  const Target target = test::cuda_target_for("sm_90a");
  result.kernel = test::scheduled_kernel(result.plan, 0, specialize(result.plan, bindings), target);
  if (auto* reduce = std::get_if<ReduceSchedule>(&result.kernel.schedule))
    reduce->cut =
        persistent_blocks(*reduce)
            ? reduce->cut
            : in_parts(std::min(parts_of(*reduce), 3));  // a thread for each of a device's takes too long here
  if (adjust) adjust(result.kernel);
  result.source = emit_cuda(result.kernel, target);
  return result;
}

CudaKernel expect_right(const std::string& text, const Bindings& bindings, const Adjust& adjust) {
  const CudaKernel run = one_cuda_kernel(text, bindings, adjust);
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
  std::list<test::Fenced> memory;
  for (auto* arrays : {&inputs, &outputs})
    for (ir::HostArray& array : *arrays)
      pointers.push_back(memory.emplace_back(std::span(array.bytes.data(), array.bytes.size())).data());
  test::run_cuda_on_host(run.source, pointers, bindings);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    std::copy_n(static_cast<const std::byte*>(pointers[inputs.size() + i]), outputs[i].bytes.size(),
                outputs[i].bytes.data());
  const auto comparisons = ir::compare_with_interpreter(run.written, inputs, outputs, bindings);
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    EXPECT_TRUE(comparisons[i].equal) << "result " << i << ": " << comparisons[i].mismatches << " of "
                                      << comparisons[i].elements << ", first at " << comparisons[i].first_mismatch
                                      << "\n"
                                      << print(run.kernel) << test::kernel_part(run.source.text);
  return run;
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

}  // namespace tenon::codegen
