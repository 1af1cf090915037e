// What operators take besides tensors: plain numbers, axes, ranges.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/graph.h"
#include "tenon/scalar.h"

namespace tenon {

/// An operand: a tensor, or a number that takes the dtype of the tensors beside it (a seed or index i64, a condition
/// bool). A number that this dtype cannot hold is Error(type): 1.5 beside i32, 300 beside u8. Nothing else promotes.
class Operand {
 public:
  Operand(const Tensor& tensor, Location at = Location::current()) : content_(tensor), at_(at) {}  // NOLINT
  template <typename T>
    requires std::is_arithmetic_v<T>
  Operand(T number, Location at = Location::current()) : content_(Scalar(number)), at_(at) {}  // NOLINT

  const Tensor* tensor() const { return std::get_if<Tensor>(&content_); }  ///< null when it is a number
  const Scalar* scalar() const { return std::get_if<Scalar>(&content_); }
  const Location& location() const { return at_; }

 private:
  std::variant<Tensor, Scalar> content_;
  Location at_;
};

/// Axes as NumPy takes them: one, of any integer type, `{0, -1}`, or nothing, which leaves it to the operator (all of
/// them, mostly). Negative ones count from the end. Neither a bool (keepdims comes after the axes) nor a real is an
/// axis.
class Axes {
 public:
  /// One axis of a list.
  struct Axis {
    template <std::integral T>
      requires(!std::same_as<T, bool> && !std::same_as<T, char>)
    Axis(T axis)  // NOLINT: 0 is an axis; what leaves 64 bits is one that no tensor has
        : value(std::in_range<std::int64_t>(axis) ? static_cast<std::int64_t>(axis)
                                                  : std::numeric_limits<std::int64_t>::max()) {}
    std::int64_t value;
  };

  Axes() = default;
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  Axes(T axis) : axes_{{Axis(axis).value}} {}  // NOLINT
  Axes(std::initializer_list<Axis> axes) : axes_(std::in_place) {
    for (const Axis& axis : axes) axes_->push_back(axis.value);
  }
  Axes(std::vector<std::int64_t> axes) : axes_(std::move(axes)) {}  // NOLINT: an empty list means no axes at all

  const std::optional<std::vector<std::int64_t>>& list() const { return axes_; }

 private:
  std::optional<std::vector<std::int64_t>> axes_;
};

/// start:stop:step along one axis, by NumPy's rules: what is absent reaches to the end, negative bounds count from it.
struct Range {
  std::optional<Dim> start = std::nullopt;
  std::optional<Dim> stop = std::nullopt;
  std::int64_t step = 1;
};

}  // namespace tenon
