// What code is generated for. Plain data: a CUDA target can be described on a machine without a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/target/features.h"

namespace tenon::codegen {

enum class TargetKind : std::uint8_t { cpu, cuda };

struct Target {
  TargetKind kind = TargetKind::cpu;
  Features may;  ///< what kernels may do

  // CUDA
  int sm = 90;                  ///< 10 * major + minor of the compute capability
  std::string arch = "sm_90a";  ///< what NVRTC is told, feature suffix included
  int multiprocessors = 132;
  int shared_memory_per_block = 232448;  ///< opt-in limit, bytes
  int registers_per_block = 65536;

  // CPU
  std::string cpu;        ///< LLVM's name of the processor, "znver4"
  std::string features;   ///< LLVM's feature string; decides code, so it is part of every key
  int vector_bytes = 32;  ///< width of a SIMD register: 16, 32 or 64
  int threads = 1;
  std::int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 16 << 20;

  bool operator==(const Target&) const = default;
};

/// Whether it multiplies and adds with one rounding in one instruction.
bool has_fma(const Target& target);

/// The target named "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120", … with typical numbers of that architecture;
/// Error(unsupported) with the list of known ones otherwise.
Target cuda_target(const std::string& arch);

/// The names that cuda_target takes, in order of their numbers.
std::vector<std::string> cuda_architectures();

}  // namespace tenon::codegen
