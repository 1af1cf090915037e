// The program's side of NVTX 3. NVTX is a header, not a library: what is compiled from it looks for a tool in the
// environment variable NVTX_INJECTION64_PATH, opens that, and hands it tables of function pointers, which the tool
// fills in. This file does the same with our own declarations of those tables (nvtx3/nvtxDetail/nvtxTypes.h names
// them), as runtime/cuda/driver.h does for the driver. The other way, to open a library that exports nvtxRangePushA,
// finds none on many machines: libnvToolsExt left the toolkit with CUDA 12.9, libnvtx3interop is in the toolkit alone,
// and both would look for the same variable.
#include "runtime/nvtx.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/dynamic_library.h"

namespace tenon::runtime {
namespace {

using Function = void (*)();

// Functions have numbers within modules. A tool may fill in any; two are called here.
constexpr unsigned kModules = 7;     // from 1: core, CUDA, OpenCL, CUDA runtime, core 2 (domains), synchronisation
constexpr unsigned kFunctions = 16;  // in the largest module, from 1
constexpr unsigned kSizes[kModules] = {0, 16, 9, 15, 7, 16, 7};
constexpr unsigned kCore = 1, kRangePushA = 9, kRangePop = 11;

// A module's functions, and what a tool is given: where to write each.
struct Module {
  std::array<Function, kFunctions> functions{};
  std::array<Function*, kFunctions + 1> table{};
};

// Static because the interface is: its callbacks carry no pointer of ours, and a tool may keep what it was given.
Module modules[kModules];

int module_table(int module, Function*** table, unsigned* size) {
  if (module < 1 || module >= static_cast<int>(kModules)) return 0;
  if (size != nullptr) *size = kSizes[module];
  if (table != nullptr) *table = modules[module].table.data();
  return 1;
}

struct CallbackTable {
  std::size_t struct_size;
  int (*module_table)(int module, Function*** table, unsigned* size);
};
constexpr CallbackTable kCallbacks{sizeof(CallbackTable), module_table};

struct VersionTable {
  std::size_t struct_size;
  std::uint32_t version, reserved;
  void (*set_tool_version)(std::uint32_t version);
};
constexpr VersionTable kVersion{sizeof(VersionTable), 3, 0, [](std::uint32_t) {}};

const void* export_table(std::uint32_t id) {
  constexpr std::uint32_t kCallbacksId = 1, kVersionId = 3;
  if (id == kCallbacksId) return &kCallbacks;
  return id == kVersionId ? &kVersion : nullptr;
}

}  // namespace

Nvtx::Nvtx(const std::string& path) {
  using ExportTable = const void* (*)(std::uint32_t);
  for (unsigned module = 1; module < kModules; ++module)
    for (unsigned function = 1; function < kSizes[module]; ++function)
      modules[module].table[function] = &modules[module].functions[function];
  const std::optional<DynamicLibrary> tool = DynamicLibrary::open(path, DynamicLibrary::Lifetime::process);
  if (!tool) return;
  const auto initialize = tool->symbol<int (*)(ExportTable)>("InitializeInjectionNvtx2");
  attached_ = initialize != nullptr && initialize(export_table) != 0;
}

const Nvtx* Nvtx::attach(const std::string& path) {
  if (path.empty()) return nullptr;
  static const Nvtx nvtx(path);
  return nvtx.attached_ ? &nvtx : nullptr;
}

void Nvtx::push(const char* name) const {
  const Function function = modules[kCore].functions[kRangePushA];
  if (function != nullptr) reinterpret_cast<int (*)(const char*)>(function)(name);
}

void Nvtx::pop() const {
  const Function function = modules[kCore].functions[kRangePop];
  if (function != nullptr) reinterpret_cast<int (*)()>(function)();
}

}  // namespace tenon::runtime
