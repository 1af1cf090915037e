// Executable's conveniences: host arrays in and out, and every kernel as data.
#include <fmt/format.h>

#include <functional>

#include "ir/graph/host_memory.h"
#include "ir/graph/sizes.h"
#include "ir/interpret/interpret.h"
#include "runtime/executable.h"
#include "src/api/host_array.h"
#include "tenon/compile.h"

namespace tenon {
namespace {

// Target memory for one array.
class Held {
 public:
  Held(const runtime::Backend& backend, DType dtype, std::vector<std::int64_t> shape) : backend_(backend) {
    bytes_ = static_cast<std::size_t>(ir::byte_count(dtype, shape).value());  // of a bound graph: ir/graph/bind.cpp
    buffer_ = {bytes_ > 0 ? backend.allocate(bytes_) : nullptr, dtype, std::move(shape)};
  }
  ~Held() {
    if (buffer_.data != nullptr) backend_.release(buffer_.data);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const Buffer& buffer() const { return buffer_; }
  void fill(const Array& array) const {
    if (bytes_ > 0) backend_.copy_in(buffer_.data, array.bytes.data(), bytes_, nullptr);
  }
  Array read() const {
    Array array = ir::with_host_memory(
        "a result", [&] { return Array{buffer_.dtype, buffer_.shape, std::vector<std::byte>(bytes_)}; });
    if (bytes_ > 0) backend_.copy_out(array.bytes.data(), buffer_.data, bytes_, nullptr);
    return array;
  }

 private:
  const runtime::Backend& backend_;
  std::size_t bytes_ = 0;
  Buffer buffer_;
};

std::vector<Buffer> buffers_of(const std::vector<std::unique_ptr<Held>>& arrays) {
  std::vector<Buffer> buffers;
  for (const auto& array : arrays) buffers.push_back(array->buffer());
  return buffers;
}

std::string launch_text(const runtime::LaunchRecord& record, std::size_t planned, bool cpu) {
  const codegen::LaunchRule& rule = record.built->launches[planned].built->source.launch;
  for (const runtime::PreparedLaunch& launch : record.launches)
    if (launch.planned == planned && cpu)
      return fmt::format("tasks {}", launch.function.grid);
    else if (launch.planned == planned)
      return fmt::format("grid ({}, 1, 1) block {} shared {}", launch.function.grid, rule.block, rule.shared_bytes);
  return "nothing to launch at these sizes";
}

std::string lines_of(const std::vector<codegen::Kernel>& members,
                     const std::function<std::string(const codegen::Kernel&)>& text) {
  std::string all;
  for (const codegen::Kernel& member : members) all += (all.empty() ? "" : "\n") + text(member);
  return all;
}

KernelInfo describe(const Executable::Impl& impl, const runtime::LaunchRecord& record, std::size_t planned) {
  const std::vector<int>& groups = record.built->launches[planned].groups;
  const runtime::BuiltLaunch& built = *record.built->launches[planned].built;
  const bool cpu = impl.backend->target().kind == codegen::TargetKind::cpu;
  const std::string disassembly = impl.backend->disassemble(built.source);
  KernelInfo info;
  info.name = built.source.entry;
  info.group = groups.front();
  info.kernel_class = built.launch.members.size() > 1 ? "pack" : ir::name_of(built.launch.members.front().kernel_class);
  ir::Plan part;
  part.graph = impl.plan.graph;
  for (int group : groups) {
    part.groups.push_back(impl.plan.groups[static_cast<std::size_t>(group)]);
    info.bytes += ir::unavoidable_bytes(impl.plan, impl.plan.groups[static_cast<std::size_t>(group)], record.bindings);
  }
  info.plan = ir::print(part);
  info.kernel = lines_of(built.launch.members, [](const codegen::Kernel& kernel) { return codegen::print(kernel); });
  info.schedule =
      lines_of(built.launch.members, [](const codegen::Kernel& kernel) { return codegen::print(kernel.schedule); });
  info.source = built.source.text;
  (cpu ? info.assembly : info.ptx) = disassembly;
  if (built.binary.entry) info.binary = built.binary.entry->binary;
  info.resources = built.binary.resources;
  info.launch = launch_text(record, planned, cpu);
  return info;
}

}  // namespace

std::vector<Array> Executable::operator()(const std::vector<Array>& inputs, const Bindings& bindings) const {
  const runtime::Backend& backend = *impl_->backend;
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Array& input : inputs) {
    src::check_bytes(input);
    shapes.push_back(input.shape);
  }
  const auto result_shapes = output_shapes(shapes, bindings);

  std::vector<std::unique_ptr<Held>> from, to;
  for (const Array& input : inputs) {
    from.push_back(std::make_unique<Held>(backend, input.dtype, input.shape));
    from.back()->fill(input);
  }
  const ir::Graph& graph = impl_->plan.graph;
  for (const std::size_t output : impl_->own_outputs)
    to.push_back(std::make_unique<Held>(backend, graph.type(graph.outputs[output]).dtype, result_shapes[to.size()]));
  run(buffers_of(from), buffers_of(to), bindings);

  std::vector<Array> results;
  auto own = to.begin();
  for (const int updated : graph.updates)
    results.push_back(updated < 0 ? (*own++)->read() : from[static_cast<std::size_t>(updated)]->read());
  backend.synchronize(nullptr);
  return results;
}

std::vector<UpdateInfo> Executable::updates(const Bindings& bindings) const {
  const ir::Graph& graph = impl_->plan.graph;
  ir::check_bindings(graph, bindings);
  std::vector<UpdateInfo> infos;
  for (const runtime::PlacedUpdate& update : impl_->record_for(bindings)->updates)
    infos.push_back({graph.outputs_names[static_cast<std::size_t>(update.output)],
                     graph.value(graph.inputs[static_cast<std::size_t>(update.input)]).name, update.bytes,
                     update.copied});
  return infos;
}

std::vector<KernelInfo> Executable::kernels(const Bindings& bindings) const {
  ir::check_bindings(impl_->plan.graph, bindings);
  const auto record = impl_->record_for(bindings);
  std::vector<KernelInfo> infos;
  for (std::size_t planned = 0; planned < record->built->launches.size(); ++planned)
    infos.push_back(describe(*impl_, *record, planned));
  return infos;
}

}  // namespace tenon
