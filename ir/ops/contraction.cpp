// See contraction.h.
#include "ir/ops/contraction.h"

namespace tenon::ir {
namespace {

// The dtype that holds every value of both exactly and that tensor cores multiply; f32 when there is none.
DType common_element(DType a, DType b) {
  if (is_f8(a) && is_f8(b)) return DType::f16;
  if (is_f8(a)) return b;
  if (is_f8(b) || a == b) return a;
  return DType::f32;
}

}  // namespace

ContractionElement contraction_element(DType a, DType b, DType result, bool tf32, const TensorCores& device) {
  if (a == DType::f64 || b == DType::f64 || result == DType::f64) return {DType::f64, false};
  const DType common = common_element(a, b);
  if ((common == DType::f16 && device.f16) || (common == DType::bf16 && device.bf16)) return {common, true};
  return {DType::f32, tf32 && device.tf32};
}

bool may_multiply_f8(DType a, DType b, DType result, std::int64_t block) {
  return is_f8(a) && is_f8(b) && (block > 0 || (is_real(result) && size_of(result) == 2));
}

}  // namespace tenon::ir
