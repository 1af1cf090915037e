// The SLEEF routines (https://sleef.org, 1 ulp variants) that generated code may call: X(name). The runtime gives
// their addresses to the linker; the symbol is Sleef_<name>f16_u10avx512f and so on.
#pragma once

#include <string>
#include <string_view>

// clang-format off
#define TENON_SLEEF(X)                                                                                          \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh)  \
  X(tanh) X(erf) X(pow)
// clang-format on

namespace tenon::codegen::simd {

/// The symbol of SLEEF's `name` on vectors of `vector_bytes` bytes of f32 or f64.
std::string sleef_symbol(std::string_view name, bool is_double, int vector_bytes);

}  // namespace tenon::codegen::simd
