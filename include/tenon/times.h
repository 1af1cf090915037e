// What several samples of a time are like.
#pragma once

namespace tenon {

/// Milliseconds by the device's own clock: the median, the 10th and 90th of a hundred, the mean, and the extremes.
struct Times {
  double median = 0, p10 = 0, p90 = 0;
  double mean = 0, min = 0, max = 0;
  int samples = 0;
};

}  // namespace tenon
