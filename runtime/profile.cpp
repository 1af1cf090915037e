// Timing kernels: one whole run with a timer around each launch, then each kernel by itself, sample by
// sample in turn.
#include "runtime/profile.h"

#include <algorithm>
#include <memory>

#include "runtime/executable.h"

namespace tenon::runtime {
namespace {

// Nothing waits between the launches; the points in time are read when all have run.
template <typename LaunchOne>
std::vector<KernelTimes> one_run(const Backend& backend, const LaunchRecord& record, const LaunchOne& launch_one) {
  std::vector<Timer> timers;
  for (std::size_t i = 0; i < record.launches.size(); ++i) timers.emplace_back(backend);
  for (std::size_t i = 0; i < timers.size(); ++i) {
    timers[i].begin(nullptr);
    launch_one(record.launches[i]);
    timers[i].end(nullptr);
  }
  backend.synchronize(nullptr);
  std::vector<KernelTimes> kernels;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    const PreparedLaunch& launch = record.launches[i];
    KernelTimes times{launch.built->source.entry, record.built->launches[launch.planned].groups, {}, 0, 0};
    times.duration_us = 1e3 * timers[i].milliseconds();
    times.begin_us = 1e3 * timers[i].milliseconds_after(timers[0]);
    kernels.push_back(std::move(times));
  }
  return kernels;
}

}  // namespace

Timings profile(const Executable& executable, std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                const Bindings& bindings, double seconds, std::int64_t flush_bytes,
                const std::vector<std::function<void()>>& beside) {
  const Executable::Impl& impl = executable.impl();
  executable.run(inputs, outputs, bindings);  // checks the buffers, compiles, and fills the intermediates
  const auto record = impl.record_for(inputs, bindings);
  const Workspace workspace(impl.arenas, *record, nullptr);
  const auto launch_one = [&](const PreparedLaunch& launch) {
    impl.launch_kernel(launch, inputs, outputs, workspace, nullptr);
  };
  for (const PreparedLaunch& launch : record->launches) launch_one(launch);  // loads what a replayed run has not
  impl.backend->synchronize(nullptr);
  Timings timings{one_run(*impl.backend, *record, launch_one), {}};
  std::vector<std::function<void()>> works;
  for (const PreparedLaunch& launch : record->launches) works.push_back([&] { launch_one(launch); });
  works.insert(works.end(), beside.begin(), beside.end());
  if (works.empty()) return timings;
  const std::vector<Times> times = Stopwatch(*impl.backend, seconds, flush_bytes).taking_turns(works);
  for (std::size_t i = 0; i < timings.kernels.size(); ++i) timings.kernels[i].times = times[i];
  timings.beside.assign(times.end() - static_cast<std::ptrdiff_t>(beside.size()), times.end());
  return timings;
}

}  // namespace tenon::runtime
