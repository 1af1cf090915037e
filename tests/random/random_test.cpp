// Random graphs: fused = unfused = interpreter. A fresh seed each run; a failure prints it with the smallest graph.
//   TENON_RANDOM_COUNT   how many graphs (all shards together); default 600
//   TENON_RANDOM_SEED    the first seed; default: from the clock
//   TENON_RANDOM_TARGET  cpu (default) or cuda; cuda_on_host: the text for a GPU as host code, slowly; cpu_streaming:
//                        results go around the caches; cpu_avx2, cpu_sse: that without AVX-512, without AVX; sm_90a
//                        and the like: the kernels are built, and not run
//   TENON_RANDOM_SCHEDULES  1: fused only, each kernel with one of the schedules that a tuner tries for it
//   TENON_RANDOM_TRACE   1: print each graph before it runs, to see which one crashes
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "tests/harness/differential.h"
#include "tests/harness/targets.h"
#include "tests/runtime/installed_nvrtc.h"

namespace tenon::test {
namespace {

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

constexpr std::uint64_t kBatches = 16;

class RandomGraphs : public ::testing::TestWithParam<int> {};

TEST_P(RandomGraphs, FusedEqualsUnfusedEqualsInterpreter) {
  const char* target_name = std::getenv("TENON_RANDOM_TARGET");
  const std::string target = target_name == nullptr ? "cpu" : target_name;
  const bool built_only = target.starts_with("sm_");
  const auto clock = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  static const std::uint64_t first = setting("TENON_RANDOM_SEED", clock / 1000 % 1000000000);
  const std::uint64_t count = (setting("TENON_RANDOM_COUNT", 600) + kBatches - 1) / kBatches;
  const bool schedules = setting("TENON_RANDOM_SCHEDULES", 0) != 0;
  Options options = default_options();
  if (built_only) {
    const auto nvrtc = installed_nvrtc();
    if (!nvrtc) GTEST_SKIP() << "no NVRTC";
    options.nvrtc_path = nvrtc->path;
  } else if (const std::string missing = why_missing(target); is_variant(target) && !missing.empty()) {
    GTEST_SKIP() << missing;
  } else {
    ASSERT_EQ(missing, "");
  }
  options.cache = false;  // every graph is new
  std::int64_t elements = 0;
  double undecided = 0;  // of each graph's elements, so that no large graph speaks for the batch
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(GetParam()) * count + i;
    const RandomCase c = random_case(seed);
    if (setting("TENON_RANDOM_TRACE", 0)) fmt::print(stderr, "{}", report(c, fmt::format("seed {}", seed)));
    const auto check = [&](const RandomCase& candidate) {
      return schedules ? check_other_schedules(candidate, target, options, seed)
                       : check_fused_and_unfused(candidate, target, options);
    };
    const Verdict verdict = check(c);
    elements += verdict.elements;
    if (verdict.elements > 0)
      undecided += static_cast<double>(verdict.undecided) / static_cast<double>(verdict.elements);
    if (verdict.same) continue;
    const RandomCase small = shrink(c, [&](const RandomCase& candidate) { return !check(candidate).same; });
    ADD_FAILURE() << fmt::format("TENON_RANDOM_SEED={} differs: {}\nat its smallest:\n{}", seed, verdict.difference,
                                 report(small, check(small).difference));
  }
  RecordProperty("elements", std::to_string(elements));
  if (built_only) return;
  EXPECT_LE(undecided, 0.1 * static_cast<double>(count) + 1)
      << "too much is left undecided for this to be a test, first seed " << first;
}

INSTANTIATE_TEST_SUITE_P(Batch, RandomGraphs, ::testing::Range(0, static_cast<int>(kBatches)));

}  // namespace
}  // namespace tenon::test
