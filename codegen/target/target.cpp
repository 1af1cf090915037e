// The devices that stand for their architectures, and what they can: limits by the CUDA C++ Programming Guide, table
// "Technical Specifications per Compute Capability"; the rest by datasheets, caches and clocks as drivers tell them.
#include "codegen/target/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

#include "ir/graph/check.h"
#include "tenon/error.h"

namespace tenon::codegen {
namespace {

constexpr const char* kArchitectures[] = {"sm_75",   "sm_80",  "sm_86",   "sm_87",  "sm_89",   "sm_90",
                                          "sm_90a",  "sm_100", "sm_100a", "sm_103", "sm_103a", "sm_110",
                                          "sm_110a", "sm_120", "sm_120a", "sm_121", "sm_121a"};

struct Device {
  int sm;
  const char* name;     // part of what its driver calls it
  int multiprocessors;  // and of each of these:
  int threads, blocks, shared_kib;
  int reserved_kib;  // of shared memory, for each block
  int lanes, tensor_flops;
  double gigahertz, bandwidth_gb_s;
  int l2_mib;
};

// The first of an architecture is the typical one. Tensor cores of sm_100 and later by mma.sync, which Tenon emits.
constexpr Device kDevices[] = {
    {75, "T4", 40, 1024, 16, 64, 0, 64, 1024, 1.59, 320, 4},
    {80, "A100 80GB", 108, 2048, 32, 164, 1, 64, 2048, 1.41, 2039, 40},
    {86, "A40", 84, 1536, 16, 100, 1, 128, 1024, 1.74, 696, 6},
    {87, "AGX Orin", 16, 1536, 16, 164, 1, 128, 2048, 1.3, 204, 4},
    {89, "RTX 4090", 128, 1536, 24, 100, 1, 128, 512, 2.52, 1008, 72},
    {90, "H100", 132, 2048, 32, 228, 1, 128, 4096, 1.98, 3350, 50},
    {90, "H200", 132, 2048, 32, 228, 1, 128, 4096, 1.98, 4800, 60},
    {100, "B200", 148, 2048, 32, 228, 1, 128, 4096, 1.85, 8000, 126},
    {103, "B300", 148, 2048, 32, 228, 1, 128, 4096, 1.85, 8000, 126},
    {110, "Jetson Thor", 20, 1536, 24, 228, 1, 128, 4096, 1.57, 273, 32},
    {120, "RTX 5090", 170, 1536, 24, 100, 1, 128, 512, 2.41, 1792, 96},
    {121, "GB10", 48, 1536, 24, 100, 1, 128, 512, 2.4, 273, 24},
};
constexpr int kRegisters = 65536;  // of a multiprocessor, on all of them

int capability_of(std::string_view arch) {
  int sm = 0;
  std::from_chars(arch.data() + std::string_view("sm_").size(), arch.data() + arch.size(), sm);
  return sm;
}

const Device& device_of(int sm, const std::string& name) {
  const Device* typical = nullptr;
  for (const Device& row : kDevices) {
    if (row.sm != sm) continue;
    if (name.find(row.name) != std::string::npos) return row;
    if (typical == nullptr) typical = &row;
  }
  TENON_CHECK(typical != nullptr, "an architecture has a device that stands for it");
  return *typical;
}

}  // namespace

std::vector<std::string> cuda_architectures() { return {std::begin(kArchitectures), std::end(kArchitectures)}; }

// Processors with registers of 32 bytes (AVX2) have it.
bool has_fma(const Target& target) { return target.kind == TargetKind::cuda || target.vector_bytes > 16; }

ir::TensorCores tensor_cores(const Target& target) {
  return {.f16 = target.sm >= 75, .bf16 = target.sm >= 80, .tf32 = target.sm >= 80, .f8 = target.may.wgmma};
}

// Three products of tf32, of which there are half as many a clock as of f16. By mma.sync two thirds of them are
// reached.
bool may_split_f32(const Target& target) {
  return target.may.split_f32 && target.sm >= 80 &&
         target.tensor_flops_per_clock / 6 * 2 / 3 > 2 * target.lanes_per_multiprocessor;
}

Target cuda_target(const std::string& arch, const std::string& device) {
  if (std::find(std::begin(kArchitectures), std::end(kArchitectures), arch) == std::end(kArchitectures))
    throw Error(ErrorKind::unsupported, fmt::format("'{}' is no target", arch), {},
                fmt::format("use cpu, cuda, auto, or one of {}", fmt::join(cuda_architectures(), ", ")));
  const Device& row = device_of(capability_of(arch), device);
  Target target;
  target.kind = TargetKind::cuda;
  target.device = row.name;
  target.sm = row.sm;
  target.arch = arch;
  target.multiprocessors = row.multiprocessors;
  target.threads_per_multiprocessor = row.threads;
  target.blocks_per_multiprocessor = row.blocks;
  target.registers_per_multiprocessor = kRegisters;
  target.shared_memory_per_multiprocessor = row.shared_kib << 10;
  target.shared_memory_per_block = (row.shared_kib - row.reserved_kib) << 10;
  target.reserved_shared_memory_per_block = row.reserved_kib << 10;
  target.lanes_per_multiprocessor = row.lanes;
  target.tensor_flops_per_clock = row.tensor_flops;
  target.gigahertz = row.gigahertz;
  target.bandwidth_gb_s = row.bandwidth_gb_s;
  target.l2_bytes = std::int64_t{row.l2_mib} << 20;
  target.may = cuda_features();
  target.may.keep_reads = target.may.grid_rows = row.sm >= 80;
  target.may.dependent_launch = target.may.bulk_copies = target.may.clusters = row.sm >= 90;
  target.may.wgmma = arch == "sm_90a";
  return target;
}

}  // namespace tenon::codegen
