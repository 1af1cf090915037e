// Calls of SLEEF: a value is cut into pieces of the register width, a scalar or narrow one fills a register.
#include "codegen/emit/llvm/ops/sleef.h"

#include <fmt/format.h>

#include "codegen/emit/llvm/ops/ops.h"

namespace tenon::codegen::simd {

std::string sleef_symbol(std::string_view name, bool is_double, int vector_bytes) {
  const char* extension = vector_bytes == 64 ? "avx512f" : vector_bytes == 32 ? "avx2" : "sse2";
  return fmt::format("Sleef_{}{}{}_u10{}", name, is_double ? 'd' : 'f', vector_bytes / (is_double ? 8 : 4), extension);
}

namespace {

llvm::FunctionCallee declare(Unit& unit, const std::string& symbol, Type* type, std::size_t arity) {
  auto* signature = llvm::FunctionType::get(type, std::vector<Type*>(arity, type), false);
  llvm::FunctionCallee callee = unit.module.getOrInsertFunction(symbol, signature);
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->addFnAttr(llvm::Attribute::WillReturn);
  return callee;
}

}  // namespace

Value* call_sleef(Unit& unit, std::string_view name, const std::vector<Value*>& args) {
  Type* element = args[0]->getType()->getScalarType();
  const bool is_double = element->isDoubleTy();
  const int lanes = lanes_of(args[0]);
  const int width = unit.target.vector_bytes / (is_double ? 8 : 4);
  const auto callee =
      declare(unit, sleef_symbol(name, is_double, unit.target.vector_bytes), vector_of(element, width), args.size());
  std::vector<Value*> results;
  for (int from = 0; from < lanes; from += width) {
    std::vector<Value*> pieces;
    for (Value* arg : args) pieces.push_back(piece(unit, arg, from, width));
    results.push_back(unit.b.CreateCall(callee, pieces));
  }
  if (lanes == 1) return unit.b.CreateExtractElement(results[0], std::uint64_t{0});
  if (lanes < width) return piece(unit, results[0], 0, lanes);
  return concatenate(unit, std::move(results));
}

}  // namespace tenon::codegen::simd
