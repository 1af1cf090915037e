// Arrays in a device's memory: what programs keep from run to run.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <vector>

#include "tenon/array.h"
#include "tenon/buffer.h"
#include "tenon/device.h"

namespace tenon {

/// A dense row-major array that owns memory of a device (Device::array, zeros, empty). It is moved, and copied by
/// clone() alone. Copies wait for all work on the device and are done when the call returns, unless they name a stream:
/// then they take their place in its order, and host memory must stay until the stream has come there. Memory may be
/// freed while work that uses it is under way: freeing waits for it.
class DeviceArray {
 public:
  DeviceArray() = default;  ///< f32[0] of no device, for results to come

  DType dtype() const { return buffer_.dtype; }
  const std::vector<std::int64_t>& shape() const { return buffer_.shape; }
  std::int64_t size() const;        ///< the product of the extents
  std::int64_t byte_count() const;  ///< of all elements

  /// Where the elements lie, in the memory of the device (a CUdeviceptr); on the CPU in the host's.
  void* data() const { return buffer_.data; }
  /// The same with dtype and shape, for Executable::run on buffers: good until the array ends or is assigned to.
  const Buffer& buffer() const { return buffer_; }

  /// A copy on the host.
  Array to_host() const;
  /// The same into `host`, whose memory is used again where it suffices.
  void copy_to(Array& host) const;
  void copy_to(Array& host, const Stream& stream) const;
  /// Error(argument) unless dtype and shape are the same. `other` may be of any device but, where a stream is named,
  /// is of this one.
  void copy_from(const Array& host);
  void copy_from(const Array& host, const Stream& stream);
  void copy_from(const DeviceArray& other);
  void copy_from(const DeviceArray& other, const Stream& stream);
  /// Another array with the same elements.
  DeviceArray clone() const;

  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    DeviceArray(std::move(other)).swap(*this);
    return *this;
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() = default;
  void swap(DeviceArray& other) noexcept;

  /// Error(argument) for an array of no device.
  Device device() const;

  /// Makes it an array of `device` with this dtype and shape and any values. Its memory is used again where it is the
  /// device's and suffices.
  void reset(const Device& device, DType dtype, const std::vector<std::int64_t>& shape);

 private:
  Buffer buffer_ = {nullptr, DType::f32, {0}};
  std::shared_ptr<void> memory_;
  std::int64_t capacity_ = 0;  ///< bytes of `memory_`
  std::shared_ptr<const Device::Impl> device_;
};

inline const Buffer& buffer_of(const DeviceArray& array) { return array.buffer(); }

/// Arrays of a device that a call takes, in their order: `run({x, y}, results)`, or a vector of them. For parameters
/// alone: it only refers to the arrays.
class DeviceArrayRefs {
 public:
  template <std::same_as<DeviceArray>... More>
  DeviceArrayRefs(const DeviceArray& first, const More&... more)  // NOLINT(google-explicit-constructor)
      : arrays_{&first, &more...} {}
  template <std::ranges::contiguous_range Range>
    requires std::same_as<std::ranges::range_value_t<Range>, DeviceArray>
  DeviceArrayRefs(const Range& arrays) {  // NOLINT(google-explicit-constructor)
    for (const DeviceArray& array : arrays) arrays_.push_back(&array);
  }

  std::size_t size() const { return arrays_.size(); }
  const DeviceArray& operator[](std::size_t i) const { return *arrays_[i]; }

 private:
  std::vector<const DeviceArray*> arrays_;
};

/// The same of each.
std::vector<Buffer> buffers_of(const DeviceArrayRefs& arrays);

}  // namespace tenon
