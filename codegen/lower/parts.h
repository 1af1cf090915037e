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

/// The other product of a pair: the same rows by another matrix.
struct SecondProduct {
  InstrId contract = -1;
  OperandPart b;
};

struct ContractParts {
  std::vector<int> batch;
  int m = -1, n = -1, k = -1;
  InstrId contract = -1;
  OperandPart a, b;
  std::optional<SecondProduct> second;
  Region epilogue;  ///< what the stores need beyond the products; varies along batch, m and n only

  int products() const { return second ? 2 : 1; }
};

/// The parts of a contract kernel. A body of another form is a defect (of the planner or of lowering).
ContractParts contract_parts(const Kernel& kernel);

/// What a weight is multiplied by, divided by or selected with on its way to the second contraction: x * value,
/// x / value, or where: x as far as `value` (a bool) is `kept`, else 0.
struct Factor {
  ir::Op op = ir::Op::mul;
  InstrId value = -1;
  bool kept = true;
};

/// The parts of an attend kernel's attention, and the regions between them.
struct AttendParts : Attention {
  std::vector<int> batch;  ///< those first along which what is read beside scores varies
  int i = -1, e = -1, j = -1, d = -1;
  std::vector<Factor> factors;      ///< constant along a row: applied to the second contraction's sum, in this order
  std::vector<Factor> key_factors;  ///< the others: applied to each weight, in this order
  DType weight_dtype = DType::f32;  ///< what the weights are cast to for mix
  double weight_scale = 1;  ///< f8: what they are multiplied by ahead of that, which `factors` has: 1 or a power of two
  OperandPart q, k, v;
  Region score_region;   ///< from scores to score
  Region shift_region;   ///< from maximum to shift: row values
  Region weight_region;  ///< from score and shift to weight
  Region factor_region;  ///< what key_factors need
  Region epilogue;       ///< from mix, maximum and sum to the stores, row factors included
};

/// Reads off what Kernel::attention says, which verify(kernel) has checked.
AttendParts attend_parts(const Kernel& kernel);

}  // namespace tenon::codegen
