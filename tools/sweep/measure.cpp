// See measure.h. Timing takes turns with the copy, as `tenon bench` does.
#include "tools/sweep/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "ir/interpret/interpret.h"
#include "runtime/parallel.h"
#include "src/driver/pipeline.h"
#include "src/driver/tune.h"
#include "tools/command.h"

namespace tenon::tools::sweep {
namespace {

constexpr std::int64_t kMostChecked = std::int64_t{128} << 20;  // bytes that the host looks at

// What was kept of an earlier search is not the first choice.
Options untuned(Options options) {
  options.disable.insert("tuned");
  return options;
}

// Searched anew each time, and kept nowhere.
Options forgetful(Options options) {
  options.cache = false;
  return options;
}

}  // namespace

Prediction predict(const ir::Plan& plan, double bytes) {
  Prediction sum{bytes / (plan.cost.bandwidth_gb_s * 1e3), 0, 0};
  for (const ir::Group& group : plan.groups) {
    sum.memory_us += group.estimate.memory_us;
    sum.compute_us += group.estimate.compute_us;
  }
  return sum;
}

std::string why_slow(const Row& row) {
  constexpr double kMore = 1.2;  // beyond what predictions are off by
  const Prediction& p = row.prediction;
  const double moved = p.memory_us / p.floor_us, computed = p.compute_us / p.floor_us;
  if (computed > moved && computed > 1 / kMore)
    return fmt::format("computes for {:.1f} times as long as a copy takes", computed);
  if (moved > kMore) return fmt::format("moves {:.1f} times the bytes, {}", moved, counted(row.kernels, "kernel"));
  return "";
}

Measure::Timing::Timing(const std::shared_ptr<const runtime::Backend>& backend, const Options& options,
                        const MeasureSettings& settings)
    : pool(backend, options),
      copy(settings.most_bytes, backend, options),
      watch(*backend, settings.seconds, settings.flush_bytes),
      floor_ms(src::CopyTimes(watch.taking_turns(copy.works(8))).faster.median) {}

Measure::Measure(std::shared_ptr<const runtime::Backend> backend, const Options& options,
                 const MeasureSettings& settings)
    : backend_(std::move(backend)), options_(untuned(options)), settings_(settings) {
  if (!settings.build_only) timing_ = std::make_unique<Timing>(backend_, options_, settings);
}

void Measure::build(std::uint64_t seed, std::uint64_t first, std::size_t count, const DrawSettings& draw) {
  std::vector<Job> jobs(count);
  runtime::for_each_in_parallel(count, [&](std::size_t i) { jobs[i] = built(seed, first + i, draw); });
  std::move(jobs.rbegin(), jobs.rend(), std::inserter(jobs_, jobs_.begin()));
}

Measure::Job Measure::built(std::uint64_t seed, std::uint64_t index, const DrawSettings& settings) const {
  Job job;
  job.row.index = index;
  job.row.drawn = draw(seed, index, settings);
  const auto begin = std::chrono::steady_clock::now();
  try {
    job.executable = src::make_executable(src::plan(job.row.drawn.graph, *backend_, options_), backend_, options_);
    job.row.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    job.row.kernels = job.executable->stats().kernels;
    job.row.compiles = job.executable->stats().compiles;
    job.row.prediction = predict(job.executable->impl().plan, static_cast<double>(job.row.drawn.bytes));
    if (settings_.check_bytes > 0) check(job.row);
  } catch (const Error& error) {
    note(job.row, error);
  }
  return job;
}

void Measure::note(Row& row, const Error& error) {
  row.error = error.message();
  row.lost = error.kind() == ErrorKind::device_lost;
}

void Measure::check(Row& row) const {
  const auto whole = static_cast<double>(row.drawn.bytes);
  const ir::Graph graph =
      whole <= settings_.check_bytes ? row.drawn.graph : redraw(row.drawn, settings_.check_bytes).graph;
  const Executable executable = src::make_executable(src::plan(graph, *backend_, options_), backend_, options_);
  const std::vector<ir::HostArray> inputs = random_inputs(graph, {}, row.index);
  std::vector<Array> given;
  for (const ir::HostArray& input : inputs) given.push_back(to_array(input));
  std::vector<ir::HostArray> results;
  for (Array& result : executable(given)) results.push_back(to_host(std::move(result)));
  row.checked = true;
  for (const ir::Comparison& comparison : ir::compare_with_interpreter(graph, inputs, results)) {
    row.equal = row.equal && comparison.equal;
    row.undecided += comparison.undecided;
    row.elements += comparison.elements;
  }
}

Row Measure::next() {
  Job job = std::move(jobs_.back());
  jobs_.pop_back();
  if (!timing_ || !job.row.error.empty()) return std::move(job.row);
  try {
    try {
      time(job);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory) throw;
      timing_->pool.clear();  // of what other graphs needed
      time(job);
    }
  } catch (const Error& error) {
    note(job.row, error);
  }
  return std::move(job.row);
}

void Measure::time(Job& job) {
  Row& row = job.row;
  const DataPool::Buffers data = timing_->pool.buffers(row.drawn.graph);
  const auto run = [&] { job.executable->run_async(data.inputs, data.outputs, nullptr); };
  const bool checked = settings_.check_bytes > 0 && row.drawn.bytes <= kMostChecked;
  if (checked) row.unwritten = unwritten_elements(*backend_, data.outputs, run);
  std::vector<std::function<void()>> works = timing_->copy.works(row.drawn.bytes);
  works.emplace_back(run);
  const std::vector<Times> times = timing_->watch.taking_turns(works);
  row.copy = src::CopyTimes(std::span(times).first(2)).faster;
  row.times = times[2];
  row.of_copy = std::max(row.copy.median, timing_->floor_ms) / row.times.median;
  if (settings_.tune) tune(job, data);
}

void Measure::tune(Job& job, const DataPool::Buffers& data) const {
  const auto tunings = src::open_tunings(forgetful(options_), true);
  src::TuneSettings settings;
  settings.flush_bytes = settings_.flush_bytes;
  settings.seconds = settings_.seconds;
  const Executable::Impl& impl = job.executable->impl();
  double gained_us = 0, kernels_us = 0;
  for (const src::KernelTuning& tuning :
       src::tune(impl, *impl.record_for({}), data.inputs, data.outputs, *tunings, options_, settings)) {
    gained_us += tuning.heuristic_us() - tuning.best_us();
    kernels_us += tuning.heuristic_us();
    for (const src::Trial& trial : tuning.trials) job.row.equal = job.row.equal && trial.different == 0;
  }
  const double whole_us = std::max(1e3 * job.row.times.median, kernels_us);
  job.row.first_choice = (whole_us - gained_us) / whole_us;
}

}  // namespace tenon::tools::sweep
