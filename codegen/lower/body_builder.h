// Puts instructions behind the others of a kernel's body: what each needs of its operands, of what it varies along and
// of roundings is known here. Which instructions there are is demand.cpp's.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "ir/ops/op.h"

namespace tenon::codegen {

class BodyBuilder {
 public:
  /// `kernel` has its axes and operands.
  explicit BodyBuilder(Kernel& kernel) : kernel_(kernel) {}

  /// Any instruction, with the axes that it varies along: those of its operands, indices and guards, but what it
  /// combines.
  InstrId add(Instr instr);

  InstrId literal(DType dtype, ir::Scalar value);
  InstrId index(DType dtype, const Index& index, std::string_view note);
  InstrId map(ir::Op op, DType dtype, std::vector<InstrId> args);
  /// Whether all guards hold.
  InstrId inside(const std::vector<Guard>& guards);
  /// `chosen` where `condition` holds, else `other`.
  InstrId select(const std::vector<Guard>& condition, DType dtype, InstrId chosen, InstrId other);
  /// An element of an operand of this shape.
  InstrId load(int operand, const Shape& shape, const std::vector<Index>& at, std::vector<Guard> guards);

  /// The value as its dtype holds it: a `round`, the same for all that ask, unless the compute type's value is one of
  /// the dtype's anyway.
  InstrId rounded(InstrId id);

  /// a + b or a - b as an fma, where it alone uses one of two products; -1 elsewhere. `used`: what the graph adds, of
  /// which `args` are roundings or selections.
  InstrId contracted(ir::Op op, DType dtype, const std::vector<InstrId>& args, const std::vector<InstrId>& used);

  /// The axes that an index varies along, bit a for axis a.
  std::uint64_t axes_of(const Index& index) const;
  /// The axes on which any of the indices depends, in order.
  std::vector<int> axes_in(const std::vector<Index>& indices) const;

 private:
  std::uint64_t axes_of(const std::vector<Guard>& guards) const;
  bool exact(InstrId id) const;
  bool selects_exact(const Instr& instr) const;

  Kernel& kernel_;
  std::unordered_map<InstrId, InstrId> rounded_;
};

}  // namespace tenon::codegen
