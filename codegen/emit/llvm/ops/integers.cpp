// Floor division, powers and shifts of integers.
#include "codegen/emit/llvm/ops/integers.h"

#include <fmt/format.h>

namespace tenon::codegen::simd {
namespace {

int bits_of(const Value* value) { return static_cast<int>(value->getType()->getScalarSizeInBits()); }

// A divisor that cannot trap: 1 where `unsafe`.
Value* safe_divisor(Unit& unit, Value* divisor, Value* unsafe) {
  return unit.b.CreateSelect(unsafe, constant_like(divisor, 1), divisor);
}

Value* is(Unit& unit, Value* value, std::int64_t number) {
  return unit.b.CreateICmpEQ(value, constant_like(value, number));
}

// Whether a remainder calls for a step towards -inf: not 0, and its sign is not that of the divisor.
Value* needs_step(Unit& unit, Value* rest, Value* divisor) {
  auto& b = unit.b;
  Value* zero = constant_like(rest, 0);
  return b.CreateAnd(b.CreateICmpNE(rest, zero),
                     b.CreateXor(b.CreateICmpSLT(rest, zero), b.CreateICmpSLT(divisor, zero)));
}

// define internal T @power_…(T a, T exponent): by squaring, as long as some lane has bits left.
llvm::Function* power_function(Unit& unit, Type* type) {
  const int lanes =
      type->isVectorTy() ? static_cast<int>(llvm::cast<llvm::FixedVectorType>(type)->getNumElements()) : 1;
  const std::string name = fmt::format("power.v{}i{}", lanes, type->getScalarSizeInBits());
  if (llvm::Function* known = unit.module.getFunction(name)) return known;
  auto& b = unit.b;
  const llvm::IRBuilderBase::InsertPointGuard guard(b);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                          llvm::Function::InternalLinkage, name, unit.module);
  function->setAttributes(unit.function->getAttributes());
  auto* entry = llvm::BasicBlock::Create(unit.context, "entry", function);
  auto* loop = llvm::BasicBlock::Create(unit.context, "loop", function);
  auto* done = llvm::BasicBlock::Create(unit.context, "done", function);
  b.SetInsertPoint(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto* result = b.CreatePHI(type, 2);
  auto* base = b.CreatePHI(type, 2);
  auto* rest = b.CreatePHI(type, 2);
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* odd = b.CreateICmpNE(b.CreateAnd(rest, one), constant_like(rest, 0));
  Value* next = b.CreateSelect(odd, b.CreateMul(result, base), result);
  Value* square = b.CreateMul(base, base);
  Value* shifted = b.CreateLShr(rest, one);
  const auto join = [&](llvm::PHINode* phi, Value* first, Value* later) {
    phi->addIncoming(first, entry);
    phi->addIncoming(later, loop);
  };
  join(result, one, next);
  join(base, function->getArg(0), square);
  join(rest, function->getArg(1), shifted);
  Value* left = lanes > 1 ? b.CreateOrReduce(shifted) : shifted;
  b.CreateCondBr(b.CreateICmpNE(left, constant_like(left, 0)), loop, done);
  b.SetInsertPoint(done);
  b.CreateRet(next);
  return function;
}

}  // namespace

Value* integer_floor_div(Unit& unit, Value* a, Value* d, DType dtype) {
  auto& b = unit.b;
  Value* zero = constant_like(a, 0);
  Value* by_zero = is(unit, d, 0);
  if (dtype == DType::u8) return b.CreateSelect(by_zero, zero, b.CreateUDiv(a, safe_divisor(unit, d, by_zero)));
  Value* by_minus_one = is(unit, d, -1);
  Value* divisor = safe_divisor(unit, d, b.CreateOr(by_zero, by_minus_one));
  Value* step = b.CreateSExt(needs_step(unit, b.CreateSRem(a, divisor), divisor), a->getType());
  Value* quotient = b.CreateAdd(b.CreateSDiv(a, divisor), step);
  return b.CreateSelect(by_zero, zero, b.CreateSelect(by_minus_one, b.CreateNeg(a), quotient));
}

Value* integer_floor_mod(Unit& unit, Value* a, Value* d, DType dtype) {
  auto& b = unit.b;
  Value* zero = constant_like(a, 0);
  Value* by_zero = is(unit, d, 0);
  if (dtype == DType::u8) return b.CreateSelect(by_zero, zero, b.CreateURem(a, safe_divisor(unit, d, by_zero)));
  Value* trivial = b.CreateOr(by_zero, is(unit, d, -1));
  Value* divisor = safe_divisor(unit, d, trivial);
  Value* rest = b.CreateSRem(a, divisor);
  Value* moved = b.CreateSelect(needs_step(unit, rest, divisor), b.CreateAdd(rest, divisor), rest);
  return b.CreateSelect(trivial, zero, moved);
}

Value* integer_power(Unit& unit, Value* a, Value* exponent, DType dtype) {
  auto& b = unit.b;
  Value* zero = constant_like(a, 0);
  Value* negative = dtype == DType::u8 ? b.CreateICmpNE(a, a) : b.CreateICmpSLT(exponent, zero);
  Value* natural = b.CreateSelect(negative, zero, exponent);
  Value* power = b.CreateCall(power_function(unit, a->getType()), {a, natural});
  Value* odd = b.CreateICmpNE(b.CreateAnd(exponent, constant_like(a, 1)), zero);
  Value* one = constant_like(a, 1);
  Value* of_minus_one = b.CreateSelect(odd, constant_like(a, -1), one);
  Value* small = b.CreateSelect(is(unit, a, 1), one, b.CreateSelect(is(unit, a, -1), of_minus_one, zero));
  return b.CreateSelect(negative, small, power);
}

Value* integer_shift_left(Unit& unit, Value* a, Value* count) {
  auto& b = unit.b;
  Value* beyond = b.CreateICmpUGE(count, constant_like(count, bits_of(a)));
  Value* shifted = b.CreateShl(a, b.CreateSelect(beyond, constant_like(count, 0), count));
  return b.CreateSelect(beyond, constant_like(a, 0), shifted);
}

Value* integer_shift_right(Unit& unit, Value* a, Value* count, DType dtype) {
  auto& b = unit.b;
  Value* beyond = b.CreateICmpUGE(count, constant_like(count, bits_of(a)));
  Value* most = constant_like(count, bits_of(a) - 1);
  Value* limited = b.CreateSelect(beyond, most, count);
  if (dtype != DType::u8) return b.CreateAShr(a, limited);
  return b.CreateSelect(beyond, constant_like(a, 0), b.CreateLShr(a, limited));
}

}  // namespace tenon::codegen::simd
