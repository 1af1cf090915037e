// A tool such as NVIDIA's profilers, as NVTX sees one: a library that writes down the ranges it is told of. It asks for
// the tables in the way that Nsight's and CUPTI's do (nvtx3/nvtxDetail/nvtxTypes.h).
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

std::string written;

int push(const char* name) {
  written += std::string("push ") + name + "\n";
  return 0;
}

int pop() {
  written += "pop\n";
  return 0;
}

using Function = void (*)();
struct Callbacks {
  std::size_t struct_size;
  int (*module_table)(int module, Function*** table, unsigned* size);
};

}  // namespace

extern "C" {

int InitializeInjectionNvtx2(const void* (*export_table)(std::uint32_t)) {
  constexpr std::uint32_t kCallbacks = 1;
  constexpr int kCore = 1;
  constexpr unsigned kRangePushA = 9, kRangePop = 11, kCoreFunctions = 16;
  const auto* callbacks = static_cast<const Callbacks*>(export_table(kCallbacks));
  Function** table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->struct_size < sizeof(Callbacks)) return 0;
  if (callbacks->module_table(kCore, &table, &size) == 0 || size < kCoreFunctions) return 0;
  *table[kRangePushA] = reinterpret_cast<Function>(push);
  *table[kRangePop] = reinterpret_cast<Function>(pop);
  return 1;
}

/// All ranges so far, a line for each begin and end.
const char* ranges_written() { return written.c_str(); }
}
