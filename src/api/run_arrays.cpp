// Runs on host arrays. A CPU works on them where they lie; for a device they are copied to memory of it and back.
#include <fmt/format.h>

#include <algorithm>

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

std::vector<Buffer> buffers_of(const ir::Graph& graph, const ArrayRefs& inputs) {
  if (inputs.size() != graph.inputs.size())
    throw Error(ErrorKind::argument,
                fmt::format("graph '{}' takes {} inputs, {} given", graph.name, graph.inputs.size(), inputs.size()), {},
                "give one array for each input, in the graph's order");
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
    for (std::size_t i = 0; i < outputs.size(); ++i)
      shape_output(outputs[i], graph.type(graph.outputs[i]).dtype, record.output_shapes[i], inputs,
                   graph.outputs_names[i]);
  });
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
    for (std::size_t i = 0; i < host.size(); ++i)
      if (bytes_[i] > 0) backend_.copy_out(host[i].data, buffers_[i].data, bytes_[i], nullptr);
  }

 private:
  const runtime::Backend& backend_;
  std::vector<Buffer> buffers_;
  std::vector<std::size_t> bytes_;
  std::vector<runtime::Memory> memory_;
};

}  // namespace

void Executable::run(const ArrayRefs& inputs, std::vector<Array>& outputs, const Bindings& bindings) const {
  const runtime::Backend& backend = *impl_->backend;
  const runtime::NvtxRange range(impl_->nvtx, impl_->plan.graph.name);
  const std::vector<Buffer> from = buffers_of(impl_->plan.graph, inputs);
  const auto record = impl_->admit(from, bindings);
  shape_outputs(outputs, impl_->plan.graph, *record, from);
  const std::vector<Buffer> to = tenon::buffers_of(outputs);
  if (backend.target().kind == codegen::TargetKind::cpu) {
    impl_->start(record, from, to, nullptr);
    return;
  }
  const Staged device_from(backend, from), device_to(backend, to);
  device_from.fill_from(from);
  impl_->start(record, device_from.buffers(), device_to.buffers(), nullptr);
  device_to.copy_to(to);
  backend.synchronize(nullptr);
}

std::vector<Array> Executable::operator()(const ArrayRefs& inputs, const Bindings& bindings) const {
  std::vector<Array> results;
  run(inputs, results, bindings);
  return results;
}

}  // namespace tenon
