// Loads and stores of a scope's lanes: contiguous ones as vectors, uniform ones as scalars, the rest as gathers and
// scatters; masked where lanes are not in use or a guard fails.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "codegen/emit/llvm/ops/ops.h"
#include "codegen/emit/llvm/scope.h"
#include "ir/graph/check.h"

namespace tenon::codegen::simd {
namespace {

const Operand& operand_of(const Unit& unit, int operand) {
  return unit.kernel.operands[static_cast<std::size_t>(operand)];
}

llvm::Align element_alignment(const Operand& operand) {
  return llvm::Align(static_cast<std::uint64_t>(size_of(operand.dtype)));
}

// Whether an output may lie where `access` reads: in the place of an input are only outputs of its dtype that are
// written at the elements where it is read (runtime/overlap.h).
bool may_be_written(const Kernel& kernel, const Access& access) {
  const auto dtype_of = [&](int operand) { return kernel.operands[static_cast<std::size_t>(operand)].dtype; };
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
    return store.access.operand == access.operand ||
           (dtype_of(store.access.operand) == dtype_of(access.operand) && store.access.offset == access.offset);
  });
}

// What a kernel does not write stays the same while it runs: LLVM may load it again behind a store.
Value* mark_invariant(Unit& unit, llvm::Instruction* load, const Access& access) {
  if (!may_be_written(unit.kernel, access))
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(unit.context, {}));
  return load;
}

Value* both(Unit& unit, Value* a, Value* b, int lanes) {
  if (!a || !b) return a ? a : b;
  return unit.b.CreateAnd(splat(unit, a, lanes), splat(unit, b, lanes));
}

// Offsets of the lanes, base + l * step.
Value* spread(Unit& unit, const Affine& affine, int lanes) {
  auto& b = unit.b;
  Value* step = splat(unit, emit_dim(unit, affine.step), lanes);
  return b.CreateAdd(splat(unit, affine.base, lanes), b.CreateMul(lane_numbers(unit, b.getInt64Ty(), lanes), step));
}

// One element for all lanes. Where a guard fails the address is that of a zero.
Value* load_uniform(Unit& unit, const Access& access, Value* address, Value* guard, Type* type) {
  auto& b = unit.b;
  if (guard) address = b.CreateSelect(guard, address, unit.zeros);
  llvm::LoadInst* load = b.CreateAlignedLoad(type, address, element_alignment(operand_of(unit, access.operand)));
  return guard ? load : mark_invariant(unit, load, access);
}

Value* load_contiguous(Unit& unit, const Access& access, Value* address, Value* mask, Type* type) {
  auto& b = unit.b;
  const llvm::Align alignment = element_alignment(operand_of(unit, access.operand));
  if (!mask) return mark_invariant(unit, b.CreateAlignedLoad(type, address, alignment), access);
  return b.CreateMaskedLoad(type, address, alignment, mask, llvm::Constant::getNullValue(type));
}

Value* load_gathered(Unit& unit, const Operand& operand, Value* addresses, Value* mask, Type* type) {
  return unit.b.CreateMaskedGather(type, addresses, element_alignment(operand), mask,
                                   llvm::Constant::getNullValue(type));
}

// Lanes that write an element which does not vary along `axis`: those at its start.
Value* at_start(Unit& unit, const Scope& scope, int axis) {
  auto& b = unit.b;
  Value* base = scope.axes[static_cast<std::size_t>(axis)];
  if (axis != scope.vector_axis || scope.lanes == 1) return b.CreateICmpEQ(base, constant(unit, 0));
  Value* numbers = b.CreateAdd(splat(unit, base, scope.lanes), hidden_lane_numbers(unit, b.getInt64Ty(), scope.lanes));
  return b.CreateICmpEQ(numbers, constant_like(numbers, 0));
}

// Null, or where the store happens: guards that hold, and the start of every bound axis that its offset ignores.
Value* store_condition(Unit& unit, Scope& scope, const Access& access) {
  Value* condition = evaluate_guards(unit, scope, access.guards);
  const std::uint64_t varies = dependence(unit.kernel, access.offset);
  for (int axis = 0; axis < static_cast<int>(unit.kernel.axes.size()); ++axis) {
    const bool bound = (scope.bound >> axis & 1) != 0;
    if (!bound || (varies >> axis & 1) != 0 || unit.kernel.axes[static_cast<std::size_t>(axis)].extent.is(1)) continue;
    condition = both(unit, condition, at_start(unit, scope, axis), scope.lanes);
  }
  return condition;
}

}  // namespace

Value* element_address(Unit& unit, int operand, Value* offset) {
  Type* type = storage_type_of(unit, operand_of(unit, operand).dtype);
  return unit.b.CreateGEP(type, unit.operands[static_cast<std::size_t>(operand)], offset);
}

Value* emit_load(Unit& unit, Scope& scope, const Access& access) {
  return widen(unit, emit_load_stored(unit, scope, access), operand_of(unit, access.operand).dtype);
}

Value* emit_load_stored(Unit& unit, Scope& scope, const Access& access) {
  const Operand& operand = operand_of(unit, access.operand);
  Type* element = storage_type_of(unit, operand.dtype);
  Value* guard = evaluate_guards(unit, scope, access.guards);
  const auto affine = evaluate_affine(unit, scope, access.offset);
  const bool guard_varies = guard && lanes_of(guard) > 1;
  if (affine && affine->step.is(0) && !guard_varies)
    return load_uniform(unit, access, element_address(unit, access.operand, affine->base), guard, element);

  Type* type = vector_of(element, scope.lanes);
  Value* mask = both(unit, scope.mask, guard, scope.lanes);
  if (mask) mask = splat(unit, mask, scope.lanes);
  if (affine && affine->step.is(1))
    return load_contiguous(unit, access, element_address(unit, access.operand, affine->base), mask, type);
  Value* offsets = affine ? spread(unit, *affine, scope.lanes)
                          : splat(unit, evaluate_index(unit, scope, access.offset), scope.lanes);
  return load_gathered(unit, operand, element_address(unit, access.operand, offsets), mask, type);
}

void emit_prefetch(Unit& unit, Scope& scope, const Access& access, const Dim& distance, CacheLevel level) {
  auto& b = unit.b;
  constexpr int kRead = 0, kData = 1;
  const int locality = level == CacheLevel::first ? 3 : 2;  // as LLVM counts
  if (scope.mask || !is_contiguous(unit, scope, access)) return;
  Value* first = evaluate_affine(unit, scope, access.offset)->base;
  Value* address = element_address(unit, access.operand, b.CreateAdd(first, emit_dim(unit, distance)));
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                    {address, b.getInt32(kRead), b.getInt32(locality), b.getInt32(kData)});
}

bool is_contiguous(Unit& unit, const Scope& scope, const Access& access) {
  const auto step = access.offset.coefficient(scope.vector_axis);
  if (!step || !step->is(1)) return false;
  for (const int value : access.offset.values())
    if ((unit.kernel.instr(value).depends >> scope.vector_axis & 1) != 0) return false;
  return true;
}

namespace {

// `value`, which LLVM cannot look through: of a truncation and a store, or what it takes for one, it makes a single
// store that goes through the caches, whatever the store's metadata say. A register at a time.
Value* finished(Unit& unit, Value* value) {
  Type* type = value->getType();
  if (type->getPrimitiveSizeInBits() < 128) return value;  // no register's worth: nothing goes around the caches
  const int bits = static_cast<int>(type->getScalarSizeInBits());
  const int width = std::min(lanes_of(value), 8 * unit.target.vector_bytes / bits);
  std::vector<Value*> pieces;
  for (int from = 0; from < lanes_of(value); from += width) {
    Value* part = width == lanes_of(value) ? value : piece(unit, value, from, width);
    auto* barrier =
        llvm::InlineAsm::get(llvm::FunctionType::get(part->getType(), {part->getType()}, false), "", "=x,0", false);
    pieces.push_back(unit.b.CreateCall(barrier, {part}));
  }
  return concatenate(unit, std::move(pieces));
}

// Whether LLVM may make one instruction of `value` and its store: integers cut short, and f16 from f32 (on AVX-512).
bool is_narrowed(const Value* value) {
  if (const auto* bits = llvm::dyn_cast<llvm::BitCastInst>(value))
    return llvm::isa<llvm::FPTruncInst>(bits->getOperand(0));
  return llvm::isa<llvm::TruncInst>(value);
}

void store_scalar(Unit& unit, Scope& scope, const Store& store, Value* value, Value* condition) {
  const Operand& operand = operand_of(unit, store.access.operand);
  Value* offset = evaluate_index(unit, scope, store.access.offset);
  const auto write = [&] {
    unit.b.CreateAlignedStore(value, element_address(unit, store.access.operand, offset), element_alignment(operand));
  };
  if (!condition) return write();
  emit_if(unit, condition, write);
  scope.home = unit.b.GetInsertBlock();
}

}  // namespace

void emit_store(Unit& unit, Scope& scope, const Store& store, StoreStyle style) {
  auto& b = unit.b;
  const Access& access = store.access;
  const Operand& operand = operand_of(unit, access.operand);
  Value* value = narrow(unit, evaluate(unit, scope, store.value), operand.dtype);
  Value* condition = store_condition(unit, scope, access);
  if (scope.lanes == 1) return store_scalar(unit, scope, store, value, condition);

  value = splat(unit, value, scope.lanes);
  Value* mask = both(unit, scope.mask, condition, scope.lanes);
  if (mask) mask = splat(unit, mask, scope.lanes);
  const auto affine = evaluate_affine(unit, scope, access.offset);
  if (affine && affine->step.is(1)) {
    Value* address = element_address(unit, access.operand, affine->base);
    if (mask) {
      b.CreateMaskedStore(value, address, element_alignment(operand), mask);
      return;
    }
    if (style.streaming && is_narrowed(value)) value = finished(unit, value);
    const auto bytes = static_cast<std::uint64_t>(scope.lanes * size_of(operand.dtype));
    llvm::StoreInst* instruction =
        b.CreateAlignedStore(value, address, style.streaming ? llvm::Align(bytes) : element_alignment(operand));
    if (style.streaming)
      instruction->setMetadata(llvm::LLVMContext::MD_nontemporal,
                               llvm::MDNode::get(unit.context, llvm::ConstantAsMetadata::get(b.getInt32(1))));
    return;
  }
  Value* offsets = affine ? spread(unit, *affine, scope.lanes)
                          : splat(unit, evaluate_index(unit, scope, access.offset), scope.lanes);
  b.CreateMaskedScatter(value, element_address(unit, access.operand, offsets), element_alignment(operand), mask);
}

}  // namespace tenon::codegen::simd
