// What stands in the brackets of a Tensor: x[3], x[Range{1, 3}], x[{0, ellipsis, -1}].
#pragma once

#include <concepts>
#include <initializer_list>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/operand.h"

namespace tenon {

struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis newaxis{};    ///< an axis of extent 1 in the result
inline constexpr Ellipsis ellipsis{};  ///< all axes that the other indices leave, whole

/// One index: an integer or a Dim, which picks an element and drops the axis (a negative one counts from the end), a
/// Range of the axis (`Range{}` is all of it), newaxis, or ellipsis.
class Index {
 public:
  using Content = std::variant<Dim, Range, NewAxis, Ellipsis>;

  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  Index(T element) : content_(Dim(element)) {}                // NOLINT
  Index(const Dim& element) : content_(element) {}            // NOLINT
  Index(const Range& range) : content_(range) {}              // NOLINT
  Index(NewAxis axis) : content_(axis) {}                     // NOLINT
  Index(Ellipsis axes) : content_(axes) {}                    // NOLINT
  Index(const Tensor& elements) = delete;                     // elements at a tensor's integers: take(x, indices, axis)
  Index(std::initializer_list<std::optional<Dim>>) = delete;  // a range in brackets is Range{start, stop, step}

  const Content& content() const { return content_; }

 private:
  Content content_;
};

/// The indices in one pair of brackets: one, or a list in braces.
class Indices {
 public:
  template <std::convertible_to<Index> T>
  Indices(const T& index, Location at = Location::current()) : list_{Index(index)}, at_(at) {}              // NOLINT
  Indices(std::initializer_list<Index> list, Location at = Location::current()) : list_(list), at_(at) {}   // NOLINT
  Indices(std::vector<Index> list, Location at = Location::current()) : list_(std::move(list)), at_(at) {}  // NOLINT
  Indices(const Tensor& elements) = delete;  // elements at a tensor's integers: take(x, indices, axis)

  const std::vector<Index>& list() const { return list_; }
  const Location& location() const { return at_; }

 private:
  std::vector<Index> list_;
  Location at_;
};

}  // namespace tenon
