// See online.h.
#include "codegen/emit/llvm/reduce/online.h"

#include "codegen/emit/llvm/interleave.h"
#include "codegen/emit/llvm/ops/ops.h"

namespace tenon::codegen::simd {
namespace {

const Instr& maximum_of(const Unit& unit, const OnlineSum& so_far) { return unit.kernel.instr(so_far.what.maximum); }
const Instr& sum_of(const Unit& unit, const OnlineSum& so_far) { return unit.kernel.instr(so_far.what.sum); }

Value* load(Unit& unit, llvm::AllocaInst* at) { return unit.b.CreateLoad(at->getAllocatedType(), at); }

// Elements as a reduction sees them: lanes that are not in use have nothing.
std::vector<Partial> elements_of(Unit& unit, const Instr& reduce, std::vector<Scope>& scopes) {
  evaluate_interleaved(unit, scopes, {reduce.args[0]});
  std::vector<Partial> elements;
  for (Scope& scope : scopes) {
    Value* element = evaluate_lanes(unit, scope, reduce.args[0]);
    if (scope.mask) element = unit.b.CreateSelect(scope.mask, element, identity_of(unit, reduce, scope.lanes).value);
    elements.push_back({element, nullptr});
  }
  return elements;
}

// The shift that follows from `maximum`, a scalar, at the builder's position.
Value* shift_of(Unit& unit, Scope& scope, const OnlineSum& so_far, Value* maximum) {
  Scope here = child_of(scope, unit);
  here.holds_results = true;
  here.values[so_far.what.maximum] = maximum;
  return evaluate(unit, here, so_far.what.shift);
}

// What makes sums of exp(x - from) such of exp(x - to).
Value* rescaling(Unit& unit, const OnlineSum& so_far, Value* from, Value* to) {
  const DType dtype = sum_of(unit, so_far).dtype;
  return emit_map_op(unit, ir::Op::exp, {dtype}, dtype, {unit.b.CreateFSub(from, to)});
}

// Of nothing, or of elements at -inf only, a sum stays 0 whatever the shifts.
Value* rescaled(Unit& unit, Value* sum, Value* factor) {
  auto& b = unit.b;
  return b.CreateSelect(b.CreateFCmpOEQ(sum, real_like(sum, 0)), real_like(sum, 0), b.CreateFMul(sum, factor));
}

}  // namespace

OnlineSum make_online(Unit& unit, const Online& online, int lanes) {
  OnlineSum sum{online, make_accumulator(unit, unit.kernel.instr(online.maximum), lanes),
                make_accumulator(unit, unit.kernel.instr(online.sum), lanes), nullptr, nullptr};
  Value* none = read(unit, sum.sum).value;  // 0, as is the shift of no elements
  sum.shift = variable(unit, none->getType(), "shift");
  unit.b.CreateStore(none, sum.shift);
  return sum;
}

void add_online(Unit& unit, const OnlineSum& so_far, std::vector<Scope>& scopes) {
  auto& b = unit.b;
  const Instr &maximum = maximum_of(unit, so_far), &sum = sum_of(unit, so_far);
  const std::vector<Partial> elements = elements_of(unit, maximum, scopes);
  const Partial top = read(unit, so_far.maximum);
  Value* within = nullptr;  // false for NaN
  for (const Partial& element : elements) {
    Value* its = b.CreateFCmpOLE(element.value, top.value);
    within = within ? b.CreateAnd(within, its) : its;
  }
  emit_if(unit, b.CreateNot(b.CreateAndReduce(within)), [&] {
    const Partial all = fold_lanes(unit, maximum, merge(unit, maximum, top, merge_all(unit, maximum, elements)));
    Value* shift = splat(unit, shift_of(unit, scopes[0], so_far, all.value), lanes_of(top.value));
    Value* factor = rescaling(unit, so_far, load(unit, so_far.shift), shift);
    Value* rest = rescaled(unit, read(unit, so_far.sum).value, factor);
    if (so_far.blocks) scale_blocks(unit, so_far.blocks, factor);
    write(unit, so_far.maximum, {splat(unit, all.value, lanes_of(top.value)), nullptr});
    write(unit, so_far.sum, {rest, nullptr});
    b.CreateStore(shift, so_far.shift);
  });
  Value* shift = load(unit, so_far.shift);
  for (Scope& scope : scopes) {
    scope.home = b.GetInsertBlock();
    scope.values[so_far.what.shift] = shift;
  }
  const Partial weights = merge_all(unit, sum, elements_of(unit, sum, scopes));
  write(unit, so_far.sum, accumulate(unit, sum, read(unit, so_far.sum), weights));
}

Partial online_maximum(Unit& unit, const OnlineSum& so_far) {
  return {unit.b.CreateExtractElement(read(unit, so_far.maximum).value, std::uint64_t{0}), nullptr};
}

Partial online_sum(Unit& unit, const OnlineSum& so_far, const LongSums& sums) {
  const Instr& sum = sum_of(unit, so_far);
  return narrowed(unit, sum, fold_lanes(unit, sum, sums.collect(sum, {so_far.sum})));
}

}  // namespace tenon::codegen::simd
