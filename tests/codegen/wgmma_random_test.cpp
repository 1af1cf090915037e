// Random products of warpgroups on the host: kernels, schedules that are legal for them, sizes, and orders in which
// threads run, copies land and tensor cores multiply; those that random graphs have; and attention over pages.
//   TENON_RANDOM_COUNT   how many kernels, graphs and attentions; default 12, 8 and 8
//   TENON_RANDOM_SEED    the first seed; default: from the clock
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <random>

#include "codegen/lower/parts.h"
#include "tests/codegen/paged_attention.h"
#include "tests/codegen/wgmma_on_host.h"
#include "tests/harness/differential.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using codegen::ContractSchedule;
using codegen::Feed;

constexpr int kSizesOfKernel = 2;

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::int64_t up_to(std::int64_t most) {  // from 0 on
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most + 1));
  }
  bool flip() { return up_to(1) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[up_to(static_cast<std::int64_t>(all.size()) - 1)];
  }

 private:
  std::mt19937_64 random_;
};

// More often than not the rows are those of boxes.
MatmulCase random_product(Draw& draw) {
  const bool boxed = draw.up_to(2) > 0;
  const auto divisor_n = boxed ? 8 : draw.one_of<std::int64_t>({1, 2, 4, 8});
  const bool f8 = boxed && draw.up_to(3) == 0;
  const auto divisor_k = f8 ? 16 : boxed ? 8 : draw.one_of<std::int64_t>({1, 2, 4, 8});
  MatmulCase c = any_size(divisor_n, divisor_k);
  c.a = c.b = draw.one_of({DType::bf16, DType::f16});
  c.out = draw.one_of({c.a, DType::f32});
  c.a_transposed = draw.flip(), c.b_transposed = draw.flip();
  if (f8) {
    c.a = draw.one_of({DType::f8e4m3, DType::f8e5m2}), c.b = draw.one_of({DType::f8e4m3, DType::f8e5m2});
    c.out = DType::bf16, c.a_transposed = false, c.b_transposed = true;
  }
  c.epilogue = draw.flip(), c.prologue = draw.up_to(4) == 0;
  c.name =
      fmt::format("{}{} of {}{}{} n % {} k % {}", c.a_transposed ? "T" : "N", c.b_transposed ? "T" : "N", name_of(c.a),
                  c.prologue ? " prologue" : "", c.epilogue ? " epilogue" : "", divisor_n, divisor_k);
  c.bindings.clear();
  const auto multiple = [&](std::int64_t divisor, std::int64_t least, std::int64_t most) {
    return divisor * (least + draw.up_to(most / divisor - least));
  };
  for (int i = 0; i < kSizesOfKernel; ++i)
    c.bindings.push_back({{"b", 1 + draw.up_to(2)},
                          {"m", multiple(std::max(divisor_n, divisor_k), 1, 300)},
                          {"n", multiple(divisor_n, 1, 240)},
                          {"k", multiple(divisor_k, 0, 600)}});
  return c;
}

ContractSchedule random_schedule(Draw& draw) {
  ContractSchedule schedule;
  schedule.loop = codegen::MainLoop::wgmma;
  schedule.tile_k = draw.one_of({64, 128});
  schedule.tile_m = draw.one_of({64, 64, 64, 128, 128, 192, 256});
  schedule.tile_n = draw.one_of({32, 64, 64, 96, 128, 128, 160, 256});
  schedule.consumers = draw.one_of({1, 1, 2, 2, 2, 3});
  schedule.turns = draw.flip();
  schedule.lead = draw.one_of({0, 0, 1, 2, 3});
  schedule.feed_a = draw.one_of({Feed::boxes, Feed::threads});
  schedule.feed_b = draw.one_of({Feed::boxes, Feed::threads});
  schedule.producers = draw.one_of({1, 1, 2});
  schedule.stages = draw.one_of({2, 3, 4, 4, 5, 8});
  schedule.cluster = draw.one_of({1, 2});
  schedule.parts = draw.one_of({1, 1, 1, 2, 3, 4, 8});
  schedule.split_k = draw.one_of({1, 1, 1, 2, 3, 7});
  schedule.box_results = draw.flip();
  schedule.block_steps = draw.one_of({0, 0, 0, 1, 2, 3});
  return schedule;
}

// Nothing for what warpgroups do not multiply.
std::optional<codegen::Schedule> legal_schedule(const Kernel& kernel, const codegen::Target& target, Draw& draw) {
  constexpr int kMostDraws = 100000;  // where threads bring an operand, one schedule of some 250 is legal
  if (kernel.kernel_class != ir::KernelClass::contract) return std::nullopt;
  const int products = codegen::contract_parts(kernel).products();
  for (int i = 0; i < kMostDraws; ++i) {
    ContractSchedule schedule = random_schedule(draw);
    schedule.products = products;
    if (verify(schedule, kernel, target).empty()) return schedule;
  }
  return std::nullopt;
}

// What is counted of the schedules.
std::string kind_of(const ContractSchedule& schedule) {
  const bool threads_a = schedule.feed_a == Feed::threads, threads_b = schedule.feed_b == Feed::threads;
  return fmt::format("{}{}{}{}{}{}",
                     threads_a && threads_b   ? "threads"
                     : threads_a || threads_b ? "boxes and threads"
                                              : "boxes",
                     schedule.turns      ? " turns"
                     : schedule.lead > 0 ? " lead"
                                         : "",
                     schedule.cluster > 1 ? " cluster" : "",
                     schedule.parts > 1     ? " parts"
                     : schedule.split_k > 1 ? " split"
                                            : "",
                     schedule.block_steps > 0 ? " blocks" : "", schedule.box_results ? " out" : "");
}

std::uint64_t first_seed() {
  const auto clock = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return setting("TENON_RANDOM_SEED", clock / 1000 % 1000000000);
}

TEST(RandomWarpgroups, Multiply) {
  const std::uint64_t first = first_seed(), count = setting("TENON_RANDOM_COUNT", 12);
  std::map<std::string, int> kinds;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("TENON_RANDOM_SEED={}", seed));
    Draw draw(seed);
    const MatmulCase c = random_product(draw);
    Kernel kernel = matmul_kernel(c, hopper());
    const auto schedule = legal_schedule(kernel, hopper(), draw);
    ASSERT_TRUE(schedule) << "no schedule for " << c.name;
    kernel.schedule = *schedule;
    ++kinds[kind_of(std::get<ContractSchedule>(kernel.schedule))];
    expect_product(c, kernel, seed);
  }
  for (const auto& [kind, number] : kinds) fmt::print("  {:5} {}\n", number, kind);
}

// Of graphs with few kernels, since each takes a compiler its time.
bool is_small_with_product(const RandomCase& c, const runtime::Backend& backend, const Options& options) {
  constexpr std::size_t kMostGroups = 2;
  const ir::Plan plan = src::plan(c.graph, backend, options);
  if (plan.groups.size() > kMostGroups) return false;
  const codegen::Specialization specialization = codegen::specialize(plan, c.bindings);
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    Draw draw(0);
    const Kernel kernel = scheduled_kernel(plan, static_cast<int>(i), specialization, backend.target());
    if (legal_schedule(kernel, backend.target(), draw)) return true;
  }
  return false;
}

TEST(RandomWarpgroups, MultiplyInGraphs) {
  const std::string target = "hopper_on_host";
  const auto backend = backend_of(target);
  Options options = default_options();
  options.cache = false;  // every graph is new
  const std::uint64_t count = setting("TENON_RANDOM_COUNT", 8);
  std::uint64_t graphs = 0;
  for (std::uint64_t seed = first_seed(); graphs < count && !HasFailure(); ++seed) {
    const RandomCase c = random_case(seed);
    if (!is_small_with_product(c, *backend, options)) continue;
    ++graphs;
    const auto check = [&](const RandomCase& candidate) {
      Draw draw(seed);
      return check_with_schedules(candidate, target, options, [&](const Kernel& kernel) {
        return legal_schedule(kernel, backend->target(), draw);
      });
    };
    const Verdict verdict = check(c);
    if (verdict.same) continue;
    const RandomCase small =
        shrink(c, [&](const RandomCase& candidate) { return check(candidate).kind == verdict.kind; });
    ADD_FAILURE() << fmt::format("TENON_RANDOM_SEED={} differs: {}\nat its smallest:\n{}", seed, verdict.difference,
                                 report(small, check(small).difference));
  }
}

PagedCase random_pages(Draw& draw) {
  PagedCase c{.name = "pages"};
  c.dtype = draw.one_of({DType::f16, DType::bf16}), c.index = draw.one_of({DType::i32, DType::i64});
  c.sequences = 1 + draw.up_to(2), c.heads = 1 + draw.up_to(2), c.group = 1 + draw.up_to(3);
  c.queries = draw.one_of<std::int64_t>({1, 1, 3, 70, 130});
  c.rows = draw.one_of<std::int64_t>({8, 16, 24, 32, 48, 64, 96, 128, 256});
  c.pages = 1 + draw.up_to(300 / c.rows);
  c.keys = draw.flip() ? 0 : 2 + draw.up_to(c.rows * c.pages - 2);
  c.depth = draw.one_of<std::int64_t>({32, 40, 64, 64, 128});
  c.heads_first = draw.flip(), c.two_tables = draw.flip();
  c.causal = draw.up_to(2) == 0, c.symbols = draw.up_to(2) == 0;
  return c;
}

// Nothing for what is no attention, or of pages that no tile fits.
std::optional<codegen::Schedule> legal_attention(const Kernel& kernel, const codegen::Target& target, Draw& draw) {
  constexpr int kMostDraws = 1000;
  if (kernel.kernel_class != ir::KernelClass::attend) return std::nullopt;
  for (int i = 0; i < kMostDraws; ++i) {
    codegen::AttendSchedule schedule;
    schedule.loop = codegen::MainLoop::wgmma;
    schedule.tile_q = draw.one_of({64, 64, 128, 192});
    schedule.tile_kv = draw.one_of({16, 32, 48, 64, 96, 128});
    schedule.turns = draw.flip();
    schedule.stages = 1 + static_cast<int>(draw.up_to(3));
    schedule.parts = draw.one_of({1, 1, 2, 3, 4});
    if (verify(schedule, kernel, target).empty()) return schedule;
  }
  return std::nullopt;
}

TEST(RandomWarpgroups, AttendToPages) {
  Options options = default_options();
  options.cache = false;  // every graph is new
  const std::uint64_t first = first_seed(), count = setting("TENON_RANDOM_COUNT", 8);
  std::uint64_t attentions = 0;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    Draw draw(seed);
    const PagedCase c = random_pages(draw);
    SCOPED_TRACE(fmt::format("TENON_RANDOM_SEED={}: {}", seed, paged_text(c)));
    const auto find = [&](const Kernel& kernel) {
      const auto found = legal_attention(kernel, hopper(), draw);
      attentions += found ? 1 : 0;
      return found;
    };
    const Verdict verdict = check_with_schedules(paged_case(c, seed), "hopper_on_host", options, find);
    EXPECT_TRUE(verdict.same) << verdict.difference;
  }
  EXPECT_GT(attentions, 0U);
}

}  // namespace
}  // namespace tenon::test
