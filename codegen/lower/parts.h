// Contract and Attend kernels cut into the regions that their loop structures place differently: what feeds an operand
// of a contraction, what happens to scores, what follows the last contraction. Both emitters and the schedules read a
// body through it. Relies on the last axes of these classes: contract [batch…, m, n | k], attend [batch…, i, e | j, d].
//
// A region lists instructions in definition order. An instruction that several regions need is in each of them.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

using Region = std::vector<InstrId>;

/// An operand of a contraction: its value, and what computes it from memory.
struct OperandPart {
  InstrId value = -1;
  Region region;
  int outer = -1;  ///< the axis that the operand has beside batch and depth: m or n, i, j or e
  int depth = -1;  ///< the axis that the contraction combines
};

struct ContractParts {
  std::vector<int> batch;
  int m = -1, n = -1, k = -1;
  InstrId contract = -1;
  OperandPart a, b;
  Region epilogue;  ///< what the stores need beyond the contraction; varies along batch, m and n only
};

/// The parts of a contract kernel. A body of another form is a defect (of the planner or of lowering).
ContractParts contract_parts(const Kernel& kernel);

/// j <= slope * i + offset (an upper bound) or j >= slope * i + offset (a lower one), for all keys j that query i sees.
struct KeyBound {
  bool upper = true;
  std::int64_t slope = 0;
  Dim offset;
};

/// A factor that is constant along a row, applied to the second contraction's sum instead of to each weight: x * value,
/// x / value, or where: x as far as `value` (a bool) is `kept`, else 0.
struct RowFactor {
  ir::Op op = ir::Op::mul;
  InstrId value = -1;
  bool kept = true;
};

/// What a weight passes on its way to the second contraction, when it varies along the row: x * value, x / value, or
/// where: x as far as `value` (a bool) is `kept`, else 0.
struct KeyFactor {
  ir::Op op = ir::Op::mul;
  InstrId value = -1;
  bool kept = true;
};

/// The accepted form, with s(i, j) any function of the scores and of positions, c(i) any function of the row's maximum:
///     maximum = max over j of s          (may be absent, then so is c)
///     weight  = exp(s - c)               (or exp2; exp(s) when there is no c)
///     sum     = sum over j of weight     (may be absent)
///     mix     = sum over j of p * v, where p is weight behind casts, products, quotients and selections against 0 by
///               values that are functions of the row (then of maximum and sum too) or of positions
/// Everything that follows mix, maximum and sum varies along batch, i and e only. This is what the planner finds
/// (ir/fusion/plan.h, Attention).
struct AttendParts {
  std::vector<int> batch;
  int i = -1, e = -1, j = -1, d = -1;
  InstrId scores = -1, mix = -1;
  InstrId score = -1;                  ///< s: what is exponentiated, before the shift
  InstrId shift = -1;                  ///< c; -1 when there is none
  InstrId maximum = -1, sum = -1;      ///< reductions; -1 when absent
  InstrId weight = -1;                 ///< the exponential
  std::vector<RowFactor> factors;      ///< between weight and mix, in the order of application
  std::vector<KeyFactor> key_factors;  ///< likewise
  DType weight_dtype = DType::f32;     ///< what the weights are cast to for mix
  OperandPart q, k, v;
  Region score_region;           ///< from scores to score
  Region shift_region;           ///< from maximum to shift: row values
  Region weight_region;          ///< from score and shift to weight
  Region factor_region;          ///< what key_factors need
  Region epilogue;               ///< from mix, maximum and sum to the stores, row factors included
  std::vector<KeyBound> bounds;  ///< what score's masks say: elsewhere score is -inf
};

AttendParts attend_parts(const Kernel& kernel);

/// Everything that `roots` need, in definition order, without `given` and what only they need.
Region region_of(const Kernel& kernel, const std::vector<InstrId>& roots, const std::vector<InstrId>& given);

/// Bounds on the axis `j` that hold wherever `condition` does (where it does not, if not `holds`), found in comparisons
/// of sums of positions and in conjunctions of them. Not complete: what is not understood bounds nothing.
std::vector<KeyBound> key_bounds(const Kernel& kernel, InstrId condition, bool holds, int i, int j);

}  // namespace tenon::codegen
