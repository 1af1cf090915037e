// One value of each operator as LLVM instructions, on scalars and on vectors of any width alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/llvm/unit.h"
#include "ir/ops/op.h"

namespace tenon::codegen::simd {

/// `op` on `args` (all of one width), whose dtypes are `dtypes`; `result` is the dtype of the value.
Value* emit_map_op(Unit& unit, ir::Op op, const std::vector<DType>& dtypes, DType result,
                   const std::vector<Value*>& args);
/// The routine or instruction spelled as in the llvm columns of ops.def.
Value* emit_spelled(Unit& unit, std::string_view spelling, DType dtype, const std::vector<Value*>& args);

// ---- formats (formats.cpp) --------------------------------------------------------------------------------------

/// Storage to compute type, and back with one rounding (to nearest even; f32 and f64 alike may be narrowed).
Value* widen(Unit& unit, Value* stored, DType dtype);
Value* narrow(Unit& unit, Value* value, DType dtype);
/// Rounds to `dtype`, kept in its compute type.
Value* emit_round(Unit& unit, Value* value, DType dtype);
/// The conversion that `cast` means.
Value* emit_cast(Unit& unit, Value* value, DType from, DType to);
/// The same storage bits read as another dtype.
Value* emit_bitcast(Unit& unit, Value* value, DType from, DType to);

// ---- functions (elementary.cpp, logarithms.cpp, sleef.cpp) ----------------------------------------------------------

/// f32, within 2 ulp.
Value* emit_exp(Unit& unit, Value* x);
/// The same of x <= 0 or NaN.
Value* emit_exp_at_most_one(Unit& unit, Value* x);
/// a / b in f32 where a is from 0 to 1 and b, the same for many, at least 1; or where one is NaN.
Value* emit_share(Unit& unit, Value* a, Value* b);
/// f32, within 2 ulp.
Value* emit_expm1(Unit& unit, Value* x);
/// f32, within 3 ulp.
Value* emit_tanh(Unit& unit, Value* x);
/// f32, within 2 ulp (3 where products round before they are added).
Value* emit_erf(Unit& unit, Value* x);
/// 1 + tanh(x) = 2 / (1 + exp(-2x)) in f32, within 2 ulp from x = -1 on, within 4 from -20 on, below 1e-17 beyond.
Value* emit_one_plus_tanh(Unit& unit, Value* x);
/// tanh(log(1 + exp(x))), within 2^-21 in f32 and 2^-50 in f64.
Value* emit_tanh_of_softplus(Unit& unit, Value* x);
/// f32, within 2 ulp.
Value* emit_log(Unit& unit, Value* x);
Value* emit_log2(Unit& unit, Value* x);
/// f32 and f64, within 2 ulp.
Value* emit_log1p(Unit& unit, Value* x);
/// f32, the same where x is from 0 to 1, or NaN.
Value* emit_log1p_of_share(Unit& unit, Value* x);
/// sinh or cosh by SLEEF, also between SLEEF's own limit and overflow.
Value* emit_hyperbolic(Unit& unit, std::string_view name, Value* x);
/// SLEEF's routine `name` (1 ulp) of the target's width, called as often as the value's width asks.
Value* call_sleef(Unit& unit, std::string_view name, const std::vector<Value*>& args);

/// Philox 4x32-10 (philox.cpp): see ops.def, random_bits.
Value* emit_philox(Unit& unit, Value* seed, Value* index, std::int64_t stream, int word);

/// A call of the intrinsic `name` ("llvm.fabs"), overloaded on the type of the first argument.
Value* call_intrinsic(Unit& unit, std::string_view name, const std::vector<Value*>& args);
Value* fused_multiply_add(Unit& unit, Value* a, Value* b, Value* c);

}  // namespace tenon::codegen::simd
