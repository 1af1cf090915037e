// Random graphs: fused = unfused = interpreter. A fresh seed each run; a failure prints it with the smallest graph.
//   TENON_RANDOM_COUNT   how many graphs (all shards together); default 600
//   TENON_RANDOM_SEED    the first seed; default: from the clock
//   TENON_RANDOM_TARGET  cpu (default) or cuda; cuda_on_host: the text for a GPU as host code, slowly; hopper_on_host:
//                        that with products by warpgroups; cpu_streaming: results go around the caches; cpu_avx2,
//                        cpu_sse: that without AVX-512, without AVX; sm_90a and the like: the kernels are built, and
//                        not run
//   TENON_RANDOM_SIZES   large: graphs beyond the caches, to be built only
//   TENON_RANDOM_SCHEDULES  1: fused only, each kernel with one of the schedules that a tuner tries for it; 2: with any
//                        legal schedule
//   TENON_RANDOM_TRACE   1: print each graph before it runs
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>

#include "tests/harness/crash_report.h"
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
constexpr double kMostUndecided = 0.04;  // of a graph's elements, in the mean of a run
constexpr double kMostRefused = 0.01;    // of a run's graphs

// What a run has judged, printed at its end.
struct Tally {
  int graphs = 0, findings = 0;
  std::int64_t elements = 0;
  double undecided = 0;  // of each graph's elements, so that no large graph speaks for the run
  std::map<std::string, int> refused;

  void add(const Verdict& verdict) {
    ++graphs;
    findings += !verdict.same;
    if (verdict.refused) ++refused[verdict.difference.substr(0, verdict.difference.find('\n'))];
    elements += verdict.elements;
    if (verdict.elements > 0)
      undecided += static_cast<double>(verdict.undecided) / static_cast<double>(verdict.elements);
  }
};

Tally& tally() {
  static Tally one;
  return one;
}

class RandomGraphs : public ::testing::TestWithParam<int> {
 public:
  // A run of a few may have a graph or two of which nothing is known.
  static void TearDownTestSuite() {
    const Tally& run = tally();
    int refused = 0;
    for (const auto& [message, count] : run.refused) {
      fmt::print("  {} refused: {}\n", count, message);
      refused += count;
    }
    fmt::print(
        "random graphs: {} with {} elements, {} findings, {} refused, {:.2f} % of a graph's elements undecided\n",
        run.graphs, run.elements, run.findings, refused, 100 * run.undecided / std::max(run.graphs, 1));
    EXPECT_LE(run.undecided, kMostUndecided * run.graphs + 2) << "too much is left undecided for this to be a test";
    EXPECT_LE(refused, kMostRefused * run.graphs + 1) << "too many graphs are refused for this to be a test";
  }
};

TEST_P(RandomGraphs, FusedEqualsUnfusedEqualsInterpreter) {
  const char* target_name = std::getenv("TENON_RANDOM_TARGET");
  const std::string target = target_name == nullptr ? "cpu" : target_name;
  const bool built_only = target.starts_with("sm_");
  const auto clock = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  static const std::uint64_t first = setting("TENON_RANDOM_SEED", clock / 1000 % 1000000000);
  const std::uint64_t count = (setting("TENON_RANDOM_COUNT", 600) + kBatches - 1) / kBatches;
  const auto schedules = static_cast<Schedules>(setting("TENON_RANDOM_SCHEDULES", 0));
  const char* sizes_name = std::getenv("TENON_RANDOM_SIZES");
  const Sizes sizes = sizes_name != nullptr && std::string(sizes_name) == "large" ? Sizes::large : Sizes::small;
  ASSERT_TRUE(built_only || sizes == Sizes::small) << "large graphs are built and not run: TENON_RANDOM_TARGET=sm_90a";
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
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(GetParam()) * count + i;
    const CrashReport crash("TENON_RANDOM_SEED", seed);
    const RandomCase c = random_case(seed, sizes);
    if (setting("TENON_RANDOM_TRACE", 0)) fmt::print(stderr, "{}", report(c, fmt::format("seed {}", seed)));
    const auto check = [&](const RandomCase& candidate) {
      return schedules == Schedules::chosen ? check_fused_and_unfused(candidate, target, options)
                                            : check_other_schedules(candidate, target, options, seed, schedules);
    };
    const Verdict verdict = check(c);
    tally().add(verdict);
    if (verdict.same) continue;
    const RandomCase small = shrink(c, [&](const RandomCase& candidate) {
      const Verdict now = check(candidate);
      return !now.same && now.kind == verdict.kind;
    });
    ADD_FAILURE() << fmt::format("TENON_RANDOM_SEED={} differs: {}\nat its smallest:\n{}", seed, verdict.difference,
                                 report(small, check(small).difference));
  }
}

INSTANTIATE_TEST_SUITE_P(Batch, RandomGraphs, ::testing::Range(0, static_cast<int>(kBatches)));

}  // namespace
}  // namespace tenon::test
