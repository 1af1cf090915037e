// Which dtype the elements of a C++ type are stored as.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <version>

#if __has_include(<stdfloat>)
#include <stdfloat>
#endif

#include "tenon/dtype.h"

namespace tenon {
namespace detail {

/// Of a C++ number or bool.
template <typename T>
constexpr DType dtype_of_number() {
  static_assert(std::is_arithmetic_v<T>, "elements are numbers or bools; specialise tenon::DTypeOf for others");
  if constexpr (std::is_same_v<T, bool>)
    return DType::bool_;
  else if constexpr (std::is_floating_point_v<T>) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "Tenon has no reals longer than f64");
    return sizeof(T) == 4 ? DType::f32 : DType::f64;
  } else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? DType::i8 : DType::u8;
  else {
    static_assert(std::is_signed_v<T>, "Tenon has no unsigned integers but u8");
    return sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
  }
}

}  // namespace detail

/// The dtype that elements of type T are stored as: float is f32, double f64, bool bool, std::int64_t i64, and so on;
/// f16 and bf16 are C++23's std::float16_t and std::bfloat16_t where there are such. Another type of the same bits (a
/// library's half) may be given one:
///
///     template <> struct tenon::DTypeOf<half> { static constexpr tenon::DType value = tenon::DType::f16; };
template <typename T>
struct DTypeOf {
  static constexpr DType value = detail::dtype_of_number<T>();
};
#ifdef __STDCPP_FLOAT16_T__
template <>
struct DTypeOf<std::float16_t> {
  static constexpr DType value = DType::f16;
};
#endif
#ifdef __STDCPP_BFLOAT16_T__
template <>
struct DTypeOf<std::bfloat16_t> {
  static constexpr DType value = DType::bf16;
};
#endif

namespace detail {

template <typename T>
constexpr DType dtype_of() {
  constexpr DType dtype = DTypeOf<std::remove_cv_t<T>>::value;
  static_assert(sizeof(T) == size_of(dtype) && std::is_trivially_copyable_v<T>, "T has other bytes than its dtype");
  return dtype;
}

}  // namespace detail
}  // namespace tenon
