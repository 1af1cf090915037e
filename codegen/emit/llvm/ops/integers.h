// Integer operators that no single instruction computes: their edges (division by 0, shifts beyond the width, the least
// integer over -1) are those of ir/ops/meaning.h.
#pragma once

#include "codegen/emit/llvm/unit.h"

namespace tenon::codegen::simd {

Value* integer_floor_div(Unit& unit, Value* a, Value* b, DType dtype);
Value* integer_floor_mod(Unit& unit, Value* a, Value* b, DType dtype);
Value* integer_power(Unit& unit, Value* a, Value* b, DType dtype);
Value* integer_shift_left(Unit& unit, Value* a, Value* b);
Value* integer_shift_right(Unit& unit, Value* a, Value* b, DType dtype);

}  // namespace tenon::codegen::simd
