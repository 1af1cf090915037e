// Runs on arrays of the executable's device: they lie where kernels work.
#include <fmt/format.h>

#include "runtime/executable.h"
#include "src/api/open_device.h"
#include "tenon/compile.h"

namespace tenon {
namespace src {

void check_inputs(const Executable::Impl& impl, const DeviceArrayRefs& inputs) {
  const ir::Graph& graph = impl.plan.graph;
  if (inputs.size() != impl.free_inputs())
    throw Error(ErrorKind::argument,
                fmt::format("graph '{}' takes {} inputs, {} given", graph.name, impl.free_inputs(), inputs.size()), {},
                "give one array for each input, in the graph's order");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Device device = inputs[i].device();
    if (!device.impl()->same_place(*impl.backend))
      throw Error(ErrorKind::argument,
                  fmt::format("input '{}' is on {}, graph '{}' is compiled for {}", graph.value(graph.inputs[i]).name,
                              device.name(), graph.name, impl.backend->device_name()),
                  {}, "compile for the arrays' device: compile(graph, device)");
  }
}

Device device_of(const Executable::Impl& impl) {
  return Device(std::make_shared<const Device::Impl>(impl.backend, Options()));
}

}  // namespace src

namespace {

bool has_memory_of(const DeviceArray& output, const DeviceArrayRefs& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (output.data() != nullptr && output.data() == inputs[i].data()) return true;
  return false;
}

// One array for each output with memory of its own. No array that is read meanwhile may move or end.
void shape_outputs(const Executable::Impl& impl, const runtime::LaunchRecord& record, const DeviceArrayRefs& inputs,
                   const Device& device, std::vector<DeviceArray>& outputs) {
  const ir::Graph& graph = impl.plan.graph;
  const auto refuse = [&](const std::string& message) {
    throw Error(ErrorKind::argument, message, {}, "give outputs arrays of their own");
  };
  if (outputs.size() != impl.own_outputs.size()) {
    for (const DeviceArray& output : outputs)
      if (has_memory_of(output, inputs))
        refuse(fmt::format("{} arrays given for {} outputs, an input's among them", outputs.size(),
                           impl.own_outputs.size()));
    outputs.resize(impl.own_outputs.size());
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t output = impl.own_outputs[i];
    const DType dtype = graph.type(graph.outputs[output]).dtype;
    if (outputs[i].dtype() == dtype && outputs[i].shape() == record.output_shapes[i] && outputs[i].data() != nullptr)
      continue;
    if (has_memory_of(outputs[i], inputs))
      refuse(
          fmt::format("output '{}' has the array of an input of another dtype or shape", graph.outputs_names[output]));
    outputs[i].reset(device, dtype, record.output_shapes[i]);
  }
}

}  // namespace

void Executable::run_async(std::span<const Buffer> inputs, std::span<const Buffer> outputs, const Stream& stream,
                           const Bindings& bindings) const {
  src::check_stream(stream, *impl_->backend);
  run_async(inputs, outputs, stream.handle(), bindings);
}

void Executable::run_async(const DeviceArrayRefs& inputs, std::vector<DeviceArray>& outputs, const Stream& stream,
                           const Bindings& bindings) const {
  src::check_inputs(*impl_, inputs);
  src::check_stream(stream, *impl_->backend);
  const runtime::NvtxRange range(impl_->nvtx, impl_->plan.graph.name);
  const std::vector<Buffer> from = buffers_of(inputs);
  const auto record = impl_->admit(from, bindings);
  shape_outputs(*impl_, *record, inputs, stream.device(), outputs);
  std::vector<Buffer> to;
  to.reserve(outputs.size());
  for (const DeviceArray& output : outputs) to.push_back(output.buffer());
  impl_->start(record, from, to, stream.handle());
}

void Executable::run(const DeviceArrayRefs& inputs, std::vector<DeviceArray>& outputs, const Bindings& bindings) const {
  const Device device = inputs.size() > 0 ? inputs[0].device() : src::device_of(*impl_);
  run_async(inputs, outputs, device.default_stream(), bindings);
  impl_->backend->synchronize(nullptr);
}

std::vector<DeviceArray> Executable::operator()(const DeviceArrayRefs& inputs, const Bindings& bindings) const {
  std::vector<DeviceArray> results;
  run(inputs, results, bindings);
  return results;
}

}  // namespace tenon
