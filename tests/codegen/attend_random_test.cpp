// Random attention by warpgroups on the host: graphs that tools/random_attention.py wrote, each with a schedule that is
// drawn from those that are legal.
//   TENON_ATTENTION_GRAPHS   the folder of the graphs; default: tests/codegen/attention
//   TENON_RANDOM_SEED        of schedules and data; default: from the clock
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "ir/text/text.h"
#include "tests/harness/differential.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using codegen::AttendSchedule;

constexpr int kMostDraws = 2000;

AttendSchedule random_schedule(std::mt19937_64& random) {
  const auto one_of = [&](std::initializer_list<int> all) {
    return all.begin()[random() % static_cast<std::uint64_t>(all.size())];
  };
  AttendSchedule schedule;
  schedule.loop = codegen::MainLoop::wgmma;
  schedule.tile_q = one_of({64, 64, 128, 128, 192});
  schedule.tile_kv = one_of({16, 32, 48, 64, 80, 128});
  schedule.stages = one_of({1, 2, 2, 3, 5});
  schedule.turns = one_of({0, 1}) == 1;
  schedule.parts = one_of({1, 1, 1, 2, 3, 7});
  schedule.resident = one_of({1, 1, 2});
  schedule.block_mask = one_of({0, 1, 1}) == 1;
  schedule.score_boxes = one_of({0, 1}) == 1;
  return schedule;
}

std::vector<std::filesystem::path> graph_files() {
  const char* folder = std::getenv("TENON_ATTENTION_GRAPHS");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           folder != nullptr ? std::filesystem::path(folder)
                             : std::filesystem::path(TENON_SOURCE_DIR) / "tests/codegen/attention"))
    if (entry.path().extension() == ".tn") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::uint64_t first_seed() {
  if (const char* text = std::getenv("TENON_RANDOM_SEED")) return std::strtoull(text, nullptr, 10);
  const auto clock = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return clock / 1000 % 1000000000;
}

TEST(RandomAttention, WithRandomSchedules) {
  const std::string target = "hopper_on_host";
  const auto backend = backend_of(target);
  Options options = default_options();
  options.cache = false;  // every graph is new
  int by_warpgroups = 0, tested = 0;
  std::uint64_t seed = first_seed();
  const std::vector<std::filesystem::path> files = graph_files();
  ASSERT_FALSE(files.empty());
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(fmt::format("TENON_RANDOM_SEED={} from {}", seed, file.filename().string()));
    RandomCase c;
    c.graph = ir::read_file(file.string());
    c.inputs = data_for(c.graph, {}, seed);
    std::mt19937_64 random(seed++);
    std::string schedules;
    const auto find = [&](const codegen::Kernel& kernel) -> std::optional<codegen::Schedule> {
      if (kernel.kernel_class != ir::KernelClass::attend) return std::nullopt;
      for (int i = 0; i < kMostDraws; ++i) {
        const codegen::Schedule schedule = random_schedule(random);
        if (!verify(schedule, kernel, backend->target()).empty()) continue;
        ++by_warpgroups, tested += std::get<AttendSchedule>(schedule).block_mask ? 1 : 0;
        schedules += print(schedule) + "\n";
        return schedule;
      }
      return std::nullopt;
    };
    const Verdict verdict = check_with_schedules(c, target, options, find);
    EXPECT_TRUE(verdict.same) << verdict.difference << "\n" << schedules;
  }
  fmt::print("  {} graphs, {} kernels of warpgroups, of which {} test tiles\n", files.size(), by_warpgroups, tested);
  EXPECT_GT(2 * by_warpgroups, static_cast<int>(files.size()));
}

}  // namespace
}  // namespace tenon::test
