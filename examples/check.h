// How the examples check themselves: against plain C++ loops, within a tolerance.
#pragma once

#include <cmath>
#include <cstdio>
#include <vector>

/// Whether every element is within `tolerance` of what was expected, relative to max(1, |expected|); says so.
template <typename T>
bool close(const char* what, const std::vector<T>& actual, const std::vector<double>& expected, double tolerance) {
  double worst = actual.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < actual.size() && i < expected.size(); ++i) {
    const double error = std::fabs(static_cast<double>(actual[i]) - expected[i]) / std::fmax(1, std::fabs(expected[i]));
    if (!(error <= worst)) worst = error;  // NaN too
  }
  std::printf("%s: worst error %.2g, tolerance %.2g\n", what, worst, tolerance);
  return worst <= tolerance;
}
