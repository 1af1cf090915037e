// Arrays on the host: what small programs and tests give to an Executable and get back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <version>

#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

#include "tenon/bytes.h"
#include "tenon/dtype.h"
#include "tenon/element.h"

namespace tenon {

/// A dense row-major array in host memory. Plain data; the functions are conveniences.
struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  ///< extents, outermost first; empty for a single number
  Bytes bytes;                      ///< elements in storage format (dtype.h); bool is one byte, 0 or 1

  /// An array of f32 from `values` in row-major order; Error(argument) when their number does not fit `shape`.
  static Array from(const std::vector<float>& values, std::vector<std::int64_t> shape);
  /// The same of the dtype of T (DTypeOf): float is f32, double f64, bool bool, std::int64_t i64, and so on.
  template <typename T>
  static Array from(const std::vector<T>& values, std::vector<std::int64_t> shape);
  /// The same from a span, `Array::from(std::span(values), shape)`.
  template <typename T, std::size_t N>
  static Array from(std::span<T, N> values, std::vector<std::int64_t> shape);
  /// The same from a pointer to as many elements as the shape has; Error(argument) for null where it has some.
  template <typename Pointer>
    requires std::is_pointer_v<Pointer>
  static Array from(const Pointer& values, std::vector<std::int64_t> shape);
  /// An array of elements in storage format, for the dtypes that C++20 has no type for:
  /// `Array::from_bytes(std::as_bytes(std::span(bits)), {n}, DType::bf16)` of 16-bit words. Error(argument) when their
  /// number does not fit, or a bool is neither 0 nor 1.
  static Array from_bytes(std::span<const std::byte> bytes, std::vector<std::int64_t> shape, DType dtype);
  /// Zeros (false for bool); Error(resource) when the size leaves memory, Error(argument) for a negative extent.
  static Array zeros(std::vector<std::int64_t> shape, DType dtype = DType::f32);
  /// The same with any values, for a caller that writes them all.
  static Array empty(std::vector<std::int64_t> shape, DType dtype = DType::f32);
  /// Standard normal numbers, the same as the operator random_normal makes from this seed. f16, bf16, f32 or f64.
  static Array normal(std::vector<std::int64_t> shape, std::int64_t seed, DType dtype = DType::f32);

  /// The product of the extents.
  std::int64_t size() const;
  /// The same values as `to`: rounded to nearest even, saturated to integers, as the operator cast means it.
  Array cast(DType to) const;
  /// The elements as doubles (exact for every dtype but i64 beyond 2^53).
  std::vector<double> to_doubles() const;
  /// A copy of the elements; Error(argument) unless T's dtype (DTypeOf) is the array's.
  template <typename T>
  std::vector<T> to() const;

  /// The elements where they lie, in row-major order, aligned to kHostAlignment: to read and to write. The span is good
  /// until `bytes` is given another size or the array ends. Error(argument) unless T's dtype is the array's, or when
  /// there are not as many bytes as the shape says.
  template <typename T>
  std::span<T> data() &;
  template <typename T>
  std::span<const T> data() const&;
  template <typename T>
  std::span<const T> data() const&& = delete;  // of an array that ends before the span
#ifdef __cpp_lib_mdspan
  /// The same as a C++23 mdspan: `array.view<float, 2>()[i, j]`. Error(argument) unless `Rank` is the array's rank too.
  template <typename T, std::size_t Rank>
  std::mdspan<T, std::dextents<std::int64_t, Rank>> view() &;
  template <typename T, std::size_t Rank>
  std::mdspan<const T, std::dextents<std::int64_t, Rank>> view() const&;
  template <typename T, std::size_t Rank>
  std::mdspan<const T, std::dextents<std::int64_t, Rank>> view() const&& = delete;
#endif
  /// The only element, of any rank (shape [], [1], [1, 1], …); Error(argument) when there are more or none, or unless
  /// T's dtype is the array's.
  template <typename T>
  T item() const;

 private:
  static Array copy_of(DType dtype, const void* elements, std::size_t count, std::vector<std::int64_t> shape);
  static Array copy_all(DType dtype, const void* elements, std::vector<std::int64_t> shape);
  void copy_to(DType dtype, void* elements) const;
  void check(DType dtype) const;
  void check_rank(std::size_t rank) const;
  void check_single() const;
  template <std::size_t Rank>
  std::array<std::int64_t, Rank> extents() const;
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

template <typename T, std::size_t N>
Array Array::from(std::span<T, N> values, std::vector<std::int64_t> shape) {
  return copy_of(detail::dtype_of<T>(), values.data(), values.size(), std::move(shape));
}

template <typename Pointer>
  requires std::is_pointer_v<Pointer>
Array Array::from(const Pointer& values, std::vector<std::int64_t> shape) {
  return copy_all(detail::dtype_of<std::remove_pointer_t<Pointer>>(), values, std::move(shape));
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

template <typename T>
std::span<T> Array::data() & {
  check(detail::dtype_of<T>());
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <typename T>
std::span<const T> Array::data() const& {
  check(detail::dtype_of<T>());
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <typename T>
T Array::item() const {
  check_single();
  return data<T>().front();
}

#ifdef __cpp_lib_mdspan
template <std::size_t Rank>
std::array<std::int64_t, Rank> Array::extents() const {
  check_rank(Rank);
  std::array<std::int64_t, Rank> result{};
  for (std::size_t axis = 0; axis < Rank; ++axis) result[axis] = shape[axis];
  return result;
}

template <typename T, std::size_t Rank>
std::mdspan<T, std::dextents<std::int64_t, Rank>> Array::view() & {
  const auto elements = data<T>();
  return {elements.data(), extents<Rank>()};
}

template <typename T, std::size_t Rank>
std::mdspan<const T, std::dextents<std::int64_t, Rank>> Array::view() const& {
  const auto elements = data<T>();
  return {elements.data(), extents<Rank>()};
}
#endif

}  // namespace tenon
