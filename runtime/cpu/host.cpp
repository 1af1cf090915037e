// Detection of the host processor, by LLVM's names.
#include "runtime/cpu/host.h"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <tbb/info.h>

#include <fstream>
#include <map>

namespace tenon::runtime::cpu {
namespace {

std::map<std::string, bool> host_features() {
  std::map<std::string, bool> sorted;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) sorted[feature.first().str()] = feature.second;
  return sorted;
}

template <typename T>
T read_field(const std::string& path, T otherwise) {
  T value{};
  return std::ifstream(path) >> value ? value : otherwise;
}

// Of the first core's cache of that level that holds data. By the kernel's table, "32768K": sysconf is told of a
// socket's last-level caches together on some processors.
std::int64_t cache_bytes(int level, std::int64_t otherwise) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    if (read_field(folder + "level", 0) != level || read_field<std::string>(folder + "type", "") == "Instruction")
      continue;
    if (const auto kilobytes = read_field<std::int64_t>(folder + "size", 0); kilobytes > 0) return kilobytes << 10;
  }
  return otherwise;
}

// The processor, its features, and how wide its registers are.
void describe_processor(codegen::Target& target) {
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
}

}  // namespace

codegen::Target host_target(int vector_bytes) {
  codegen::Target target;
  target.kind = codegen::TargetKind::cpu;
  target.may = codegen::cpu_features();
  if (vector_bytes == 0) {
    describe_processor(target);
  } else {
    target.cpu = vector_bytes == 32 ? "x86-64-v3" : "x86-64-v2";
    target.vector_bytes = vector_bytes;
  }
  target.threads = tbb::info::default_concurrency();
  target.l1_bytes = cache_bytes(1, target.l1_bytes);
  target.l2_bytes = cache_bytes(2, target.l2_bytes);
  target.l3_bytes = cache_bytes(3, target.l3_bytes);
  return target;
}

}  // namespace tenon::runtime::cpu
