// Two passes over the elements: the deviations are taken from the mean, so that they do not cancel.
#include "tenon/summary.h"

#include <cmath>
#include <limits>

#include "src/api/host_array.h"

namespace tenon {
namespace {

double element(const ir::HostArray& array, std::int64_t i) {
  return is_real(array.dtype) ? ir::get_real(array, i) : static_cast<double>(ir::get_integer(array, i));
}

}  // namespace

Summary summarize(const Array& array) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const ir::HostArray host = src::to_host(array);
  Summary summary{ir::element_count(host), 0, 0, 0, kNan, kNan, kNan, kNan};
  long double sum = 0;
  for (std::int64_t i = 0; i < summary.elements; ++i) {
    const double x = element(host, i);
    summary.nans += std::isnan(x);
    summary.infinities += std::isinf(x);
    summary.zeros += x == 0;
    if (!std::isfinite(x)) continue;
    summary.min = std::fmin(summary.min, x);  // fmin and fmax pass over the NaN that they start from
    summary.max = std::fmax(summary.max, x);
    sum += x;
  }
  const auto finite = static_cast<long double>(summary.elements - summary.nans - summary.infinities);
  if (finite == 0) return summary;
  const long double mean = sum / finite;
  long double squares = 0;
  for (std::int64_t i = 0; i < summary.elements; ++i)
    if (const double x = element(host, i); std::isfinite(x)) squares += (x - mean) * (x - mean);
  summary.mean = static_cast<double>(mean);
  summary.standard_deviation = static_cast<double>(std::sqrt(squares / finite));
  return summary;
}

}  // namespace tenon
