// What code is generated for. Plain data: a CUDA target can be described on a machine without a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/target/features.h"
#include "ir/ops/contraction.h"

namespace tenon::codegen {

enum class TargetKind : std::uint8_t { cpu, cuda };

struct Target {
  TargetKind kind = TargetKind::cpu;
  Features may;  ///< what kernels may do

  // CUDA: cuda_target sets all of it
  std::string device;  ///< whose numbers these are: "A100 80GB"; as its driver calls it where there is one
  int sm = 0;          ///< 10 * major + minor of the compute capability
  std::string arch;    ///< what NVRTC is told, feature suffix included
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;        ///< resident at once
  int blocks_per_multiprocessor = 0;         ///< likewise, however small they are
  int registers_per_multiprocessor = 0;      ///< of 32 bits; one block may have them all
  int shared_memory_per_multiprocessor = 0;  ///< bytes
  int shared_memory_per_block = 0;           ///< opt-in limit, bytes
  int reserved_shared_memory_per_block = 0;  ///< bytes that the driver takes for each
  int lanes_per_multiprocessor = 0;          ///< that multiply in f32
  int tensor_flops_per_clock = 0;            ///< of a multiprocessor: f16 summed in f32, dense
  double gigahertz = 0;
  double bandwidth_gb_s = 0;  ///< of memory, as clock and width of its bus give it

  // CPU
  std::string cpu;        ///< LLVM's name of the processor, "znver4"
  std::string features;   ///< LLVM's feature string; decides code, so it is part of every key
  int vector_bytes = 32;  ///< width of a SIMD register: 16, 32 or 64
  int threads = 1;
  std::int64_t l1_bytes = 32 << 10, l3_bytes = 16 << 20;
  std::int64_t streamed_row_bytes =
      8 << 10;  ///< rows that share cache lines go around the caches from so many bytes on

  std::int64_t l2_bytes = 1 << 20;  ///< CUDA: that all multiprocessors share; CPU: of a core

  bool operator==(const Target&) const = default;
};

/// So many hundredths of the second-level cache, bytes: by it go the thresholds that were measured on an H100 (50 MiB).
inline std::int64_t percent_of_l2(const Target& target, int percent) { return target.l2_bytes * percent / 100; }

/// Whether it multiplies and adds with one rounding in one instruction.
bool has_fma(const Target& target);

/// What its tensor cores multiply.
ir::TensorCores tensor_cores(const Target& target);

/// Whether tensor cores multiply f32 in parts of tf32 faster than lanes do.
bool may_split_f32(const Target& target);

/// The target named "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120", … with the numbers of a device of that
/// architecture: of the one whose name is part of `device` ("NVIDIA H200"), of a typical one where none is.
/// Error(unsupported) with the list of known architectures otherwise.
Target cuda_target(const std::string& arch, const std::string& device = {});

/// The names that cuda_target takes, in order of their numbers.
std::vector<std::string> cuda_architectures();

}  // namespace tenon::codegen
