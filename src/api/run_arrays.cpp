// Runs on host arrays. A CPU works on them where they lie; for a device they are copied to memory of it and back.
#include "src/api/run_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/graph/host_memory.h"
#include "ir/graph/sizes.h"
#include "runtime/executable.h"
#include "runtime/memory.h"
#include "src/api/host_array.h"
#include "tenon/compile.h"

namespace tenon {

Buffer buffer_of(Array& array) {
  src::check_bytes(array);
  return {array.bytes.data(), array.dtype, array.shape};
}

// An input is not written.
Buffer buffer_of(const Array& array) { return buffer_of(const_cast<Array&>(array)); }  // NOLINT(*-const-cast)

std::vector<Buffer> buffers_of(std::vector<Array>& arrays) {
  std::vector<Buffer> buffers;
  buffers.reserve(arrays.size());
  for (Array& array : arrays) buffers.push_back(buffer_of(array));
  return buffers;
}

std::vector<Buffer> buffers_of(const std::vector<Array>& arrays) {
  return buffers_of(const_cast<std::vector<Array>&>(arrays));  // NOLINT(*-const-cast)
}

namespace {

std::vector<Buffer> buffers_of(const Executable::Impl& executable, const ArrayRefs& inputs) {
  if (inputs.size() != executable.free_inputs())
    throw Error(
        ErrorKind::argument,
        fmt::format("graph '{}' takes {} inputs{}, {} given", executable.plan.graph.name, executable.free_inputs(),
                    executable.bound.buffers.empty() ? "" : " that are not bound", inputs.size()),
        {}, "give one array for each input, in the graph's order");
  std::vector<Buffer> buffers;
  buffers.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) buffers.push_back(buffer_of(inputs[i]));
  return buffers;
}

bool is_input(const Array& array, const std::vector<Buffer>& inputs) {
  return !array.bytes.empty() && std::any_of(inputs.begin(), inputs.end(),
                                             [&](const Buffer& input) { return input.data == array.bytes.data(); });
}

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::argument, message, {}, "give outputs arrays of their own");
}

// One array for each output. No array that is read meanwhile may move or end.
void number_outputs(std::vector<Array>& outputs, std::size_t wanted, const std::vector<Buffer>& inputs) {
  if (outputs.size() == wanted) return;
  for (const Array& array : outputs)
    if (is_input(array, inputs))
      refuse(fmt::format("{} arrays given for {} outputs, an input's among them", outputs.size(), wanted));
  outputs.resize(wanted);
}

// Gives an output its type, and memory where it has none that suffices.
void shape_output(Array& array, DType dtype, const std::vector<std::int64_t>& shape, const std::vector<Buffer>& inputs,
                  const std::string& name) {
  const auto bytes = static_cast<std::size_t>(ir::byte_count(dtype, shape).value());  // bound: ir/graph/bind.cpp
  if (array.dtype == dtype && array.shape == shape && array.bytes.size() == bytes) return;
  if (is_input(array, inputs))
    refuse(fmt::format("output '{}' has the array of an input of another dtype or shape", name));
  array.dtype = dtype;
  array.shape = shape;
  array.bytes.resize_uninitialised(bytes);
}

void shape_outputs(std::vector<Array>& outputs, const ir::Graph& graph, const runtime::LaunchRecord& record,
                   const std::vector<Buffer>& inputs) {
  ir::with_host_memory("results", [&] {
    number_outputs(outputs, graph.outputs.size(), inputs);
    std::size_t own = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const int updated = graph.updates[i];
      shape_output(outputs[i], graph.type(graph.outputs[i]).dtype,
                   updated < 0 ? record.output_shapes[own++] : inputs[static_cast<std::size_t>(updated)].shape, inputs,
                   graph.outputs_names[i]);
    }
  });
}

// The arrays of results that update inputs take the place of these, with their content.
void take_state(const ir::Graph& graph, const std::vector<Buffer>& results, std::vector<Buffer>& inputs) {
  for (std::size_t i = 0; i < results.size(); ++i)
    for (std::size_t input = 0; input < inputs.size() && graph.updates[i] >= 0; ++input)
      if (graph.updates[i] != static_cast<int>(input) && results[i].data == inputs[input].data &&
          inputs[input].data != nullptr)
        refuse(fmt::format("output '{}' has the array of input '{}', which it does not update", graph.outputs_names[i],
                           graph.value(graph.inputs[input]).name));
  for (std::size_t i = 0; i < results.size(); ++i)
    if (graph.updates[i] >= 0) {
      Buffer& input = inputs[static_cast<std::size_t>(graph.updates[i])];
      const std::int64_t bytes = ir::byte_count(input.dtype, input.shape).value();
      if (bytes > 0 && input.data != results[i].data)
        std::memcpy(results[i].data, input.data, static_cast<std::size_t>(bytes));
      input = results[i];
    }
}

// Memory of the device for some host arrays.
class Staged {
 public:
  Staged(const runtime::Backend& backend, const std::vector<Buffer>& host) : backend_(backend), buffers_(host) {
    for (const Buffer& buffer : host) {
      bytes_.push_back(static_cast<std::size_t>(ir::byte_count(buffer.dtype, buffer.shape).value()));
      memory_.push_back(runtime::allocate(backend, static_cast<std::int64_t>(bytes_.back())));
      buffers_[memory_.size() - 1].data = memory_.back().get();
    }
  }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  void fill_from(const std::vector<Buffer>& host) const {
    for (std::size_t i = 0; i < host.size(); ++i)
      if (bytes_[i] > 0) backend_.copy_in(buffers_[i].data, host[i].data, bytes_[i], nullptr);
  }
  void copy_to(const std::vector<Buffer>& host) const {
    for (std::size_t i = 0; i < host.size(); ++i) copy_to(host[i], i);
  }
  void copy_to(const Buffer& host, std::size_t i) const {
    if (bytes_[i] > 0) backend_.copy_out(host.data, buffers_[i].data, bytes_[i], nullptr);
  }

 private:
  const runtime::Backend& backend_;
  std::vector<Buffer> buffers_;
  std::vector<std::size_t> bytes_;
  std::vector<runtime::Memory> memory_;
};

}  // namespace

void src::run_on_host(const Executable::Impl& executable, std::vector<Buffer> from, std::vector<Array>& outputs,
                      const Bindings& bindings) {
  const runtime::Backend& backend = *executable.backend;
  const ir::Graph& graph = executable.plan.graph;
  const runtime::NvtxRange range(executable.nvtx, graph.name);
  const auto record = executable.admit(from, bindings);
  shape_outputs(outputs, graph, *record, from);
  const std::vector<Buffer> results = tenon::buffers_of(outputs);
  std::vector<Buffer> to;
  for (const std::size_t output : executable.own_outputs) to.push_back(results[output]);
  if (backend.target().kind == codegen::TargetKind::cpu) {
    take_state(graph, results, from);
    executable.start(record, from, to, nullptr);
    return;
  }
  const Staged device_from(backend, from), device_to(backend, to);
  device_from.fill_from(from);
  executable.start(record, device_from.buffers(), device_to.buffers(), nullptr);
  device_to.copy_to(to);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (graph.updates[i] >= 0) device_from.copy_to(results[i], static_cast<std::size_t>(graph.updates[i]));
  backend.synchronize(nullptr);
}

void Executable::run(const ArrayRefs& inputs, std::vector<Array>& outputs, const Bindings& bindings) const {
  src::run_on_host(*impl_, buffers_of(*impl_, inputs), outputs, bindings);
}

std::vector<Array> Executable::operator()(const ArrayRefs& inputs, const Bindings& bindings) const {
  std::vector<Array> results;
  run(inputs, results, bindings);
  return results;
}

}  // namespace tenon
