// What the elements of an array are like, in numbers: the first thing to look at when a result is wrong.
#pragma once

#include <cstdint>

#include "tenon/array.h"

namespace tenon {

/// Counts of an array's elements. Minimum, maximum, mean and standard deviation (of the population, as NumPy's std) are
/// of the finite elements, and NaN when there are none. bool counts as 0 and 1; i64 beyond 2^53 is rounded.
struct Summary {
  std::int64_t elements = 0, nans = 0, infinities = 0, zeros = 0;
  double min = 0, max = 0, mean = 0, standard_deviation = 0;
};
Summary summarize(const Array& array);

}  // namespace tenon
