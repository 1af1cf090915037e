// What a call takes and gives by name.
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/array.h"
#include "tenon/weights.h"

namespace tenon {

/// An array for the input of that name: `run({{"x", x}, {"w", weights["w"]}})`. It only refers to the name and the
/// array, which must be there until the call returns.
class NamedArray {
 public:
  NamedArray(std::string_view name, const Array& array) : name_(name), array_(&array) {}
  NamedArray(std::string_view name, const WeightView& view) : name_(name), view_(&view) {}

  std::string_view name() const { return name_; }
  const Array* array() const { return array_; }     ///< null where it is a view
  const WeightView* view() const { return view_; }  ///< null where it is an array

 private:
  std::string_view name_;
  const Array* array_ = nullptr;
  const WeightView* view_ = nullptr;
};

template <typename Range>
concept NamedArrayRange =
    std::ranges::contiguous_range<Range> && std::same_as<std::ranges::range_value_t<Range>, NamedArray>;

/// The results of a call, in the graph's order: `results["y"]`. Plain data.
struct NamedResults {
  std::vector<std::string> names;
  std::vector<Array> arrays;  ///< as many

  /// The result called `name`; of a temporary, `run({{"x", x}})["y"]`, it is moved out. Error(argument) where there is
  /// none.
  const Array& operator[](std::string_view name) const& { return arrays[place_of(name)]; }
  Array& operator[](std::string_view name) & { return arrays[place_of(name)]; }
  Array operator[](std::string_view name) && { return std::move(arrays[place_of(name)]); }

 private:
  std::size_t place_of(std::string_view name) const;
};

}  // namespace tenon
