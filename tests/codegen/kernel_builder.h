// Kernels written by hand: what lowering would make, one instruction a call.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::test {

using codegen::Access;
using codegen::Guard;
using codegen::Index;
using codegen::Instr;
using codegen::InstrId;
using codegen::InstrKind;
using codegen::Kernel;

class KernelBuilder {
 public:
  explicit KernelBuilder(ir::KernelClass kernel_class, std::vector<codegen::Axis> axes) {
    kernel.kernel_class = kernel_class;
    static const char* const names[] = {"map", "reduce", "contract", "attend"};
    kernel.name = names[static_cast<int>(kernel_class)];
    kernel.axes = std::move(axes);
  }

  int input(DType dtype, Shape shape) { return operand(dtype, std::move(shape), false, "in"); }
  int output(DType dtype, Shape shape) { return operand(dtype, std::move(shape), true, "out"); }

  InstrId load(int operand, Index offset, std::vector<Guard> guards = {}) {
    Instr instr;
    instr.kind = InstrKind::load;
    instr.dtype = kernel.operands[static_cast<std::size_t>(operand)].dtype;
    instr.access = {operand, std::move(offset), std::move(guards)};
    return add(instr);
  }
  InstrId literal(ir::Scalar value, DType dtype) {
    Instr instr;
    instr.dtype = dtype;
    instr.literal = value;
    return add(instr);
  }
  InstrId map(ir::Op op, std::vector<InstrId> args, DType dtype) {
    Instr instr;
    instr.kind = InstrKind::map;
    instr.op = op;
    instr.args = std::move(args);
    instr.dtype = dtype;
    instr.note = ir::name_of(op);
    return add(instr);
  }
  /// A map whose dtype is that of its last operand.
  InstrId map(ir::Op op, std::vector<InstrId> args) {
    const DType dtype = kernel.instr(args.back()).dtype;
    return map(op, std::move(args), dtype);
  }
  InstrId index(Index value, DType dtype) {
    Instr instr;
    instr.kind = InstrKind::index;
    instr.index = std::move(value);
    instr.dtype = dtype;
    return add(instr);
  }
  InstrId inside(std::vector<Guard> guards) {
    Instr instr;
    instr.kind = InstrKind::inside;
    instr.guards = std::move(guards);
    instr.dtype = DType::bool_;
    return add(instr);
  }
  InstrId round(InstrId arg, DType dtype) {
    Instr instr;
    instr.kind = InstrKind::round;
    instr.args = {arg};
    instr.dtype = dtype;
    return add(instr);
  }
  InstrId random(InstrId seed, Index element, std::int64_t stream, int word) {
    Instr instr;
    instr.kind = InstrKind::random;
    instr.args = {seed};
    instr.index = std::move(element);
    instr.stream = stream;
    instr.word = word;
    instr.dtype = DType::i32;
    return add(instr);
  }
  /// Over all reduced axes.
  InstrId reduce(ir::Op op, InstrId arg, DType dtype) {
    Instr instr;
    instr.kind = InstrKind::reduce;
    instr.op = op;
    instr.args = {arg};
    instr.dtype = dtype;
    instr.note = ir::name_of(op);
    for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (kernel.axes[axis].reduced) instr.axes.push_back(static_cast<int>(axis));
    return add(instr);
  }
  /// Over `axis` alone.
  InstrId reduce_along(int axis, ir::Op op, InstrId arg) {
    Instr instr;
    instr.kind = InstrKind::reduce;
    instr.op = op;
    instr.args = {arg};
    instr.axes = {axis};
    instr.dtype = kernel.instr(arg).dtype;
    instr.note = ir::name_of(op);
    return add(instr);
  }
  InstrId contract(int axis, InstrId a, InstrId b, DType dtype, bool tf32 = false) {
    Instr instr;
    instr.kind = InstrKind::contract;
    instr.args = {a, b};
    instr.axes = {axis};
    instr.dtype = dtype;
    instr.tf32 = tf32;
    instr.note = "matmul";
    return add(instr);
  }
  void store(int operand, Index offset, InstrId value, std::vector<Guard> guards = {}) {
    kernel.stores.push_back({{operand, std::move(offset), std::move(guards)}, value});
  }

  Kernel kernel;

 private:
  int operand(DType dtype, Shape shape, bool written, const std::string& prefix) {
    const int number = written ? outputs_++ : inputs_++;
    kernel.operands.push_back({dtype, std::move(shape), written, prefix + std::to_string(number)});
    return static_cast<int>(kernel.operands.size()) - 1;
  }

  std::uint64_t axes_of(const Index& index) const {
    std::uint64_t axes = 0;
    for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (index.depends_on(static_cast<int>(axis))) axes |= std::uint64_t{1} << axis;
    for (int value : index.values()) axes |= kernel.instr(value).depends;
    return axes;
  }

  InstrId add(Instr instr) {
    instr.depends = axes_of(instr.index) | axes_of(instr.access.offset);
    for (const Guard& guard : instr.access.guards) instr.depends |= axes_of(guard.index);
    for (const Guard& guard : instr.guards) instr.depends |= axes_of(guard.index);
    for (InstrId arg : instr.args) instr.depends |= kernel.instr(arg).depends;
    for (int axis : instr.axes) instr.depends &= ~(std::uint64_t{1} << axis);
    kernel.body.push_back(std::move(instr));
    return static_cast<InstrId>(kernel.body.size()) - 1;
  }

  int inputs_ = 0, outputs_ = 0;
};

}  // namespace tenon::test
