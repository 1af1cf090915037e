// Drawn graphs built on all of the host's threads, then timed one by one while the host is quiet.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/stopwatch.h"
#include "src/measure/copy.h"
#include "tenon/compile.h"
#include "tools/sweep/data_pool.h"
#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {

struct MeasureSettings {
  double seconds = 0.02;                               ///< of each measurement
  std::int64_t flush_bytes = std::int64_t{256} << 20;  ///< written before each run; 0: none
  std::int64_t most_bytes = 0;                         ///< of a graph
  bool build_only = false;                             ///< nothing is timed: no device is needed
  bool tune = false;                                   ///< search for better schedules
  double check_bytes = 0;                              ///< compare with the interpreter at this size; 0: do not check
};

/// What the planner predicts of a graph's plan, in microseconds.
struct Prediction {
  double floor_us = 0;    ///< the bytes that no plan avoids, at a copy's bandwidth
  double memory_us = 0;   ///< all that the kernels move
  double compute_us = 0;  ///< their instructions and products
};
Prediction predict(const ir::Plan& plan, double bytes);

struct Row {
  std::uint64_t index = 0;
  Drawn drawn;
  std::string error;    ///< why what follows is missing; empty: it is there
  bool lost = false;    ///< the device is of no use any more
  double build_ms = 0;  ///< by one thread among many
  int kernels = 0, compiles = 0;
  Prediction prediction;
  Times times, copy;
  double of_copy = 0;                  ///< the copy's time, or an empty launch's where that is longer, over the graph's
  std::optional<double> first_choice;  ///< time with the tuner's best schedules over that with the first choice
  bool checked = false, equal = true;
  std::int64_t undecided = 0, elements = 0;  ///< of what was checked
  std::int64_t unwritten = 0;                ///< elements of outputs that no kernel wrote, where that was checked

  bool right() const { return equal && unwritten == 0; }
};

/// Why a graph that was timed does not reach a copy, as far as the plan tells: "moves 2.0 times the bytes, 3 kernels",
/// "computes for 1.4 times as long as a copy takes". Empty: it does not tell.
std::string why_slow(const Row& row);

class Measure {
 public:
  Measure(std::shared_ptr<const runtime::Backend> backend, const Options& options, const MeasureSettings& settings);

  /// Draws and builds graphs `first` to `first + count`.
  void build(std::uint64_t seed, std::uint64_t first, std::size_t count, const DrawSettings& draw);
  /// Graphs that are built and not yet measured.
  std::size_t waiting() const { return jobs_.size(); }
  /// Times the next of these. What a graph does wrong is in its row.
  Row next();

  /// Of a launch with next to nothing to do; 0 where nothing is timed.
  double floor_ms() const { return timing_ ? timing_->floor_ms : 0; }

 private:
  struct Job {
    Row row;
    std::optional<Executable> executable;
  };
  Job built(std::uint64_t seed, std::uint64_t index, const DrawSettings& draw) const;
  void check(Row& row) const;
  // What is on the device for every graph.
  struct Timing {
    Timing(const std::shared_ptr<const runtime::Backend>& backend, const Options& options,
           const MeasureSettings& settings);
    DataPool pool;
    src::Copy copy;
    runtime::Stopwatch watch;
    double floor_ms;
  };
  void time(Job& job);
  static void note(Row& row, const Error& error);
  void tune(Job& job, const DataPool::Buffers& data) const;

  const std::shared_ptr<const runtime::Backend> backend_;
  const Options options_;
  const MeasureSettings settings_;
  std::unique_ptr<Timing> timing_;
  std::vector<Job> jobs_;  // the next one last
};

}  // namespace tenon::tools::sweep
