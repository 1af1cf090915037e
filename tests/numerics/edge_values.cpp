// Edges from the formats themselves (ir/ops/formats.h), so that a new dtype brings its own.
#include "tests/numerics/edge_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/formats.h"

namespace tenon::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

ir::HostArray reals(DType dtype, const std::vector<double>& values) {
  ir::HostArray array = ir::make_array(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) ir::set_real(array, static_cast<std::int64_t>(i), values[i]);
  return array;
}

ir::HostArray integers(DType dtype, const std::vector<std::int64_t>& values) {
  ir::HostArray array = ir::make_array(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    ir::set_integer(array, static_cast<std::int64_t>(i), ir::wrap(dtype, values[i]));
  return array;
}

std::vector<double> with_signs(const std::vector<double>& values) {
  std::vector<double> all;
  for (double value : values) {
    all.push_back(value);
    all.push_back(-value);
  }
  return all;
}

std::vector<double> real_edges(DType dtype) {
  const ir::RealFormat format = ir::real_format(dtype);
  const double normal = std::ldexp(1.0, format.min_exponent);
  const double tiny = std::ldexp(normal, -format.mantissa_bits);
  const double step = std::ldexp(1.0, -format.mantissa_bits);  // the distance from 1 to the next number
  // The vector library's f64 pow overflows from 0.999998 of the greatest number on: not just below its first power.
  const double below_one = dtype == DType::f64 ? 1 - 0x1p-16 : 1 - step / 2;
  return with_signs({0,
                     tiny,
                     normal - tiny,
                     normal,
                     1e-3,
                     0.25,
                     0.5,
                     0.5 + step,
                     below_one,
                     1,
                     1 + step,
                     1.5,
                     2.5,
                     3,
                     3.1415926535897931,
                     7,
                     10,
                     88.5,
                     103.9,
                     1e5,
                     0x1p24 + 2,
                     0x1p31,
                     0x1p63,
                     format.largest / 2,
                     format.largest,
                     kInfinity,
                     kNaN});
}

}  // namespace

ir::HostArray edge_values(DType dtype) {
  if (is_real(dtype)) return reals(dtype, real_edges(dtype));
  if (dtype == DType::bool_) return integers(dtype, {0, 1});
  const std::int64_t least = ir::min_value(dtype), greatest = ir::max_value(dtype), width = 8 * size_of(dtype);
  return integers(dtype, {0,
                          1,
                          -1,
                          2,
                          -2,
                          3,
                          -3,
                          7,
                          -7,
                          10,
                          100,
                          width - 1,
                          width,
                          width + 1,
                          least,
                          least + 1,
                          greatest,
                          greatest - 1,
                          greatest / 2,
                          least / 2});
}

ir::HostArray few_edge_values(DType dtype) {
  if (!is_real(dtype)) {
    const std::int64_t least = ir::min_value(dtype), greatest = ir::max_value(dtype);
    return dtype == DType::bool_ ? edge_values(dtype) : integers(dtype, {0, 1, -1, 3, -7, least, greatest});
  }
  const ir::RealFormat format = ir::real_format(dtype);
  const double tiny = std::ldexp(1.0, format.min_exponent - format.mantissa_bits);
  return reals(dtype, {0, -0.0, tiny, 1, -1, 1.5, -3, format.largest, -format.largest, kInfinity, -kInfinity, kNaN});
}

ir::HostArray combination(const ir::HostArray& values, int operand, int count) {
  const std::int64_t n = ir::element_count(values);
  std::int64_t total = 1, period = 1;
  for (int i = 0; i < count; ++i) total *= n;
  for (int i = operand + 1; i < count; ++i) period *= n;
  ir::HostArray array = ir::make_array(values.dtype, {total});
  const auto size = static_cast<std::size_t>(size_of(values.dtype));
  for (std::int64_t i = 0; i < total; ++i)
    std::copy_n(values.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i / period % n) * size),
                size, array.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * size));
  return array;
}

ir::HostArray bit_patterns(DType dtype) {
  const bool all = size_of(dtype) == 1;
  const std::int64_t n = all ? 256 : 6007;
  const std::uint64_t last = size_of(dtype) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size_of(dtype))) - 1;
  ir::HostArray array = ir::make_array(dtype, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    const auto pattern = all ? static_cast<std::uint64_t>(i) : last / 6007 * static_cast<std::uint64_t>(i) + 7;
    if (is_real(dtype))
      ir::set_real(array, i, ir::decode_real(dtype, pattern));
    else
      ir::set_integer(array, i, ir::decode_integer(dtype, pattern));
  }
  return array;
}

}  // namespace tenon::test
