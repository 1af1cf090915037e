// A schedule is tried inside its executable: the whole graph runs once with it on poisoned outputs, which are compared
// with those of the heuristics' schedules, then its kernel alone is timed. Schedules are compiled on all threads first,
// and timed in two rounds: all of them shortly, those that are close to the best at length.
#include "src/driver/tune.h"

#include <algorithm>

#include "runtime/memory.h"
#include "runtime/parallel.h"
#include "runtime/record.h"
#include "runtime/stopwatch.h"
#include "runtime/updates.h"
#include "src/driver/difference.h"
#include "src/driver/switches.h"

namespace tenon::src {
namespace {

constexpr double kClose = 1.1;    // of the best time: timed again
constexpr double kMargin = 0.99;  // of the heuristics' time: less is worth a change
constexpr unsigned char kPoison = 0xa5;

std::size_t bytes_of(const Buffer& buffer) {
  std::int64_t bytes = size_of(buffer.dtype);
  for (const std::int64_t extent : buffer.shape) bytes *= extent;
  return static_cast<std::size_t>(bytes);
}

// The results of the heuristics' schedules, to compare with.
struct Expected {
  std::vector<runtime::Memory> memory;
  std::vector<Buffer> buffers;
};

// An executable with one kernel replaced, at the sizes of a record.
struct Variant {
  runtime::LaunchRecord record;
  const runtime::PreparedLaunch* launch = nullptr;  // of the kernel; null: there is nothing to do at these sizes
};

class Tuning {
 public:
  Tuning(const Executable::Impl& executable, const runtime::LaunchRecord& record, std::span<const Buffer> inputs,
         std::span<const Buffer> outputs, runtime::Tunings& tunings, const Options& options,
         const TuneSettings& settings)
      : executable_(executable),
        backend_(*executable.backend),
        record_(record),
        inputs_(inputs),
        outputs_(outputs),
        tunings_(tunings),
        options_(options),
        settings_(settings) {}

  std::vector<KernelTuning> run() {
    std::vector<KernelTuning> tunings;
    run_once(record_);
    for (const Buffer& output : outputs_) {
      expected_.memory.push_back(runtime::allocate(backend_, static_cast<std::int64_t>(bytes_of(output))));
      expected_.buffers.push_back({expected_.memory.back().get(), output.dtype, output.shape});
      if (bytes_of(output) > 0) backend_.copy(expected_.memory.back().get(), output.data, bytes_of(output), nullptr);
    }
    for (std::size_t planned = 0; planned < record_.built->launches.size(); ++planned) {
      const runtime::BuiltLaunch& built = *record_.built->launches[planned].built;
      if (built.launch.members.size() > 1) continue;
      codegen::Kernel kernel = built.launch.members.front();
      const auto candidates = codegen::candidate_schedules(kernel, backend_.target());
      kernel.schedule = candidates[0];
      if (candidates.size() < 2 || tunings_.find(backend_, kernel)) continue;
      KernelTuning tuning = of(planned, kernel, candidates);
      if (tuning.trials[0].us == 0) continue;
      tunings_.keep(backend_, kernel, tuning.trials[tuning.best].schedule);
      tunings.push_back(std::move(tuning));
    }
    run_once(record_);
    return tunings;
  }

 private:
  // The kernel with each schedule, null where it does not compile, which its trial then says.
  std::vector<std::shared_ptr<const runtime::BuiltLaunch>> build(std::size_t planned, const codegen::Kernel& kernel,
                                                                 std::vector<Trial>& trials) const {
    std::vector<std::shared_ptr<const runtime::BuiltLaunch>> built(trials.size());
    runtime::for_each_in_parallel(trials.size(), [&](std::size_t i) {
      codegen::Kernel scheduled = kernel;
      scheduled.schedule = trials[i].schedule;
      try {
        built[i] = build_launch({record_.built->launches[planned].groups, {std::move(scheduled)}}, backend_);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::device_lost) throw;
        trials[i].refused = error.message();
      }
    });
    return built;
  }

  Variant variant(std::size_t planned, std::shared_ptr<const runtime::BuiltLaunch> kernel) const {
    auto plan = std::make_shared<runtime::BuiltPlan>(*record_.built);
    plan->launches[planned].built = std::move(kernel);
    Variant variant{
        runtime::make_record(backend_, executable_.plan, std::move(plan), record_.bindings, runtime::Updates::apart),
        nullptr};
    for (const runtime::PreparedLaunch& launch : variant.record.launches)
      if (launch.planned == planned) variant.launch = &launch;
    return variant;
  }

  void run_once(const runtime::LaunchRecord& record) const {
    const runtime::Workspace workspace(executable_.arenas, record, nullptr);
    executable_.put(record, inputs_, outputs_, workspace, nullptr);
    backend_.synchronize(nullptr);
  }

  // Runs the graph with the variant and counts what is wrong.
  std::int64_t different(const Variant& variant) const {
    for (const Buffer& output : outputs_)
      if (bytes_of(output) > 0) backend_.fill(output.data, kPoison, bytes_of(output), nullptr);
    run_once(variant.record);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      count += count_different(outputs_[i], expected_.buffers[i], executable_.backend, options_);
    return count;
  }

  // The kernel's time alone, its operands as the run before it left them.
  double time(const Variant& variant, double seconds) const {
    const runtime::Workspace workspace(executable_.arenas, variant.record, nullptr);
    executable_.put(variant.record, inputs_, outputs_, workspace, nullptr);
    const runtime::Stopwatch watch(backend_, seconds, settings_.flush_bytes);
    const auto launch = [&] { executable_.launch_kernel(*variant.launch, inputs_, outputs_, workspace, nullptr); };
    return 1e3 * watch(launch).median;
  }

  KernelTuning of(std::size_t planned, const codegen::Kernel& kernel,
                  const std::vector<codegen::Schedule>& candidates) const {
    KernelTuning tuning;
    tuning.kernel = kernel.name;
    for (const codegen::Schedule& schedule : candidates) tuning.trials.push_back({schedule, 0, 0, {}});
    const auto built = build(planned, kernel, tuning.trials);
    std::vector<Variant> variants(built.size());
    double fastest = 0;
    for (std::size_t i = 0; i < built.size(); ++i) {
      Trial& trial = tuning.trials[i];
      if (settings_.progress) settings_.progress(kernel.name, i, built.size());
      if (!built[i]) continue;
      variants[i] = variant(planned, built[i]);
      if (variants[i].launch == nullptr) return tuning;
      try {
        trial.different = different(variants[i]);
        if (!trial.right()) continue;
        trial.us = time(variants[i], settings_.seconds);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::device_lost) throw;
        trial.refused = error.message();
      }
      if (trial.us > 0) fastest = fastest == 0 ? trial.us : std::min(fastest, trial.us);
    }
    choose(tuning, variants, fastest);
    return tuning;
  }

  void choose(KernelTuning& tuning, const std::vector<Variant>& variants, double fastest) const {
    double wanted = 0;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      Trial& trial = tuning.trials[i];
      if (trial.us == 0 || (i > 0 && trial.us > kClose * fastest)) continue;
      trial.us = time(variants[i], 4 * settings_.seconds);
      if (i == 0) {
        wanted = kMargin * trial.us;
      } else if (trial.us < wanted) {
        tuning.best = i;
        wanted = trial.us;
      }
    }
  }

  const Executable::Impl& executable_;
  const runtime::Backend& backend_;
  const runtime::LaunchRecord& record_;
  const std::span<const Buffer> inputs_, outputs_;
  runtime::Tunings& tunings_;
  const Options& options_;
  const TuneSettings& settings_;
  Expected expected_;
};

}  // namespace

std::vector<KernelTuning> tune(const Executable::Impl& executable, const runtime::LaunchRecord& record,
                               std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                               runtime::Tunings& tunings, const Options& options, const TuneSettings& settings) {
  if (record.updates.empty()) return Tuning(executable, record, inputs, outputs, tunings, options, settings).run();
  const auto apart = runtime::make_record(*executable.backend, executable.plan, record.built, record.bindings,
                                          runtime::Updates::apart);  // the graph runs again and again
  const runtime::AllOutputs all(*executable.backend, executable.plan.graph, apart, outputs);
  return Tuning(executable, apart, inputs, all.buffers(), tunings, options, settings).run();
}

runtime::Tuner tuner(std::shared_ptr<runtime::Tunings> tunings, const Options& options) {
  return [tunings = std::move(tunings), options](
             const Executable::Impl& executable, const runtime::LaunchRecord& record, std::span<const Buffer> inputs,
             std::span<const Buffer> outputs) { tune(executable, record, inputs, outputs, *tunings, options); };
}

FindSchedule find_tuned(const runtime::Backend& backend, std::shared_ptr<runtime::Tunings> tunings,
                        const Options& options) {
  if (!parts_without(options.disable).tuned) return {};
  return [&backend, tunings = std::move(tunings)](const codegen::Kernel& kernel) {
    return tunings->find(backend, kernel);
  };
}

}  // namespace tenon::src
