// LLJIT as a linker: each object in a JITDylib of its own, the routines it may call in a shared one.
#include "runtime/cpu/jit.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/TargetSelect.h>

#include <atomic>

#include "runtime/cpu/helpers.h"
#include "tenon/error.h"

namespace tenon::runtime::cpu {

struct Jit::Impl {
  std::unique_ptr<llvm::orc::LLJIT> linker;
  llvm::orc::JITDylib* helpers = nullptr;
  std::atomic<std::uint64_t> count{0};
};

struct LoadedObject::Impl {
  std::shared_ptr<Jit::Impl> jit;
  llvm::orc::JITDylib* library = nullptr;

  Impl(std::shared_ptr<Jit::Impl> owner, llvm::orc::JITDylib* code) : jit(std::move(owner)), library(code) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { llvm::consumeError(jit->linker->getExecutionSession().removeJITDylib(*library)); }
};

namespace {

void check(llvm::Error error, ErrorKind kind) {
  if (error) throw Error(kind, "LLVM ORC: " + llvm::toString(std::move(error)));
}

template <typename T>
T check(llvm::Expected<T> value, ErrorKind kind) {
  if (!value) throw Error(kind, "LLVM ORC: " + llvm::toString(value.takeError()));
  return static_cast<T&&>(*value);
}

void define_helpers(llvm::orc::LLJIT& linker, llvm::orc::JITDylib& library) {
  llvm::orc::SymbolMap symbols;
  for (const Helper& helper : helpers())
    symbols[linker.mangleAndIntern(helper.name)] = {llvm::orc::ExecutorAddr::fromPtr(helper.address),
                                                    llvm::JITSymbolFlags::Exported};
  check(library.define(llvm::orc::absoluteSymbols(std::move(symbols))), ErrorKind::internal);
}

}  // namespace

Jit::Jit() : impl_(std::make_shared<Impl>()) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  impl_->linker = check(llvm::orc::LLJITBuilder().create(), ErrorKind::unsupported);
  impl_->helpers = &check(impl_->linker->createJITDylib("helpers"), ErrorKind::internal);
  define_helpers(*impl_->linker, *impl_->helpers);
}
Jit::~Jit() = default;
Jit::Jit(Jit&&) noexcept = default;
Jit& Jit::operator=(Jit&&) noexcept = default;

LoadedObject Jit::load(const std::string& object) const {
  const std::string name = fmt::format("object{}", impl_->count++);
  llvm::orc::JITDylib& library = check(impl_->linker->createJITDylib(name), ErrorKind::internal);
  library.addToLinkOrder(*impl_->helpers);
  auto loaded = std::make_unique<LoadedObject::Impl>(impl_, &library);
  check(impl_->linker->addObjectFile(library, llvm::MemoryBuffer::getMemBufferCopy(object, name)), ErrorKind::compile);
  return LoadedObject(std::move(loaded));
}

LoadedObject::LoadedObject(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoadedObject::~LoadedObject() = default;
LoadedObject::LoadedObject(LoadedObject&&) noexcept = default;
LoadedObject& LoadedObject::operator=(LoadedObject&&) noexcept = default;

KernelFunction LoadedObject::function(const std::string& entry) const {
  const auto address = check(impl_->jit->linker->lookup(*impl_->library, entry), ErrorKind::compile);
  return address.toPtr<KernelFunction>();
}

}  // namespace tenon::runtime::cpu
