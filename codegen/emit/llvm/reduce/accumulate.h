// Reductions as accumulators: identity, combination, and the fold across lanes in a fixed order.
#pragma once

#include <vector>

#include "codegen/emit/llvm/unit.h"

namespace tenon::codegen::simd {

/// What a reduction has found so far; `index` only of argmax and argmin.
struct Partial {
  Value* value = nullptr;
  Value* index = nullptr;
};

bool carries_index(const Instr& reduce);
/// The dtype of the elements that `reduce` combines.
DType element_dtype(const Kernel& kernel, const Instr& reduce);
/// The result of no elements, in `lanes` lanes.
Partial identity_of(Unit& unit, const Instr& reduce, int lanes);
/// With an element behind all that `a` has seen.
Partial accumulate(Unit& unit, const Instr& reduce, const Partial& a, const Partial& element);
/// Of two parts in any order: equal extremes go to the smaller index.
Partial merge(Unit& unit, const Instr& reduce, const Partial& a, const Partial& b);
/// Of several parts, by halves, so that few of them wait for each other.
Partial merge_all(Unit& unit, const Instr& reduce, std::vector<Partial> parts);
/// All lanes in one, by halves.
Partial fold_lanes(Unit& unit, const Instr& reduce, Partial a);
/// The reduction's value.
Value* result_of(const Partial& a);

/// What a reduction has found so far, as variables of the function.
struct Accumulator {
  llvm::AllocaInst* value = nullptr;
  llvm::AllocaInst* index = nullptr;
};
/// Of no elements yet, in `lanes` lanes.
Accumulator make_accumulator(Unit& unit, const Instr& reduce, int lanes);
Partial read(Unit& unit, const Accumulator& accumulator);
void write(Unit& unit, const Accumulator& accumulator, const Partial& partial);

}  // namespace tenon::codegen::simd
