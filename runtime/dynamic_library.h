// A shared library opened at run time: the driver and NVRTC are found on the user's machine, never linked.
// Relies on dlopen alone. Libraries that start threads or register exit handlers are kept open until the process ends.
#pragma once

#include <optional>
#include <string>

namespace tenon::runtime {

/// Owns one dlopen handle; move-only.
class DynamicLibrary {
 public:
  enum class Lifetime {
    scoped,   ///< closed by the destructor
    process,  ///< never closed: the CUDA driver and NVRTC do not survive dlclose
  };

  /// Opens `name` (a soname, searched as the loader does but never in the current folder, or a path) with local
  /// visibility.
  /// Empty when the loader refuses; `failure`, where given, then holds its reason.
  static std::optional<DynamicLibrary> open(const std::string& name, Lifetime lifetime, std::string* failure = nullptr);

  /// The library of that soname if this process has it open already, whoever opened it.
  static std::optional<DynamicLibrary> find_loaded(const std::string& soname, Lifetime lifetime);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  /// Address of `name`, or nullptr when the library does not export it.
  void* address(const char* name) const;

  /// Like `address`, as a pointer of type `Pointer` (a function pointer written from the library's documentation).
  template <typename Pointer>
  Pointer symbol(const char* name) const {
    return reinterpret_cast<Pointer>(address(name));
  }

 private:
  DynamicLibrary(void* handle, Lifetime lifetime) : handle_(handle), lifetime_(lifetime) {}

  void* handle_;
  Lifetime lifetime_;
};

/// Canonical path of the loaded file that `address` lies in; empty when it lies in none.
std::string file_of_address(const void* address);

/// The GNU build id (lower-case hex) of the loaded file that `address` lies in, read from its PT_NOTE segments;
/// empty when the file was linked without one.
std::string build_id_of_address(const void* address);

}  // namespace tenon::runtime
