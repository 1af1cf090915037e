// What multiplies the operands of a contraction: tensor cores or plain lanes, and as which dtype. Planner and code
// generator both ask here.
#pragma once

#include <cstdint>

#include "tenon/dtype.h"

namespace tenon::ir {

/// The dtypes that a device's tensor cores multiply.
struct TensorCores {
  bool f16 = true, bf16 = true, tf32 = true;
  bool f8 = true;  ///< as it is stored, where both operands lie along the depth
  bool operator==(const TensorCores&) const = default;
};

/// Both operands as they are multiplied.
struct ContractionElement {
  DType dtype = DType::f32;   ///< f16, bf16, f32 or f64; f8 operands become f16 (or bf16 beside bf16), which is exact
  bool tensor_cores = false;  ///< f16, bf16, or f32 rounded to tf32; else multiplied as they are
};

/// Of operands `a` and `b`; `tf32`: whether f32 may be rounded.
ContractionElement contraction_element(DType a, DType b, DType result, bool tf32, const TensorCores& device);

/// The terms that tensor cores add up where `block` of a matmul of f8 does not say how many.
constexpr std::int64_t kBlockOfF8 = 128;
/// Whether tensor cores may multiply operands of f8 as they are stored. They keep some 13 bits of a sum then, so that a
/// total gets those of a block: enough for results of 16 bits, or where `block` of the matmul asks for it.
bool may_multiply_f8(DType a, DType b, DType result, std::int64_t block);

}  // namespace tenon::ir
