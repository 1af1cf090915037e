// An array of as many elements as a launch needs, without an allocation where they are few, as they nearly always are:
// a launch is to cost the host single microseconds.
#pragma once

#include <cstddef>
#include <memory>

namespace tenon::runtime {

/// `size` elements, not initialised; up to 64 of them on the stack.
template <typename T>
class SmallArray {
 public:
  explicit SmallArray(std::size_t size) : size_(size) {
    if (size > kFew) many_ = std::make_unique<T[]>(size);
  }
  SmallArray(const SmallArray&) = delete;
  SmallArray& operator=(const SmallArray&) = delete;

  std::size_t size() const { return size_; }
  T* data() { return many_ ? many_.get() : few_; }
  T& operator[](std::size_t i) { return data()[i]; }

 private:
  static constexpr std::size_t kFew = 64;

  std::size_t size_;
  std::unique_ptr<T[]> many_;
  T few_[kFew];
};

}  // namespace tenon::runtime
