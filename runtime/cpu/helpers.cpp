// The table of symbols for the linker.
#include "runtime/cpu/helpers.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "codegen/emit/llvm/ops/sleef.h"

// SLEEF's symbols are only named here, never called, so that one signature serves them all.
extern "C" {
#define DECLARE(name)                  \
  void Sleef_##name##f4_u10sse2();     \
  void Sleef_##name##d2_u10sse2();     \
  void Sleef_##name##f8_u10avx2();     \
  void Sleef_##name##d4_u10avx2();     \
  void Sleef_##name##f16_u10avx512f(); \
  void Sleef_##name##d8_u10avx512f();
TENON_SLEEF(DECLARE)
#undef DECLARE

/// At least `bytes` bytes, aligned to 64, that belong to the calling thread until its next call.
void* tenon_scratch(std::int64_t bytes) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }  // NOLINT: of aligned_alloc
  };
  thread_local std::unique_ptr<void, Free> memory;
  thread_local std::int64_t size = 0;
  if (bytes > size) {
    size = (bytes + 4095) / 4096 * 4096;
    memory.reset(std::aligned_alloc(64, static_cast<std::size_t>(size)));
    if (!memory) std::abort();
  }
  return memory.get();
}
}

namespace tenon::runtime::cpu {
namespace {

template <typename Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::span<const Helper> helpers() {
#define ROWS(name)                                                              \
  {"Sleef_" #name "f4_u10sse2", address(Sleef_##name##f4_u10sse2)},             \
      {"Sleef_" #name "d2_u10sse2", address(Sleef_##name##d2_u10sse2)},         \
      {"Sleef_" #name "f8_u10avx2", address(Sleef_##name##f8_u10avx2)},         \
      {"Sleef_" #name "d4_u10avx2", address(Sleef_##name##d4_u10avx2)},         \
      {"Sleef_" #name "f16_u10avx512f", address(Sleef_##name##f16_u10avx512f)}, \
      {"Sleef_" #name "d8_u10avx512f", address(Sleef_##name##d8_u10avx512f)},
  static const Helper table[] = {
      TENON_SLEEF(ROWS)  //
      {"tenon_scratch", address(tenon_scratch)},
      {"fmod", address<double(double, double)>(std::fmod)},
      {"fmodf", address<float(float, float)>(std::fmod)},
      {"memset", address(std::memset)},
      {"memcpy", address(std::memcpy)},
  };
#undef ROWS
  return table;
}

}  // namespace tenon::runtime::cpu
