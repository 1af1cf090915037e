// The least time that a kernel's work can take on a device: that of its memory traffic or that of its arithmetic,
// whichever is longer (Williams, Waterman, Patterson: Roofline, CACM 2009). The planner's predictions rest on the same
// two terms.
#pragma once

#include "ir/fusion/plan.h"

namespace tenon::ir {

/// Microseconds of so many bytes at a bandwidth.
inline double bytes_us(double bytes, double gb_s) { return bytes / (gb_s * 1e3); }

/// Adds the work of another kernel: bytes, instructions and operations, not times.
void add_work(Estimate& sum, const Estimate& other);

/// Microseconds of the estimate's instructions or of its contractions at the peak rates of `cost`, whichever is longer.
double arithmetic_us(const CostModel& cost, const Estimate& estimate);

/// An estimate under the roof of a device whose peak rates are those of `cost`.
struct Roofline {
  double memory_us = 0, arithmetic_us = 0;

  double us() const { return memory_us > arithmetic_us ? memory_us : arithmetic_us; }
  /// What limits it: "memory" or "arithmetic".
  const char* bound() const { return memory_us >= arithmetic_us ? "memory" : "arithmetic"; }
};
Roofline roofline(const CostModel& cost, const Estimate& estimate);

}  // namespace tenon::ir
