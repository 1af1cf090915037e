// The architectures that have a name, with the limits that their schedules must respect (CUDA C++ Programming Guide,
// table "Technical Specifications per Compute Capability").
#include "codegen/target/target.h"

#include <fmt/format.h>

#include "tenon/error.h"

namespace tenon::codegen {
namespace {

struct Architecture {
  const char* name;
  int sm;
  int multiprocessors;          // of a typical device
  int shared_memory_per_block;  // opt-in limit
};

constexpr Architecture kArchitectures[] = {
    {"sm_75", 75, 40, 65536},     {"sm_80", 80, 108, 166912},    {"sm_86", 86, 84, 101376},
    {"sm_87", 87, 16, 166912},    {"sm_89", 89, 128, 101376},    {"sm_90", 90, 132, 232448},
    {"sm_90a", 90, 132, 232448},  {"sm_100", 100, 148, 232448},  {"sm_100a", 100, 148, 232448},
    {"sm_103", 103, 148, 232448}, {"sm_103a", 103, 148, 232448}, {"sm_110", 110, 20, 232448},
    {"sm_110a", 110, 20, 232448}, {"sm_120", 120, 170, 101376},  {"sm_120a", 120, 170, 101376},
    {"sm_121", 121, 48, 101376},  {"sm_121a", 121, 48, 101376},
};

}  // namespace

std::vector<std::string> cuda_architectures() {
  std::vector<std::string> names;
  for (const Architecture& row : kArchitectures) names.emplace_back(row.name);
  return names;
}
// Processors with registers of 32 bytes (AVX2) have it.
bool has_fma(const Target& target) { return target.kind == TargetKind::cuda || target.vector_bytes > 16; }

Target cuda_target(const std::string& arch) {
  for (const Architecture& row : kArchitectures) {
    if (arch == row.name) {
      Target target;
      target.kind = TargetKind::cuda;
      target.sm = row.sm;
      target.arch = row.name;
      target.multiprocessors = row.multiprocessors;
      target.may = cuda_features();
      target.may.keep_reads = row.sm >= 80;
      target.may.dependent_launch = target.may.bulk_copies = target.may.clusters = row.sm >= 90;
      target.shared_memory_per_block = row.shared_memory_per_block;
      return target;
    }
  }
  throw Error(ErrorKind::unsupported, fmt::format("'{}' is no target", arch), {},
              fmt::format("use cpu, cuda, auto, or one of {}", fmt::join(cuda_architectures(), ", ")));
}

}  // namespace tenon::codegen
