// Detection of the host processor, by LLVM's names.
#include "runtime/cpu/host.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <tbb/info.h>
#include <unistd.h>

#include <map>

namespace tenon::runtime::cpu {
namespace {

std::map<std::string, bool> host_features() {
  std::map<std::string, bool> sorted;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) sorted[feature.first().str()] = feature.second;
  return sorted;
}

std::int64_t cache_bytes(int name, std::int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

}  // namespace

codegen::Target host_target() {
  codegen::Target target;
  target.kind = codegen::TargetKind::cpu;
  target.cpu = llvm::sys::getHostCPUName().str();
  std::map<std::string, bool> features = host_features();
  for (const auto& [name, present] : features)
    target.features += (target.features.empty() ? "" : ",") + std::string(present ? "+" : "-") + name;
  const auto has = [&](const char* name) { return features[name]; };
  if (has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl")) {
    target.vector_bytes = 64;
  } else {
    target.vector_bytes = has("avx2") && has("fma") && has("f16c") ? 32 : 16;
  }
  target.threads = tbb::info::default_concurrency();
  target.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
  target.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, target.l3_bytes);
  return target;
}

}  // namespace tenon::runtime::cpu
