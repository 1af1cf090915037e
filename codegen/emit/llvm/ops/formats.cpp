// Number formats in vector code: storage to compute type and back, rounding once and to nearest even as
// ir/ops/formats.h says. Integer arithmetic only where the hardware has no exact instruction (its bf16 conversion
// flushes subnormals).
#include <llvm/IR/Intrinsics.h>

#include "codegen/emit/llvm/ops/ops.h"

namespace tenon::codegen::simd {
namespace {

Type* like(Value* value, Type* element) { return vector_of(element, lanes_of(value)); }
Value* as_bits(Unit& unit, Value* real) { return unit.b.CreateBitCast(real, like(real, unit.b.getInt32Ty())); }
Value* as_real(Unit& unit, Value* bits) { return unit.b.CreateBitCast(bits, like(bits, unit.b.getFloatTy())); }

// An f8 format by its fields; see Micikevicius et al., "FP8 Formats for Deep Learning", 2022.
struct SmallFormat {
  int mantissa, bias;
  int largest, overflow, nan;  // codes: of the largest finite number, of what lies beyond, of NaN
};
constexpr SmallFormat kE4M3{3, 7, 0x7e, 0x7f, 0x7f};
constexpr SmallFormat kE5M2{2, 15, 0x7b, 0x7c, 0x7e};

Value* narrow_small(Unit& unit, Value* value, const SmallFormat& format) {
  auto& b = unit.b;
  Value* bits = as_bits(unit, value);
  const auto integer = [&](std::int64_t n) { return constant_like(bits, n); };
  Value* magnitude = b.CreateAnd(bits, integer(0x7fffffff));
  // Normal numbers: round the mantissa, rebias the exponent.
  const int shift = 23 - format.mantissa;
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, integer(shift)), integer(1));
  Value* rounded = b.CreateAdd(b.CreateAdd(magnitude, integer((1 << (shift - 1)) - 1)), odd);
  Value* normal = b.CreateSub(b.CreateLShr(rounded, integer(shift)), integer((127 - format.bias) << format.mantissa));
  normal = b.CreateSelect(b.CreateICmpSGT(normal, integer(format.largest)), integer(format.overflow), normal);
  // Subnormal ones: adding 2^23 units in the last place lets the hardware round.
  const int magic_bits = (127 + 23 + 1 - format.bias - format.mantissa) << 23;
  Value* sum = b.CreateFAdd(as_real(unit, magnitude), as_real(unit, integer(magic_bits)));
  Value* subnormal = b.CreateSub(as_bits(unit, sum), integer(magic_bits));
  Value* is_small = b.CreateICmpULT(magnitude, integer((128 - format.bias) << 23));
  Value* code = b.CreateSelect(is_small, subnormal, normal);
  code = b.CreateSelect(b.CreateICmpUGT(magnitude, integer(0x7f800000)), integer(format.nan), code);
  code = b.CreateOr(code, b.CreateAnd(b.CreateLShr(bits, integer(24)), integer(0x80)));
  return b.CreateTrunc(code, like(code, b.getInt8Ty()));
}

// The upper halves of 32-bit integers, by one shuffle.
Value* upper_halves(Unit& unit, Value* bits) {
  auto& b = unit.b;
  const int n = lanes_of(bits);
  if (n == 1) return b.CreateTrunc(b.CreateLShr(bits, constant_like(bits, 16)), b.getInt16Ty());
  std::vector<int> odd;
  for (int i = 0; i < n; ++i) odd.push_back(2 * i + 1);
  return b.CreateShuffleVector(b.CreateBitCast(bits, vector_of(b.getInt16Ty(), 2 * n)), odd);
}

Value* narrow_bf16(Unit& unit, Value* value) {
  auto& b = unit.b;
  Value* bits = as_bits(unit, value);
  const auto integer = [&](std::int64_t n) { return constant_like(bits, n); };
  Value* odd = b.CreateICmpNE(b.CreateAnd(bits, integer(1 << 16)), integer(0));
  Value* rounded = b.CreateSelect(odd, b.CreateAdd(bits, integer(0x8000)), b.CreateAdd(bits, integer(0x7fff)));
  Value* quiet = b.CreateOr(bits, integer(0x40 << 16));
  return upper_halves(unit, b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded));
}

Value* narrow_f16(Unit& unit, Value* value) {
  auto& b = unit.b;
  Value* half = b.CreateFPTrunc(value, like(value, b.getHalfTy()));
  return b.CreateBitCast(half, like(half, b.getInt16Ty()));
}

Value* widen_f16(Unit& unit, Value* bits) {
  auto& b = unit.b;
  return b.CreateFPExt(b.CreateBitCast(bits, like(bits, b.getHalfTy())), like(bits, b.getFloatTy()));
}

Value* widen_bf16(Unit& unit, Value* bits) {
  auto& b = unit.b;
  Value* wide = b.CreateZExt(bits, like(bits, b.getInt32Ty()));
  return as_real(unit, b.CreateShl(wide, constant_like(wide, 16)));
}

// Through f16, which holds every f8 number: e5m2 is its upper byte; e4m3 differs from it by a factor of 2^8.
Value* widen_e5m2(Unit& unit, Value* code) {
  auto& b = unit.b;
  Value* wide = b.CreateZExt(code, like(code, b.getInt16Ty()));
  return widen_f16(unit, b.CreateShl(wide, constant_like(wide, 8)));
}

Value* widen_e4m3(Unit& unit, Value* code) {
  auto& b = unit.b;
  Value* wide = b.CreateZExt(code, like(code, b.getInt16Ty()));
  Value* magnitude = b.CreateAnd(wide, constant_like(wide, 0x7f));
  Value* sign = b.CreateShl(b.CreateAnd(wide, constant_like(wide, 0x80)), constant_like(wide, 8));
  Value* half = widen_f16(unit, b.CreateOr(b.CreateShl(magnitude, constant_like(wide, 7)), sign));
  Value* value = b.CreateFMul(half, real_like(half, 256));
  Value* nan = call_intrinsic(unit, "llvm.copysign", {llvm::ConstantFP::getNaN(value->getType()), value});
  return b.CreateSelect(b.CreateICmpEQ(magnitude, constant_like(wide, 0x7f)), nan, value);
}

// f64 to f32 rounded to odd: a second rounding, to a narrower format, then gives what one rounding would
// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
Value* to_float_odd(Unit& unit, Value* value) {
  auto& b = unit.b;
  Value* near = b.CreateFPTrunc(value, like(value, b.getFloatTy()));
  Value* back = b.CreateFPExt(near, value->getType());
  Value* inexact = b.CreateFCmpONE(back, value);
  Value* beyond =
      b.CreateFCmpOGT(call_intrinsic(unit, "llvm.fabs", {back}), call_intrinsic(unit, "llvm.fabs", {value}));
  Value* bits = as_bits(unit, near);
  Value* below = b.CreateSelect(beyond, b.CreateSub(bits, constant_like(bits, 1)), bits);
  return as_real(unit, b.CreateSelect(inexact, b.CreateOr(below, constant_like(bits, 1)), bits));
}

// i64 to f64, likewise to odd.
Value* to_double_odd(Unit& unit, Value* value) {
  auto& b = unit.b;
  Type* wide = like(value, b.getInt64Ty());
  Value* near = b.CreateSIToFP(value, like(value, b.getDoubleTy()));
  Value* back = b.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {wide, near->getType()}, {near});
  Value* inexact = b.CreateICmpNE(back, value);
  Value* positive = b.CreateICmpSGT(value, constant_like(value, 0));
  Value* beyond = b.CreateICmpEQ(b.CreateICmpSGT(back, value), positive);
  Value* bits = b.CreateBitCast(near, wide);
  Value* below = b.CreateSelect(beyond, b.CreateSub(bits, constant_like(bits, 1)), bits);
  Value* odd = b.CreateSelect(inexact, b.CreateOr(below, constant_like(bits, 1)), bits);
  return b.CreateBitCast(odd, near->getType());
}

bool is_double(const Value* value) { return value->getType()->getScalarType()->isDoubleTy(); }

Value* real_to_integer(Unit& unit, Value* value, DType to) {
  auto& b = unit.b;
  Type* type = like(value, compute_type_of(unit, to));
  if (to == DType::bool_) return b.CreateFCmpUNE(value, real_like(value, 0));
  if (size_of(to) >= 4) return b.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, value->getType()}, {value});
  const bool is_unsigned = to == DType::u8;
  const double largest = is_unsigned ? 255 : size_of(to) == 1 ? 127 : 32767;
  const double least = is_unsigned ? 0 : -largest - 1;
  Value* number = b.CreateSelect(b.CreateFCmpUNO(value, value), real_like(value, 0), value);
  Value* low = b.CreateSelect(b.CreateFCmpOLT(number, real_like(value, least)), real_like(value, least), number);
  Value* both = b.CreateSelect(b.CreateFCmpOGT(low, real_like(value, largest)), real_like(value, largest), low);
  return b.CreateTrunc(b.CreateFPToSI(both, like(value, b.getInt32Ty())), type);
}

Value* integer_to_integer(Unit& unit, Value* value, DType from, DType to) {
  auto& b = unit.b;
  if (from == to) return value;
  if (to == DType::bool_) return b.CreateICmpNE(value, constant_like(value, 0));
  Type* type = like(value, compute_type_of(unit, to));
  const bool is_signed = from != DType::u8 && from != DType::bool_;
  return b.CreateIntCast(value, type, is_signed);
}

Value* integer_to_real(Unit& unit, Value* value, DType from, DType to) {
  auto& b = unit.b;
  Type* type = like(value, compute_type_of(unit, to));
  if (from == DType::u8 || from == DType::bool_) return emit_round(unit, b.CreateUIToFP(value, type), to);
  if (to == DType::f32 || to == DType::f64 || size_of(from) <= 2)
    return emit_round(unit, b.CreateSIToFP(value, type), to);
  Value* wide = b.CreateSExt(value, like(value, b.getInt64Ty()));
  return widen(unit, narrow(unit, to_double_odd(unit, wide), to), to);
}

}  // namespace

Value* widen(Unit& unit, Value* stored, DType dtype) {
  const auto remembered = [&](Value* value) {
    unit.stored_as[{value, dtype}] = stored;
    return value;
  };
  switch (dtype) {
    case DType::bool_: return unit.b.CreateICmpNE(stored, constant_like(stored, 0));
    case DType::f16: return remembered(widen_f16(unit, stored));
    case DType::bf16: return remembered(widen_bf16(unit, stored));
    case DType::f8e4m3: return remembered(widen_e4m3(unit, stored));
    case DType::f8e5m2: return remembered(widen_e5m2(unit, stored));
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::f32:
    case DType::f64: return stored;
  }
  return nullptr;
}

Value* narrow(Unit& unit, Value* value, DType dtype) {
  auto& b = unit.b;
  if (const auto found = unit.stored_as.find({value, dtype}); found != unit.stored_as.end()) return found->second;
  if (is_real(dtype) && size_of(dtype) < 4 && is_double(value)) value = to_float_odd(unit, value);
  switch (dtype) {
    case DType::bool_: return b.CreateZExt(value, like(value, b.getInt8Ty()));
    case DType::f16: return narrow_f16(unit, value);
    case DType::bf16: return narrow_bf16(unit, value);
    case DType::f8e4m3: return narrow_small(unit, value, kE4M3);
    case DType::f8e5m2: return narrow_small(unit, value, kE5M2);
    case DType::f32: return is_double(value) ? b.CreateFPTrunc(value, like(value, b.getFloatTy())) : value;
    case DType::f64: return is_double(value) ? value : b.CreateFPExt(value, like(value, b.getDoubleTy()));
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8: return value;
  }
  return nullptr;
}

Value* emit_round(Unit& unit, Value* value, DType dtype) {
  return is_real(dtype) ? widen(unit, narrow(unit, value, dtype), dtype) : value;
}

Value* emit_cast(Unit& unit, Value* value, DType from, DType to) {
  if (is_real(from)) return is_real(to) ? emit_round(unit, value, to) : real_to_integer(unit, value, to);
  return is_real(to) ? integer_to_real(unit, value, from, to) : integer_to_integer(unit, value, from, to);
}

Value* emit_bitcast(Unit& unit, Value* value, DType from, DType to) {
  Value* bits = narrow(unit, value, from);
  return widen(unit, unit.b.CreateBitCast(bits, like(bits, storage_type_of(unit, to))), to);
}

}  // namespace tenon::codegen::simd
