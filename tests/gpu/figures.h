// Measurements of the GPU suite: printed one a line so that tools/gpu_suite.sh can make a table of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace tenon::test {

/// "FIGURE name | value unit | bar": a measurement and what it should not exceed.
inline void figure(const std::string& name, double value, const char* unit, double bar) {
  std::printf("FIGURE %s | %.4g %s | %.4g %s | %s\n", name.c_str(), value, unit, bar, unit,
              value <= bar ? "met" : "MISSED");
}

/// A measurement that others are seen beside; it has no bar.
inline void figure(const std::string& name, double value, const char* unit) {
  std::printf("FIGURE %s | %.4g %s | - |\n", name.c_str(), value, unit);
}

inline double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace tenon::test
