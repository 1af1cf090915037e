// The autotuner: a few schedules around the heuristics' choice of each kernel, each checked and timed at real sizes on
// the real device. The fastest is kept in the disk cache, where later compilations find it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codegen/schedule/schedule.h"
#include "runtime/executable.h"
#include "runtime/tunings.h"
#include "src/driver/pipeline.h"

namespace tenon::src {

struct TuneSettings {
  double seconds = 0.03;                               ///< of each measurement
  std::int64_t flush_bytes = std::int64_t{256} << 20;  ///< written before each run, so that memory is measured
  /// Told before each schedule is tried: of which kernel, which of how many.
  std::function<void(const std::string& kernel, std::size_t done, std::size_t all)> progress;
};

/// One schedule, tried.
struct Trial {
  codegen::Schedule schedule;
  double us = 0;               ///< median; 0 where it was not timed
  std::int64_t different = 0;  ///< elements of the results that are not what the heuristics' schedule gives
  std::string refused;         ///< why it could not be compiled or run; empty: it could

  bool right() const { return refused.empty() && different == 0; }
};

/// One kernel, tuned.
struct KernelTuning {
  std::string kernel;
  std::vector<Trial> trials;  ///< the heuristics' choice first
  std::size_t best = 0;       ///< the trial that won: what is faster by less than 1 % does not

  double heuristic_us() const { return trials[0].us; }
  double best_us() const { return trials[best].us; }
};

/// Tunes every kernel of the record that has more than one candidate and is no pack, on these buffers; the outputs hold
/// the right results afterwards. Winners, the heuristics' choice among them, go to `tunings`; kernels that it knows
/// already are left alone.
std::vector<KernelTuning> tune(const Executable::Impl& executable, const runtime::LaunchRecord& record,
                               std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                               runtime::Tunings& tunings, const Options& options, const TuneSettings& settings = {});

/// tune() for an executable that tunes what it runs.
runtime::Tuner tuner(std::shared_ptr<runtime::Tunings> tunings, const Options& options);

/// Finds the schedules that won on `backend`; none where options.disable names `tuned`.
FindSchedule find_tuned(const runtime::Backend& backend, std::shared_ptr<runtime::Tunings> tunings,
                        const Options& options);

}  // namespace tenon::src
