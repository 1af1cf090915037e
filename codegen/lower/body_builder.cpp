#include "codegen/lower/body_builder.h"

#include <algorithm>
#include <cstdint>

#include "codegen/lower/one_rounding.h"
#include "ir/interpret/numerics.h"
#include "ir/ops/formats.h"

namespace tenon::codegen {

using ir::Op;

std::uint64_t BodyBuilder::axes_of(const Index& index) const {
  std::uint64_t axes = 0;
  for (std::size_t axis = 0; axis < kernel_.axes.size(); ++axis)
    if (index.depends_on(static_cast<int>(axis))) axes |= std::uint64_t{1} << axis;
  for (int value : index.values()) axes |= kernel_.instr(value).depends;
  return axes;
}

std::uint64_t BodyBuilder::axes_of(const std::vector<Guard>& guards) const {
  std::uint64_t axes = 0;
  for (const Guard& guard : guards) axes |= axes_of(guard.index);
  return axes;
}

std::vector<int> BodyBuilder::axes_in(const std::vector<Index>& indices) const {
  std::vector<int> axes;
  for (std::size_t axis = 0; axis < kernel_.axes.size(); ++axis)
    if (std::any_of(indices.begin(), indices.end(),
                    [&](const Index& index) { return index.depends_on(static_cast<int>(axis)); }))
      axes.push_back(static_cast<int>(axis));
  return axes;
}

InstrId BodyBuilder::add(Instr instr) {
  for (InstrId arg : instr.args) instr.depends |= kernel_.instr(arg).depends;
  instr.depends |=
      axes_of(instr.index) | axes_of(instr.access.offset) | axes_of(instr.access.guards) | axes_of(instr.guards);
  for (int axis : instr.axes) instr.depends &= ~(std::uint64_t{1} << axis);
  kernel_.body.push_back(std::move(instr));
  return static_cast<InstrId>(kernel_.body.size()) - 1;
}

InstrId BodyBuilder::literal(DType dtype, ir::Scalar value) {
  Instr instr;
  instr.kind = InstrKind::literal;
  instr.dtype = dtype;
  instr.literal = value;
  return add(std::move(instr));
}

InstrId BodyBuilder::index(DType dtype, const Index& index, std::string_view note) {
  Instr instr;
  instr.kind = InstrKind::index;
  instr.dtype = dtype;
  instr.index = index;
  instr.note = note;
  return add(std::move(instr));
}

InstrId BodyBuilder::map(Op op, DType dtype, std::vector<InstrId> args) {
  Instr instr;
  instr.kind = InstrKind::map;
  instr.dtype = dtype;
  instr.op = op;
  instr.args = std::move(args);
  instr.note = ir::name_of(op);
  return add(std::move(instr));
}

InstrId BodyBuilder::inside(const std::vector<Guard>& guards) {
  Instr instr;
  instr.kind = InstrKind::inside;
  instr.dtype = DType::bool_;
  instr.guards = guards;
  return add(std::move(instr));
}

InstrId BodyBuilder::select(const std::vector<Guard>& condition, DType dtype, InstrId chosen, InstrId other) {
  return map(Op::where, dtype, {inside(condition), chosen, other});
}

// An array without elements is never read, but an emitter may take a load that stands still along a loop ahead of it,
// and the loop then turns out empty: a guard that never holds keeps the address from being followed.
InstrId BodyBuilder::load(int operand, const Shape& shape, const std::vector<Index>& at, std::vector<Guard> guards) {
  if (element_count(shape).bounds(kernel_.symbols).max == 0) guards.push_back({Index(0), Dim(0)});
  Instr instr;
  instr.kind = InstrKind::load;
  instr.dtype = kernel_.operands[static_cast<std::size_t>(operand)].dtype;
  instr.access = {operand, linearize(at, shape), std::move(guards)};
  return add(std::move(instr));
}

// Whether a value in the compute type is already one of its dtype's values.
bool BodyBuilder::exact(InstrId id) const {
  const Instr& instr = kernel_.instr(id);
  if (instr.dtype == compute_type(instr.dtype)) return true;
  switch (instr.kind) {
    case InstrKind::literal:
    case InstrKind::load:
    case InstrKind::index:
    case InstrKind::inside:
    case InstrKind::round:
    case InstrKind::random: return true;
    case InstrKind::map: return instr.op == Op::cast || instr.op == Op::bitcast || selects_exact(instr);
    case InstrKind::reduce:  // of nothing it is an infinity
      return selects_exact(instr) && ir::real_format(instr.dtype).has_infinity;
    case InstrKind::contract: return false;
  }
  return false;
}

bool BodyBuilder::selects_exact(const Instr& instr) const {
  return ir::selects(instr.op) && std::all_of(instr.args.begin(), instr.args.end(), [&](InstrId arg) {
           return kernel_.instr(arg).dtype == DType::bool_ || (kernel_.instr(arg).dtype == instr.dtype && exact(arg));
         });
}

InstrId BodyBuilder::rounded(InstrId id) {
  if (exact(id)) return id;
  if (const auto known = rounded_.find(id); known != rounded_.end()) return known->second;
  Instr instr;
  instr.kind = InstrKind::round;
  instr.dtype = kernel_.instr(id).dtype;
  instr.args = {id};
  instr.note = "round";
  return rounded_[id] = add(std::move(instr));
}

InstrId BodyBuilder::contracted(Op op, DType dtype, const std::vector<InstrId>& args,
                                const std::vector<InstrId>& used) {
  if (!is_real(dtype) || (op != Op::add && op != Op::sub)) return -1;
  const std::uint64_t depends = kernel_.instr(args[0]).depends | kernel_.instr(args[1]).depends;
  const auto is_quotient = [&](InstrId id) {
    const Instr& instr = kernel_.instr(id);
    return instr.kind == InstrKind::map && instr.op == Op::div;
  };
  for (const std::size_t side : {0, 1}) {
    if (is_quotient(args[1 - side])) continue;  // a routine, across which both factors would have to be kept
    if (args[side] != used[side]) continue;
    const Product product = contracted_product(kernel_, args[side], dtype, depends);
    if (product.mul < 0) continue;
    const auto negated = [&](InstrId id, bool really) { return really ? map(Op::neg, dtype, {id}) : id; };
    const bool subtracted = op == Op::sub && side == 1;
    const std::vector<InstrId> factors = kernel_.instr(product.mul).args;
    const InstrId rest = negated(args[1 - side], op == Op::sub && side == 0);
    const InstrId factor = negated(factors[0], product.negated != subtracted);
    return map(Op::fma, dtype, {factor, factors[1], rest});
  }
  return -1;
}

}  // namespace tenon::codegen
