// See backends.h.
#include "src/driver/backends.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "runtime/cuda/backend.h"
#include "src/driver/search.h"
#include "tenon_build.h"
#ifdef TENON_WITH_CPU
#include "runtime/cpu/backend.h"
#endif

namespace tenon::src {
namespace {

constexpr const char* kVersion = TENON_VERSION " " TENON_COMMIT;

// "cuda:1".
std::optional<int> device_number(const std::string& target) {
  constexpr std::string_view kPrefix = "cuda:";
  if (!target.starts_with(kPrefix)) return std::nullopt;
  int number = 0;
  const char* end = target.data() + target.size();
  const auto [stop, failure] = std::from_chars(target.data() + kPrefix.size(), end, number);
  if (failure != std::errc() || stop != end || number < 0)
    throw Error(ErrorKind::argument, fmt::format("'{}' names no device", target), {},
                "behind 'cuda:' stands a number, 0 for the first GPU");
  return number;
}

std::shared_ptr<const runtime::Backend> cuda_backend(const std::string& arch, const Options& options) {
  runtime::cuda::BackendOptions wanted;
  wanted.nvrtc = nvrtc_search(options);
  wanted.arch = arch;
  wanted.with_device = arch.empty();
  wanted.device = options.device;
  wanted.disable = options.disable;
  wanted.tenon_version = kVersion;
  return runtime::cuda::make_backend(wanted, open_cache(options));
}

std::shared_ptr<const runtime::Backend> cpu_backend([[maybe_unused]] const Options& options) {
#ifdef TENON_WITH_CPU
  runtime::cpu::BackendOptions wanted;
  wanted.threads = options.threads;
  wanted.tenon_version = kVersion;
  wanted.disable = options.disable;
  return runtime::cpu::make_backend(wanted, open_cache(options));
#else
  throw Error(ErrorKind::unsupported, "this build has no CPU target", {},
              "configure with -DTENON_CPU=ON (needs LLVM 19), or use a GPU");
#endif
}

}  // namespace

std::shared_ptr<runtime::KernelCache> open_cache(const Options& options) {
  std::shared_ptr<runtime::DiskCache> disk;
  if (options.cache) {
    runtime::DiskCacheOptions folder;
    folder.folder = options.cache_dir;
    folder.max_bytes = options.cache_bytes;
    disk = std::make_shared<runtime::DiskCache>(folder);
  }
  return std::make_shared<runtime::KernelCache>(disk);
}

std::shared_ptr<runtime::Tunings> open_tunings(const Options& options, bool anew) {
  return std::make_shared<runtime::Tunings>(open_cache(options)->disk(), kVersion, anew);
}

std::shared_ptr<const runtime::Backend> open_backend(const std::string& target, const Options& options) {
  if (target == "cpu") return cpu_backend(options);
  if (target == "cuda") return cuda_backend("", options);
  if (const std::optional<int> number = device_number(target)) {
    Options with_number = options;
    with_number.device = *number;
    return cuda_backend("", with_number);
  }
  if (target != "auto") return cuda_backend(target, options);
  try {
    return cuda_backend("", options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_device) throw;
    return cpu_backend(options);
  }
}

codegen::TargetKind target_kind(const std::string& target, const Options& options) {
  if (target == "cpu") return codegen::TargetKind::cpu;
  if (target != "auto") return codegen::TargetKind::cuda;
  try {
    return open_backend(target, options)->target().kind;
  } catch (const Error&) {
    return codegen::TargetKind::cuda;
  }
}

}  // namespace tenon::src
