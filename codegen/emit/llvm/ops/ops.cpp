// The llvm columns of ops.def: how an instruction, an intrinsic, a math routine or one of the routines below (":name")
// is emitted. Meanings are those of ir/ops/meaning.h.
#include "codegen/emit/llvm/ops/ops.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/emit/llvm/ops/integers.h"
#include "ir/graph/check.h"

namespace tenon::codegen::simd {
namespace {

using Args = std::vector<Value*>;

struct Context {
  Unit& unit;
  DType dtype;  // of the operands
};

Value* copysign(Unit& unit, Value* magnitude, Value* sign) {
  return call_intrinsic(unit, "llvm.copysign", {magnitude, sign});
}

// What a vector is divided by. LLVM 19 takes an element of a quotient for 0 where those of both operands are 0, as
// masked loads leave them, and drops a select that puts 0 there: 0 / 0 stays. It does not look through a fence.
Value* divisor(Unit& unit, Value* x) {
  const bool hidden = x->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(x);
  return hidden ? unit.b.CreateArithmeticFence(x, x->getType()) : x;
}

Value* real_remainder(Unit& unit, const Args& a) { return unit.b.CreateFRem(a[0], divisor(unit, a[1])); }

Value* real_mod(const Context& c, const Args& a) {
  auto& b = c.unit.b;
  Value* rest = real_remainder(c.unit, a);
  Value* zero = real_like(rest, 0);
  Value* differ = b.CreateXor(b.CreateFCmpOLT(rest, zero), b.CreateFCmpOLT(a[1], zero));
  Value* moved = b.CreateSelect(differ, b.CreateFAdd(rest, a[1]), rest);
  return b.CreateSelect(b.CreateFCmpOEQ(rest, zero), copysign(c.unit, rest, a[1]), moved);
}

Value* real_floor_div(const Context& c, const Args& a) {
  auto& b = c.unit.b;
  Value* zero = real_like(a[0], 0);
  Value* rest = real_remainder(c.unit, a);
  Value* quotient = b.CreateFDiv(b.CreateFSub(a[0], rest), divisor(c.unit, a[1]));
  Value* differ =
      b.CreateAnd(b.CreateXor(b.CreateFCmpOLT(rest, zero), b.CreateFCmpOLT(a[1], zero)), b.CreateFCmpUNE(rest, zero));
  quotient = b.CreateSelect(differ, b.CreateFSub(quotient, real_like(a[0], 1)), quotient);
  Value* plain = b.CreateFDiv(a[0], divisor(c.unit, a[1]));
  Value* whole = call_intrinsic(c.unit, "llvm.rint", {quotient});
  Value* result = b.CreateSelect(b.CreateFCmpOEQ(quotient, zero), copysign(c.unit, quotient, plain), whole);
  return b.CreateSelect(b.CreateFCmpOEQ(a[1], zero), plain, result);
}

Value* floor_div(const Context& c, const Args& a) {
  return is_real(c.dtype) ? real_floor_div(c, a) : integer_floor_div(c.unit, a[0], a[1], c.dtype);
}
Value* floor_mod(const Context& c, const Args& a) {
  return is_real(c.dtype) ? real_mod(c, a) : integer_floor_mod(c.unit, a[0], a[1], c.dtype);
}
Value* power(const Context& c, const Args& a) {
  return is_real(c.dtype) ? call_sleef(c.unit, "pow", a) : integer_power(c.unit, a[0], a[1], c.dtype);
}
Value* neg(const Context& c, const Args& a) { return c.unit.b.CreateNeg(a[0]); }

Value* absolute(const Context& c, const Args& a) {
  if (c.dtype == DType::u8) return a[0];
  return c.unit.b.CreateIntrinsic(llvm::Intrinsic::abs, {a[0]->getType()}, {a[0], c.unit.b.getFalse()});
}

Value* sign(const Context& c, const Args& a) {
  auto& b = c.unit.b;
  if (is_real(c.dtype)) {
    Value* negative = b.CreateSelect(b.CreateFCmpOLT(a[0], real_like(a[0], 0)), real_like(a[0], -1), a[0]);
    return b.CreateSelect(b.CreateFCmpOGT(a[0], real_like(a[0], 0)), real_like(a[0], 1), negative);
  }
  Value* zero = constant_like(a[0], 0);
  if (c.dtype == DType::u8) return b.CreateZExt(b.CreateICmpNE(a[0], zero), a[0]->getType());
  Value* positive = b.CreateZExt(b.CreateICmpSGT(a[0], zero), a[0]->getType());
  return b.CreateSelect(b.CreateICmpSLT(a[0], zero), constant_like(a[0], -1), positive);
}

Value* reciprocal(const Context& c, const Args& a) { return c.unit.b.CreateFDiv(real_like(a[0], 1), a[0]); }
Value* rsqrt(const Context& c, const Args& a) { return reciprocal(c, {call_intrinsic(c.unit, "llvm.sqrt", a)}); }
Value* identity(const Context&, const Args& a) { return a[0]; }

// -0 < +0, and NaN where one is NaN. AVX-512 has that in one instruction but for NaN, of which a sum makes one again;
// LLVM takes six.
Value* real_extremum(Unit& unit, const Args& a, bool largest) {
  auto& b = unit.b;
  const bool of_16 = lanes_of(a[0]) == 16 && a[0]->getType()->getScalarType()->isFloatTy();
  if (unit.target.vector_bytes < 64 || !of_16)
    return call_intrinsic(unit, largest ? "llvm.maximum" : "llvm.minimum", a);
  constexpr int kSmallest = 4, kLargest = 5, kAllLanes = 0xffff, kCurrentRounding = 4;
  Value* of_numbers = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
                                        {a[0], a[1], b.getInt32(largest ? kLargest : kSmallest), a[0],
                                         b.getInt16(kAllLanes), b.getInt32(kCurrentRounding)});
  return b.CreateSelect(b.CreateFCmpUNO(a[0], a[1]), b.CreateFAdd(a[0], a[1]), of_numbers);
}

Value* extremum(const Context& c, const Args& a, bool largest) {
  auto& b = c.unit.b;
  if (is_real(c.dtype)) return real_extremum(c.unit, a, largest);
  const bool is_unsigned = c.dtype == DType::u8 || c.dtype == DType::bool_;
  const auto id = largest ? (is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax)
                          : (is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin);
  return b.CreateBinaryIntrinsic(id, a[0], a[1]);
}
Value* minimum(const Context& c, const Args& a) { return extremum(c, a, false); }
Value* maximum(const Context& c, const Args& a) { return extremum(c, a, true); }
Value* clamp(const Context& c, const Args& a) { return minimum(c, {maximum(c, {a[0], a[1]}), a[2]}); }
Value* where(const Context& c, const Args& a) { return c.unit.b.CreateSelect(a[0], a[1], a[2]); }
Value* logical_not(const Context& c, const Args& a) { return c.unit.b.CreateNot(a[0]); }

Value* shift_left(const Context& c, const Args& a) { return integer_shift_left(c.unit, a[0], a[1]); }
Value* shift_right(const Context& c, const Args& a) { return integer_shift_right(c.unit, a[0], a[1], c.dtype); }

Value* is_inf(const Context& c, const Args& a) {
  Value* magnitude = call_intrinsic(c.unit, "llvm.fabs", a);
  return c.unit.b.CreateFCmpOEQ(magnitude, llvm::ConstantFP::getInfinity(magnitude->getType()));
}
Value* is_finite(const Context& c, const Args& a) {
  Value* magnitude = call_intrinsic(c.unit, "llvm.fabs", a);
  return c.unit.b.CreateFCmpOLT(magnitude, llvm::ConstantFP::getInfinity(magnitude->getType()));
}

struct Routine {
  std::string_view name;
  Value* (*emit)(const Context&, const Args&);
};

constexpr Routine kRoutines[] = {
    {":floor_div", floor_div}, {":floor_mod", floor_mod}, {":power", power},           {":neg", neg},
    {":abs", absolute},        {":sign", sign},           {":rsqrt", rsqrt},           {":reciprocal", reciprocal},
    {":identity", identity},   {":minimum", minimum},     {":maximum", maximum},       {":clamp", clamp},
    {":where", where},         {":not", logical_not},     {":left_shift", shift_left}, {":right_shift", shift_right},
    {":isinf", is_inf},        {":isfinite", is_finite},
};

struct Instruction {
  std::string_view name;
  llvm::Instruction::BinaryOps code;
};

constexpr Instruction kInstructions[] = {
    {"fadd", llvm::Instruction::FAdd}, {"fsub", llvm::Instruction::FSub}, {"fmul", llvm::Instruction::FMul},
    {"fdiv", llvm::Instruction::FDiv}, {"add", llvm::Instruction::Add},   {"sub", llvm::Instruction::Sub},
    {"mul", llvm::Instruction::Mul},   {"and", llvm::Instruction::And},   {"or", llvm::Instruction::Or},
    {"xor", llvm::Instruction::Xor},
};

struct Predicate {
  std::string_view name;
  llvm::CmpInst::Predicate code;
};

constexpr Predicate kPredicates[] = {
    {"fcmp oeq", llvm::CmpInst::FCMP_OEQ}, {"fcmp une", llvm::CmpInst::FCMP_UNE}, {"fcmp olt", llvm::CmpInst::FCMP_OLT},
    {"fcmp ole", llvm::CmpInst::FCMP_OLE}, {"fcmp ogt", llvm::CmpInst::FCMP_OGT}, {"fcmp oge", llvm::CmpInst::FCMP_OGE},
    {"fcmp uno", llvm::CmpInst::FCMP_UNO}, {"icmp eq", llvm::CmpInst::ICMP_EQ},   {"icmp ne", llvm::CmpInst::ICMP_NE},
    {"icmp lt", llvm::CmpInst::ICMP_SLT},  {"icmp le", llvm::CmpInst::ICMP_SLE},  {"icmp gt", llvm::CmpInst::ICMP_SGT},
    {"icmp ge", llvm::CmpInst::ICMP_SGE},
};

// An fadd, fsub or fmul may be contracted with another to an fma, as on the GPU; nothing else is relaxed.
Value* emit_binary(Unit& unit, llvm::Instruction::BinaryOps code, const Args& args) {
  auto& b = unit.b;
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  llvm::FastMathFlags flags;
  flags.setAllowContract(true);
  b.setFastMathFlags(flags);
  const bool divides = code == llvm::Instruction::FDiv;
  return b.CreateBinOp(code, args[0], divides ? divisor(unit, args[1]) : args[1]);
}

Value* emit_comparison(Unit& unit, llvm::CmpInst::Predicate code, DType dtype, const Args& args) {
  if (llvm::CmpInst::isFPPredicate(code)) return unit.b.CreateFCmp(code, args[0], args.back());
  if (dtype == DType::u8 && llvm::CmpInst::isSigned(code)) code = llvm::CmpInst::getUnsignedPredicate(code);
  return unit.b.CreateICmp(code, args[0], args[1]);
}

bool is_float(const Args& args) { return args[0]->getType()->getScalarType()->isFloatTy(); }

}  // namespace

Value* call_intrinsic(Unit& unit, std::string_view name, const std::vector<Value*>& args) {
  const auto id = llvm::Function::lookupIntrinsicID(llvm::StringRef(name.data(), name.size()));
  TENON_CHECK(id != llvm::Intrinsic::not_intrinsic, "no intrinsic " + std::string(name));
  return unit.b.CreateIntrinsic(id, {args[0]->getType()}, args);
}

Value* emit_spelled(Unit& unit, std::string_view spelling, DType dtype, const std::vector<Value*>& args) {
  if (spelling.substr(0, 5) == "llvm.") return call_intrinsic(unit, spelling, args);
  if (spelling == "sleef:exp" && is_float(args)) return emit_exp(unit, args[0]);
  if (spelling == "sleef:tanh" && is_float(args)) return emit_tanh(unit, args[0]);
  if (spelling == "sleef:erf" && is_float(args)) return emit_erf(unit, args[0]);
  if (spelling == "sleef:expm1" && is_float(args)) return emit_expm1(unit, args[0]);
  if (spelling == "sleef:log" && is_float(args)) return emit_log(unit, args[0]);
  if (spelling == "sleef:log2" && is_float(args)) return emit_log2(unit, args[0]);
  if (spelling == "sleef:log1p") return emit_log1p(unit, args[0]);
  if (spelling == "sleef:sinh" || spelling == "sleef:cosh") return emit_hyperbolic(unit, spelling.substr(6), args[0]);
  if (spelling.substr(0, 6) == "sleef:") return call_sleef(unit, spelling.substr(6), args);
  if (spelling == "fneg") return unit.b.CreateFNeg(args[0]);
  for (const Routine& routine : kRoutines)
    if (routine.name == spelling) return routine.emit({unit, dtype}, args);
  for (const Instruction& instruction : kInstructions)
    if (instruction.name == spelling) return emit_binary(unit, instruction.code, args);
  for (const Predicate& predicate : kPredicates)
    if (predicate.name == spelling) return emit_comparison(unit, predicate.code, dtype, args);
  TENON_CHECK(false, "the LLVM emitter has no routine for '" + std::string(spelling) + "'");
  return nullptr;
}

Value* emit_map_op(Unit& unit, ir::Op op, const std::vector<DType>& dtypes, DType result,
                   const std::vector<Value*>& args) {
  const std::string_view spelling = ir::text_for(ir::info(op), dtypes.back()).llvm;
  if (spelling == ":cast") return emit_cast(unit, args[0], dtypes[0], result);
  if (spelling == ":bitcast") return emit_bitcast(unit, args[0], dtypes[0], result);
  return emit_spelled(unit, spelling, dtypes.back(), args);
}

}  // namespace tenon::codegen::simd
