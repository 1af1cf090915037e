// What a call takes several arrays by: nothing is copied.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <type_traits>
#include <vector>

#include "tenon/array.h"

namespace tenon {

/// Arrays that a call reads, in their order: `run({x, y})`, or a vector or another range of them that lies in memory.
/// For parameters alone: it only refers to the arrays, which must be there until the call returns.
class ArrayRefs {
 public:
  /// One of those in braces.
  class Ref {
   public:
    Ref(const Array& array) : array_(&array) {}  // NOLINT(google-explicit-constructor): an array as it is
    const Array* get() const { return array_; }

   private:
    const Array* array_;
  };

  ArrayRefs() = default;
  ArrayRefs(std::initializer_list<Ref> arrays) {
    for (const Ref& array : arrays) arrays_.push_back(array.get());
  }
  template <std::ranges::contiguous_range Range>
    requires std::same_as<std::ranges::range_value_t<Range>, Array>
  ArrayRefs(const Range& arrays) {  // NOLINT(google-explicit-constructor): a vector as it is
    for (const Array& array : arrays) arrays_.push_back(&array);
  }

  std::size_t size() const { return arrays_.size(); }
  const Array& operator[](std::size_t i) const { return *arrays_[i]; }

 private:
  std::vector<const Array*> arrays_;
};

}  // namespace tenon
