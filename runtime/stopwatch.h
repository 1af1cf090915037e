// Times work on a target by the target's own clock, with the caches written over before each run: what is measured is
// memory, not what the run before left behind. bench/peers.py times the peers likewise.
#pragma once

#include <functional>
#include <vector>

#include "runtime/memory.h"

namespace tenon::runtime {

/// Milliseconds: the median, the 10th and 90th of a hundred, the mean, and the extremes.
struct Times {
  double median = 0, p10 = 0, p90 = 0;
  double mean = 0, min = 0, max = 0;
  int samples = 0;
};

class Stopwatch {
 public:
  /// Measures for about `seconds`, writing `flush_bytes` before each run. The backend must live longer.
  Stopwatch(const runtime::Backend& backend, double seconds, std::int64_t flush_bytes);

  /// `work` puts itself on the default stream and need not wait. It is run a few times before the first sample.
  Times operator()(const std::function<void()>& work) const;
  /// Several works sample by sample in turn, so that they share what other programs leave of the machine. Each is
  /// measured for `seconds`.
  std::vector<Times> taking_turns(const std::vector<std::function<void()>>& works) const;

 private:
  void sample(const std::function<void()>& work, runtime::Timer& timer) const;

  const runtime::Backend& backend_;
  double seconds_;
  std::int64_t flush_bytes_;
  Memory flush_;
};

}  // namespace tenon::runtime
