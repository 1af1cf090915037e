#include "codegen/emit/llvm/classes.h"
namespace tenon::codegen::simd {
Source emit_attend(Unit&) { return {}; }
}  // namespace tenon::codegen::simd
