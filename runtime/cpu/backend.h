// The CPU target: emit_llvm, LLVM ORC, the kernel cache, and oneTBB.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "runtime/backend.h"

namespace tenon::runtime::cpu {

struct BackendOptions {
  int threads = 0;                ///< 0: as many as the process may use
  std::string tenon_version;      ///< part of every cache key
  std::set<std::string> disable;  ///< codegen::Features that are switched off
  int vector_bytes = 0;           ///< of host_target
  std::string cpu;                ///< LLVM's name of the processor to tune for, with this one's features; "": this one
  std::int64_t l3_bytes = 0;      ///< 0: the machine's; what kernels take for it: results beyond go around the caches
  std::int64_t streamed_row_bytes = 0;  ///< 0: the machine's; of Target
};

std::shared_ptr<const Backend> make_backend(const BackendOptions& options, std::shared_ptr<KernelCache> cache);

}  // namespace tenon::runtime::cpu
