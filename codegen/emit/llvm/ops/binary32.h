// What the functions of f32 that are written out share: the bits of a number, and ln 2.
#pragma once

#include "codegen/emit/llvm/unit.h"

namespace tenon::codegen::simd {

constexpr double kLog2E = 0x1.715476p+0;
constexpr double kLn2 = 0x1.62e430p-1;
constexpr double kLn2High = 0x1.62e400p-1;  ///< few bits: its product with a small integer is exact
constexpr double kLn2Low = 0x1.7f7d1cp-20;

/// f32 as i32 and back, of any width.
Value* bits_of(Unit& unit, Value* real);
Value* real_of(Unit& unit, Value* bits);

/// x + n c ln2 for a small integer n and a c of few bits.
Value* plus_ln2(Unit& unit, Value* x, Value* n, double c);

}  // namespace tenon::codegen::simd
