// Opens each target once and remembers what it said.
#include "tests/harness/targets.h"

#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "runtime/cache.h"
#include "src/driver/pipeline.h"
#include "tests/harness/cuda_on_host.h"
#ifdef TENON_WITH_CPU
#include "runtime/cpu/backend.h"
#include "runtime/cpu/host.h"
#endif

namespace tenon::test {
namespace {

constexpr std::string_view kTuned = "cpu_tuned_";

struct Opened {
  std::shared_ptr<const runtime::Backend> backend;
  std::string missing;
};

Opened open(const std::string& target) {
  if (target == "cuda_on_host") return {cuda_on_host_backend(false), ""};
  if (target == "hopper_on_host") return {cuda_on_host_backend(true), ""};
#ifdef TENON_WITH_CPU
  if (is_variant(target)) {
    runtime::cpu::BackendOptions options;
    if (target.starts_with(kTuned)) {
      options.cpu = target.substr(kTuned.size());
    } else {
      options.l3_bytes = options.streamed_row_bytes = 1;
      if (target != "cpu_streaming") options.vector_bytes = target == "cpu_avx2" ? 32 : 16;
    }
    if (runtime::cpu::host_target().vector_bytes < options.vector_bytes) return {nullptr, "no AVX2 here"};
    return {runtime::cpu::make_backend(options, std::make_shared<runtime::KernelCache>(nullptr)), ""};
  }
#endif
  Options options = default_options();
  options.cache = false;
  try {
    return {src::open_backend(target, options), ""};
  } catch (const Error& error) {
    return {nullptr, error.message()};
  }
}

const Opened& opened(const std::string& target) {
  static std::map<std::string, Opened> all;
  const auto found = all.find(target);
  return found != all.end() ? found->second : all.emplace(target, open(target)).first->second;
}

}  // namespace

std::vector<std::string> all_targets() { return {"cpu", "cuda"}; }

std::string why_missing(const std::string& target) { return opened(target).missing; }

std::shared_ptr<const runtime::Backend> backend_of(const std::string& target) { return opened(target).backend; }

bool is_variant(const std::string& target) {
  static const std::set<std::string> variants{"cuda_on_host", "hopper_on_host", "cpu_streaming", "cpu_avx2", "cpu_sse"};
  return target.starts_with(kTuned) || variants.contains(target);
}

void require(const std::string& target) {
  const std::string missing = why_missing(target);
  if (missing.empty()) return;
  const char* required = std::getenv("TENON_TEST_REQUIRE");
  if (required != nullptr && target == required) FAIL() << target << " is required: " << missing;
  GTEST_SKIP() << missing;
}

}  // namespace tenon::test
