// Times work on a target by the target's own clock, with the caches written over before each run: what is measured is
// memory, not what the run before left behind. bench/peers.py times the peers likewise.
#pragma once

#include <functional>
#include <vector>

#include "runtime/memory.h"
#include "runtime/timer.h"
#include "tenon/times.h"

namespace tenon::runtime {

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
  void sample(const std::function<void()>& work, const Timer& timer) const;

  const runtime::Backend& backend_;
  double seconds_;
  std::int64_t flush_bytes_;
  Memory flush_;
};

}  // namespace tenon::runtime
