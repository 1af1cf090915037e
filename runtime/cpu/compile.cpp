// Parse, a handful of passes, code generation.
#include "runtime/cpu/compile.h"

#include <fmt/format.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/Reassociate.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <chrono>
#include <memory>

#include "tenon/error.h"

namespace tenon::runtime::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void initialize_llvm() {
  static const bool done = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)done;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const std::string& triple, const codegen::Target& target) {
  std::string complaint;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, complaint);
  if (!found) throw Error(ErrorKind::unsupported, "LLVM has no target " + triple + ": " + complaint);
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(triple, target.cpu, target.features,
                                                                         llvm::TargetOptions(), llvm::Reloc::PIC_,
                                                                         std::nullopt, llvm::CodeGenOptLevel::Default));
}

std::unique_ptr<llvm::Module> parse(const std::string& text, llvm::LLVMContext& context) {
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context);
  if (!module)
    throw Error(ErrorKind::compile, fmt::format("LLVM refused generated code: line {}: {}", diagnostic.getLineNo(),
                                                diagnostic.getMessage().str()));
  return module;
}

void run_passes(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::ReassociatePass());  // constants of indices last, where addresses hold them
  passes.addPass(llvm::EarlyCSEPass());
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, functions);
}

std::string generate(const std::string& text, const codegen::Target& target, llvm::CodeGenFileType type,
                     CompileStatistics& statistics) {
  initialize_llvm();
  llvm::LLVMContext context;
  auto start = Clock::now();
  const std::unique_ptr<llvm::Module> module = parse(text, context);
  statistics.parse_ms = milliseconds_since(start);

  start = Clock::now();
  run_passes(*module);
  statistics.passes_ms = milliseconds_since(start);

  start = Clock::now();
  const auto machine = make_machine(module->getTargetTriple(), target);
  module->setDataLayout(machine->createDataLayout());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type))
    throw Error(ErrorKind::unsupported, "LLVM cannot emit code for " + target.cpu);
  passes.run(*module);
  statistics.codegen_ms = milliseconds_since(start);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Object compile(const std::string& assembly, const codegen::Target& target) {
  Object object;
  object.bytes = generate(assembly, target, llvm::CodeGenFileType::ObjectFile, object.statistics);
  return object;
}

std::string assembly_text(const std::string& llvm_assembly, const codegen::Target& target) {
  CompileStatistics statistics;
  return generate(llvm_assembly, target, llvm::CodeGenFileType::AssemblyFile, statistics);
}

}  // namespace tenon::runtime::cpu
