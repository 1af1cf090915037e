// Kernel to LLVM assembly: the class decides the loops, the rest is shared.
#include <fmt/format.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/emit/llvm/classes.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

Source emit_class(simd::Unit& unit) {
  switch (unit.kernel.kernel_class) {
    case ir::KernelClass::map: return simd::emit_map(unit);
    case ir::KernelClass::reduce: return simd::emit_reduce(unit);
    case ir::KernelClass::contract: return simd::emit_contract(unit);
    case ir::KernelClass::attend: return simd::emit_attend(unit);
  }
  return {};
}

}  // namespace

Source emit_llvm(const Kernel& kernel, const Target& target) {
  const std::string why_not = verify(kernel.schedule, kernel, target);
  TENON_CHECK(why_not.empty(), fmt::format("{}: {}\n{}", why_not, print(kernel.schedule), print(kernel)));
  simd::Unit unit(kernel, target);
  Source source = emit_class(unit);
  simd::end_function(unit);
  source.entry = kernel.name;
  source.dims = kernel.dims;
  llvm::raw_string_ostream text(source.text);
  unit.module.print(text, nullptr);
  text.flush();
#ifndef NDEBUG
  std::string complaint;
  llvm::raw_string_ostream complaints(complaint);
  TENON_CHECK(!llvm::verifyModule(unit.module, &complaints), complaint + "\n" + source.text);
#endif
  return source;
}

}  // namespace tenon::codegen
