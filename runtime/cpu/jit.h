// Object files made callable by LLVM ORC. No LLVM type appears here. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tenon::runtime::cpu {

/// Works on tasks [begin, end); `pointers` holds the operands' addresses, `dims` the symbols' values
/// (codegen/emit/source.h).
using KernelFunction = void (*)(void* const* pointers, const std::int64_t* dims, std::int64_t begin, std::int64_t end);

/// The code of one object; unmapped when this is destroyed.
class LoadedObject {
 public:
  struct Impl;
  explicit LoadedObject(std::unique_ptr<Impl> impl);
  ~LoadedObject();
  LoadedObject(LoadedObject&&) noexcept;
  LoadedObject& operator=(LoadedObject&&) noexcept;

  /// The function named `entry`; Error(internal) when the object has none.
  KernelFunction function(const std::string& entry) const;

 private:
  std::unique_ptr<Impl> impl_;
};

/// A linker into this process, which knows the math routines and helpers that generated code calls.
class Jit {
 public:
  Jit();
  ~Jit();
  Jit(Jit&&) noexcept;
  Jit& operator=(Jit&&) noexcept;

  /// Error(compile) when the object cannot be linked. The result keeps the linker alive.
  LoadedObject load(const std::string& object) const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tenon::runtime::cpu
