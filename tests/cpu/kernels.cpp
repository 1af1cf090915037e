// Building and running kernels by hand.
#include "tests/cpu/kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/cpu/compile.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/jit.h"
#include "runtime/cpu/thread_pool.h"

namespace tenon::test {

using codegen::Index;
using codegen::Instr;
using codegen::InstrId;
using codegen::InstrKind;

namespace {

std::uint64_t depends_on(const codegen::Kernel& kernel, const Index& index) {
  std::uint64_t axes = 0;
  for (int axis = 0; axis < static_cast<int>(kernel.axes.size()); ++axis)
    if (index.depends_on(axis)) axes |= std::uint64_t{1} << axis;
  for (const int value : index.values()) axes |= kernel.instr(value).depends;
  return axes;
}

}  // namespace

KernelBuilder::KernelBuilder(ir::KernelClass kernel_class, const std::string& name) {
  kernel.name = name;
  kernel.kernel_class = kernel_class;
}

Index KernelBuilder::axis(const Dim& extent, bool reduced) {
  const int number = static_cast<int>(kernel.axes.size());
  kernel.axes.push_back({(reduced ? "r" : "i") + std::to_string(number), extent, reduced});
  return Index::axis(number);
}

int KernelBuilder::operand(DType dtype, Shape shape, bool written) {
  const std::string name = (written ? "out" : "in") + std::to_string(kernel.operands.size());
  kernel.operands.push_back({dtype, std::move(shape), written, name});
  return static_cast<int>(kernel.operands.size()) - 1;
}

InstrId KernelBuilder::add(Instr instr) {
  for (const InstrId arg : instr.args) instr.depends |= kernel.instr(arg).depends;
  instr.depends |= depends_on(kernel, instr.access.offset) | depends_on(kernel, instr.index);
  for (const auto& guard : instr.access.guards) instr.depends |= depends_on(kernel, guard.index);
  for (const auto& guard : instr.guards) instr.depends |= depends_on(kernel, guard.index);
  for (const int axis : instr.axes) instr.depends &= ~(std::uint64_t{1} << axis);
  kernel.body.push_back(std::move(instr));
  return static_cast<InstrId>(kernel.body.size()) - 1;
}

InstrId KernelBuilder::load(int operand, const Index& offset, std::vector<codegen::Guard> guards) {
  Instr instr;
  instr.kind = InstrKind::load;
  instr.dtype = kernel.operands[static_cast<std::size_t>(operand)].dtype;
  instr.access = {operand, offset, std::move(guards)};
  return add(std::move(instr));
}

InstrId KernelBuilder::map(ir::Op op, std::vector<InstrId> args, DType dtype) {
  Instr instr;
  instr.kind = InstrKind::map;
  instr.op = op;
  instr.args = std::move(args);
  instr.dtype = dtype;
  return add(std::move(instr));
}

InstrId KernelBuilder::literal(ir::Scalar value, DType dtype) {
  Instr instr;
  instr.literal = value;
  instr.dtype = dtype;
  return add(std::move(instr));
}

InstrId KernelBuilder::index(const Index& index, DType dtype) {
  Instr instr;
  instr.kind = InstrKind::index;
  instr.index = index;
  instr.dtype = dtype;
  return add(std::move(instr));
}

InstrId KernelBuilder::reduce(ir::Op op, InstrId arg, std::vector<int> axes, DType dtype) {
  Instr instr;
  instr.kind = InstrKind::reduce;
  instr.op = op;
  instr.args = {arg};
  instr.axes = std::move(axes);
  instr.dtype = dtype;
  return add(std::move(instr));
}

InstrId KernelBuilder::contract(InstrId a, InstrId b, std::vector<int> axes, DType dtype) {
  Instr instr;
  instr.kind = InstrKind::contract;
  instr.args = {a, b};
  instr.axes = std::move(axes);
  instr.dtype = dtype;
  return add(std::move(instr));
}

void KernelBuilder::store(InstrId value, const Index& offset, DType dtype, Shape shape) {
  kernel.stores.push_back({{operand(dtype, std::move(shape), true), offset, {}}, value});
}

void KernelBuilder::symbol(const std::string& name, SymbolBounds bounds) {
  kernel.symbols[name] = bounds;
  kernel.dims.push_back(name);
}

codegen::Target test_target(const RunOptions& options) {
  codegen::Target target = runtime::cpu::host_target();
  if (options.vector_bytes != 0 && options.vector_bytes < target.vector_bytes)
    target = runtime::cpu::host_target(options.vector_bytes);
  if (options.l3_bytes != 0) target.l3_bytes = options.l3_bytes, target.streamed_row_bytes = 1;
  target.threads = options.threads;
  return target;
}

namespace {

// Memory for one output, with 64 bytes of 0xA5 on either side.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::size_t misalign) : bytes_(bytes), memory_(bytes + 256, std::byte{0xA5}) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = 64 + (64 - address % 64) + misalign;
  }
  std::byte* data() { return memory_.data() + start_; }
  bool intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if ((i < start_ || i >= start_ + bytes_) && memory_[i] != std::byte{0xA5}) return false;
    return true;
  }

 private:
  std::size_t bytes_, start_ = 0;
  std::vector<std::byte> memory_;
};

void launch(const runtime::cpu::LoadedObject& object, const std::string& entry, std::int64_t tasks, int threads,
            const std::vector<void*>& pointers, const std::vector<std::int64_t>& dims) {
  const runtime::cpu::KernelFunction function = object.function(entry);
  runtime::cpu::parallel_for(tasks, threads, [&](std::int64_t begin, std::int64_t end) {
    function(pointers.data(), dims.data(), begin, end);
  });
}

}  // namespace

std::vector<ir::HostArray> run(codegen::Kernel kernel, const std::vector<ir::HostArray>& inputs,
                               const RunOptions& options) {
  const codegen::Target target = test_target(options);
  if (!options.keep_schedule) kernel.schedule = codegen::choose_schedule(kernel, target);
  const codegen::Source source = codegen::emit_llvm(kernel, target);
  const runtime::cpu::Object object = runtime::cpu::compile(source.text, target);
  const runtime::cpu::LoadedObject loaded = runtime::cpu::Jit().load(object.bytes);

  std::vector<ir::HostArray> outputs;
  std::vector<Guarded> memory;
  std::vector<void*> pointers;
  for (const codegen::Operand& operand : kernel.operands) {
    if (!operand.written) {
      pointers.push_back(const_cast<std::byte*>(inputs[pointers.size()].bytes.data()));
      continue;
    }
    ir::HostArray array{operand.dtype, {}, {}};
    std::size_t bytes = static_cast<std::size_t>(size_of(operand.dtype));
    for (const Dim& extent : operand.shape) {
      array.shape.push_back(extent.evaluate(options.bindings));
      bytes *= static_cast<std::size_t>(array.shape.back());
    }
    array.bytes.resize(bytes);
    outputs.push_back(std::move(array));
    memory.emplace_back(bytes, options.misalign);
    pointers.push_back(memory.back().data());
  }
  std::vector<std::int64_t> dims;
  for (const std::string& name : source.dims) dims.push_back(options.bindings.at(name));
  std::vector<std::byte> scratch(static_cast<std::size_t>(source.scratch_bytes.evaluate(options.bindings)));
  pointers.push_back(scratch.data());
  launch(loaded, source.entry, source.launch.grid_x.evaluate(options.bindings), options.threads, pointers, dims);
  if (!source.finish_entry.empty())
    launch(loaded, source.finish_entry, source.finish.grid_x.evaluate(options.bindings), options.threads, pointers,
           dims);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(memory[i].intact()) << "output " << i << " was written beyond its ends\n" << source.text;
    if (!outputs[i].bytes.empty()) std::memcpy(outputs[i].bytes.data(), memory[i].data(), outputs[i].bytes.size());
  }
  return outputs;
}

ir::HostArray floats(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return array_of(DType::f32, std::move(shape), values);
}

std::vector<float> to_floats(const ir::HostArray& array) { return values_of<float>(array); }

std::vector<float> numbers(std::size_t count, float low, float high, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(engine);
  return values;
}

}  // namespace tenon::test
