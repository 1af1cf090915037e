#include "codegen/emit/llvm/classes.h"
namespace tenon::codegen::simd {
Source emit_reduce(Unit&) { return {}; }
Source emit_contract(Unit&) { return {}; }
Source emit_attend(Unit&) { return {}; }
}
