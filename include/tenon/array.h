// Arrays on the host: what small programs and tests give to an Executable and get back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tenon/dtype.h"

namespace tenon {

namespace detail {

/// The dtype that a C++ element type is stored as.
template <typename T>
constexpr DType dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "elements are numbers or bools");
  if constexpr (std::is_same_v<T, bool>)
    return DType::bool_;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? DType::f32 : DType::f64;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? DType::i8 : DType::u8;
  else {
    static_assert(std::is_signed_v<T>, "Tenon has no unsigned integers but u8");
    return sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
  }
}

}  // namespace detail

/// A dense row-major array in host memory. Plain data; the functions are conveniences.
struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  ///< extents, outermost first; empty for a single number
  std::vector<std::byte> bytes;     ///< elements in storage format (dtype.h); bool is one byte, 0 or 1

  /// An array of f32 from `values` in row-major order; Error(argument) when their number does not fit `shape`.
  static Array from(const std::vector<float>& values, std::vector<std::int64_t> shape);
  /// The same of the dtype of T: float is f32, double f64, bool bool, std::int64_t i64, and so on.
  template <typename T>
  static Array from(const std::vector<T>& values, std::vector<std::int64_t> shape);
  /// Zeros (false for bool); Error(resource) when the size leaves memory, Error(argument) for a negative extent.
  static Array zeros(std::vector<std::int64_t> shape, DType dtype = DType::f32);
  /// Standard normal numbers, the same as the operator random_normal makes from this seed. f16, bf16, f32 or f64.
  static Array normal(std::vector<std::int64_t> shape, std::int64_t seed, DType dtype = DType::f32);

  /// The product of the extents.
  std::int64_t size() const;
  /// The same values as `to`: rounded to nearest even, saturated to integers, as the operator cast means it.
  Array cast(DType to) const;
  /// The elements as doubles (exact for every dtype but i64 beyond 2^53).
  std::vector<double> to_doubles() const;
  /// The elements; Error(argument) unless T's dtype is the array's.
  template <typename T>
  std::vector<T> to() const;

 private:
  static Array copy_of(DType dtype, const void* elements, std::size_t count, std::vector<std::int64_t> shape);
  void copy_to(DType dtype, void* elements) const;
};

/// "f32[2, 3]" and the elements in brackets; of long axes only the ends.
std::string str(const Array& array);

template <typename T>
Array Array::from(const std::vector<T>& values, std::vector<std::int64_t> shape) {
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no elements to copy from
    std::vector<unsigned char> flags(values.begin(), values.end());
    return copy_of(DType::bool_, flags.data(), flags.size(), std::move(shape));
  } else {
    return copy_of(detail::dtype_of<T>(), values.data(), values.size(), std::move(shape));
  }
}

template <typename T>
std::vector<T> Array::to() const {
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<unsigned char> flags(static_cast<std::size_t>(size()));
    copy_to(DType::bool_, flags.data());
    return std::vector<bool>(flags.begin(), flags.end());
  } else {
    std::vector<T> values(static_cast<std::size_t>(size()));
    copy_to(detail::dtype_of<T>(), values.data());
    return values;
  }
}

}  // namespace tenon
