// Timing kernels one by one, and the two forms the times are shown in.
#include "runtime/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/executable.h"

namespace tenon::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// Times `launch` in batches that are waited for together.
void sample(KernelTimes& times, const std::function<void()>& launch, const std::function<void()>& wait,
            double seconds) {
  constexpr double kBatchUs = 500;
  const auto batch = [&](std::int64_t count) {
    const auto begin = Clock::now();
    for (std::int64_t i = 0; i < count; ++i) launch();
    wait();
    return us_since(begin);
  };
  std::int64_t count = 1;
  batch(count);  // warms up
  while (batch(count) < kBatchUs && count < 4096) count *= 2;
  constexpr int kMostSamples = 100, kFewestSamples = 5;
  double sum = 0;
  const auto begin = Clock::now();
  int samples = 0;
  for (; samples < kFewestSamples || (samples < kMostSamples && us_since(begin) < 1e6 * seconds); ++samples) {
    const double us = batch(count) / static_cast<double>(count);
    times.min_us = samples == 0 ? us : std::min(times.min_us, us);
    times.max_us = std::max(times.max_us, us);
    sum += us;
  }
  times.mean_us = sum / samples;
  times.launches = samples * count;
}

std::size_t group_of(const LaunchRecord& record, const BuiltKernel* kernel) {
  const auto& kernels = record.built->kernels;
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k.get() == kernel; });
  return static_cast<std::size_t>(found - kernels.begin());
}

double gbps(const KernelTimes& times) { return static_cast<double>(times.bytes) / times.mean_us / 1e3; }

}  // namespace

std::vector<KernelTimes> profile(const Executable& executable, std::span<const Buffer> inputs,
                                 std::span<const Buffer> outputs, const Bindings& bindings, double seconds) {
  const Executable::Impl& impl = executable.impl();
  executable.run(inputs, outputs, bindings);  // checks the buffers, compiles, and fills the intermediates
  const auto record = impl.record_for(inputs, bindings);
  const HeldArena arena(impl.arenas, record->arena_bytes, nullptr);
  const auto wait = [&] { impl.backend->synchronize(nullptr); };
  std::vector<KernelTimes> all;
  const auto begin = Clock::now();
  for (const PreparedLaunch& launch : record->launches) {
    KernelTimes times;
    times.name = launch.kernel->kernel.name;
    times.group = group_of(*record, launch.kernel);
    times.bytes = ir::unavoidable_bytes(impl.plan, impl.plan.groups[times.group], record->bindings);
    times.begin_us = us_since(begin);
    impl.launch_kernel(launch, inputs, outputs, arena.get(), nullptr);
    wait();
    times.duration_us = us_since(begin) - times.begin_us;
    all.push_back(std::move(times));
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    sample(
        all[i], [&] { impl.launch_kernel(record->launches[i], inputs, outputs, arena.get(), nullptr); }, wait, seconds);
  return all;
}

std::string chrome_trace(const std::vector<KernelTimes>& kernels, const std::string& target) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", "tenon on " + target}}}});
  for (const KernelTimes& kernel : kernels)
    events.push_back({{"name", kernel.name},
                      {"cat", "kernel"},
                      {"ph", "X"},
                      {"ts", kernel.begin_us},
                      {"dur", kernel.duration_us},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", {{"bytes", kernel.bytes}, {"mean_us", kernel.mean_us}, {"GB/s", gbps(kernel)}}}});
  return nlohmann::ordered_json{{"traceEvents", events}, {"displayTimeUnit", "ns"}}.dump(1) + "\n";
}

std::string profile_table(const std::vector<KernelTimes>& kernels, double peak_gbps) {
  std::string text = fmt::format("{:<32} {:>9} {:>11} {:>11} {:>11} {:>14} {:>9} {:>8}\n", "kernel", "launches",
                                 "mean us", "min us", "max us", "bytes", "GB/s", "of copy");
  for (const KernelTimes& kernel : kernels)
    text += fmt::format("{:<32} {:>9} {:>11.3f} {:>11.3f} {:>11.3f} {:>14} {:>9.1f} {:>8}\n", kernel.name,
                        kernel.launches, kernel.mean_us, kernel.min_us, kernel.max_us, kernel.bytes, gbps(kernel),
                        peak_gbps > 0 ? fmt::format("{:.0f}%", 100 * gbps(kernel) / peak_gbps) : "-");
  return text;
}

}  // namespace tenon::runtime
