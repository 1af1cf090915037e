// Numbers as operators and literals take them.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

namespace tenon {

/// A number or bool before it takes a dtype. Integers are kept exactly.
struct Scalar {
  std::variant<double, std::int64_t, bool> value;

  template <typename T>
    requires std::is_arithmetic_v<T>
  Scalar(T number) : value(variant_of(number)) {}  // NOLINT: 3 is a scalar

 private:
  template <typename T>
  static std::variant<double, std::int64_t, bool> variant_of(T number) {
    if constexpr (std::is_same_v<T, bool>)
      return number;
    else if constexpr (std::is_integral_v<T> && (std::is_signed_v<T> || sizeof(T) < 8))
      return std::int64_t{number};
    else
      return static_cast<double>(number);  // an unsigned 64-bit number too
  }
};

}  // namespace tenon
