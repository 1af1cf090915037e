// Random schedules of random kernels: what verify accepts is written and compiled for every architecture, what it
// refuses no emitter takes, and what is printed is parsed.
//   TENON_RANDOM_COUNT   how many schedules; default 100
//   TENON_RANDOM_SEED    the first seed; default: from the clock
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>

#include "codegen/schedule/fields.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/random_graph.h"
#include "tests/harness/random_schedule.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

constexpr int kSchedulesOfKernel = 10;
constexpr std::array kTargets = {"sm_80", "sm_90a", "sm_120"};

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

// Kernels that random graphs seldom have: rows in shared memory, many short ones, blocks that walk over rows, tiles,
// one long sum.
constexpr std::array kSeldom = {"graph g(x: bf16[4096, 32768]) { y = softmax(x); return y }",
                                "graph g(x: bf16[4096, 4099], s: bf16[4099]) { y = rms_norm(x, s); return y }",
                                R"(graph g(x: bf16[8192, 1024], d: bf16[8192, 1024], w: f32[1024]) {
  f = cast(x, dtype=f32)
  g = cast(d, dtype=f32)
  a = mean(mul(mul(g, w), f), axis=1, keepdims=true)
  dx = cast(sub(mul(g, w), mul(f, a)), dtype=bf16)
  dw = sum(mul(g, f), axis=0)
  return dx, dw
})",
                                R"(graph g(x: bf16[100000, 96], d: bf16[100000, 96]) {
  a = mean(mul(d, x), axis=1, keepdims=true)
  return sub(d, mul(x, a)), sum(mul(d, x), axis=0)
})",
                                "graph g(x: bf16[m, n], b: bf16[m]) { y = add(transpose(x), b); return y }",
                                "graph g(x: bf16[65536, 13], w: bf16[13]) { y = layer_norm(x, w); return y }",
                                "graph g(x: f32[4096, 4096]) { y = exp(transpose(x)); return y }",
                                "graph g(x: f32[16777216]) { y = sum(x); return y }"};

Kernel one_of_groups(const ir::Plan& plan, const Bindings& bindings, const Target& target, std::mt19937_64& random) {
  const auto group = static_cast<int>(random() % plan.groups.size());
  return test::scheduled_kernel(plan, group, specialize(plan, bindings), target);
}

// A kernel of the seed: small graphs have the odd ones, large graphs those of schedules for long rows.
std::optional<Kernel> random_kernel(std::uint64_t seed, const Target& target, std::mt19937_64& random) {
  ir::PlanOptions options;
  options.mixed_order = true;
  if (seed % 3 == 0) {
    const ir::Plan plan = ir::make_plan(ir::parse(kSeldom[random() % kSeldom.size()]), options);
    return one_of_groups(plan, {{"m", 4100}, {"n", 2047}}, target, random);
  }
  const test::RandomCase c = test::random_case(seed, seed % 3 == 1 ? test::Sizes::small : test::Sizes::large);
  const ir::Plan plan = ir::make_plan(c.graph, options);
  if (plan.groups.empty()) return std::nullopt;
  return one_of_groups(plan, c.bindings, target, random);
}

// What is counted of the schedules that were accepted.
std::string kind_of(const Schedule& schedule) {
  if (const auto* reduce = std::get_if<ReduceSchedule>(&schedule))
    return fmt::format("reduce {} {} {}{}{}", kRowMappings[static_cast<std::size_t>(reduce->team.mapping)],
                       kKeeps[reduce->keep.index()], kCuts[reduce->cut.index()], reduce->peeled ? " peeled" : "",
                       reduce->staged ? " staged" : "");
  if (const auto* map = std::get_if<MapSchedule>(&schedule))
    return fmt::format("map{}{}{}", map->tile ? " tile" : "", map->flat ? " flat" : "", map->spread ? " spread" : "");
  return print(schedule).substr(0, print(schedule).find(' '));
}

void expect_compiles_or_is_refused(Kernel kernel, const Schedule& schedule, const Target& target, bool accepted) {
  kernel.schedule = schedule;
  if (accepted) return test::expect_compiles(emit_cuda(kernel, target), target);
  EXPECT_THROW(emit_cuda(kernel, target), Error) << print(schedule);
}

TEST(RandomSchedules, AreAcceptedIfAndOnlyIfTheirTextCompiles) {
  if (!test::installed_nvrtc()) GTEST_SKIP() << "no NVRTC";
  const auto clock = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const std::uint64_t first = setting("TENON_RANDOM_SEED", clock / 1000 % 1000000000);
  const std::uint64_t count = setting("TENON_RANDOM_COUNT", 100);
  std::map<std::string, int> accepted, refused;
  std::uint64_t drawn = 0;
  for (std::uint64_t seed = first; drawn < count && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("TENON_RANDOM_SEED={}", seed));
    std::mt19937_64 random(seed);
    const Target target = cuda_target(kTargets[random() % kTargets.size()]);
    const auto kernel = random_kernel(seed, target, random);
    for (int i = 0; kernel && i < kSchedulesOfKernel; ++i, ++drawn) {
      const Schedule schedule = test::random_schedule(*kernel, target, random);
      EXPECT_EQ(parse_schedule(print(schedule)), schedule) << print(schedule);
      const std::string why_not = verify(schedule, *kernel, target);
      ++(why_not.empty() ? accepted[kind_of(schedule)] : refused[why_not]);
      expect_compiles_or_is_refused(*kernel, schedule, target, why_not.empty());
    }
  }
  for (const auto& [kind, number] : accepted) fmt::print("  {:5} accepted: {}\n", number, kind);
  for (const auto& [reason, number] : refused) fmt::print("  {:5} refused: {}\n", number, reason);
  EXPECT_FALSE(accepted.empty());
  EXPECT_FALSE(refused.empty());
}

}  // namespace
}  // namespace tenon::codegen
