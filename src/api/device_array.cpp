// Arrays in a device's memory.
#include "tenon/device_array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "ir/graph/host_memory.h"
#include "ir/graph/sizes.h"
#include "src/api/host_array.h"
#include "src/api/open_device.h"
#include "tenon/error.h"

namespace tenon {
namespace {

std::string text_of(DType dtype, const std::vector<std::int64_t>& shape) {
  return fmt::format("{}[{}]", name_of(dtype), fmt::join(shape, ", "));
}

std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  for (const std::int64_t extent : shape)
    if (extent < 0)
      throw Error(ErrorKind::argument, "an array of shape " + text_of(dtype, shape), {}, "extents are 0 or more");
  const auto bytes = ir::byte_count(dtype, shape);
  if (!bytes)
    throw Error(ErrorKind::resource, fmt::format("{} leaves the address space", text_of(dtype, shape)), {},
                "use a smaller array");
  return *bytes;
}

// Keeps the backend that frees it.
std::shared_ptr<void> allocate(const std::shared_ptr<const runtime::Backend>& backend, std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  return {backend->allocate(static_cast<std::size_t>(bytes)), [backend](void* memory) { backend->release(memory); }};
}

void check_same(DType dtype, const std::vector<std::int64_t>& shape, const DeviceArray& array) {
  if (dtype == array.dtype() && shape == array.shape()) return;
  throw Error(ErrorKind::argument,
              fmt::format("{} cannot be copied to {}", text_of(dtype, shape), text_of(array.dtype(), array.shape())),
              {}, "dtype and shape must be the same; Device::array makes a new array");
}

void shape_host(Array& host, const DeviceArray& array) {
  ir::with_host_memory("an array", [&] {
    host.dtype = array.dtype();
    host.shape = array.shape();
    host.bytes.resize_uninitialised(static_cast<std::size_t>(array.byte_count()));
  });
}

}  // namespace

std::int64_t DeviceArray::size() const {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape()) size *= extent;
  return size;
}

std::int64_t DeviceArray::byte_count() const { return ir::byte_count(dtype(), shape()).value(); }

Device DeviceArray::device() const {
  if (device_ == nullptr)
    throw Error(ErrorKind::argument, "the array is of no device", {}, "make it by Device::array, zeros or empty");
  return Device(device_);
}

void DeviceArray::swap(DeviceArray& other) noexcept {
  std::swap(buffer_, other.buffer_);
  std::swap(memory_, other.memory_);
  std::swap(capacity_, other.capacity_);
  std::swap(device_, other.device_);
}

void DeviceArray::reset(const Device& device, DType dtype, const std::vector<std::int64_t>& shape) {
  const std::int64_t bytes = bytes_of(dtype, shape);
  const auto& backend = device.impl()->backend;
  if (device_ == nullptr || !device_->same_place(*backend) || capacity_ < bytes) {
    memory_.reset();  // first, since both might not fit
    capacity_ = 0;
    buffer_ = {nullptr, DType::f32, {0}};
    memory_ = allocate(backend, bytes);
    capacity_ = bytes;
  }
  device_ = device.impl();
  buffer_.data = memory_.get();
  buffer_.dtype = dtype;
  buffer_.shape = shape;
}

Array DeviceArray::to_host() const {
  Array host;
  copy_to(host);
  return host;
}

// The work that makes the elements may be on any stream.
void DeviceArray::copy_to(Array& host) const {
  const Device from = device();
  from.wait();
  copy_to(host, from.default_stream());
  from.default_stream().wait();
}

void DeviceArray::copy_to(Array& host, const Stream& stream) const {
  const Device from = device();
  src::check_stream(stream, src::backend_of(from));
  shape_host(host, *this);
  src::backend_of(from).copy_out(host.bytes.data(), data(), host.bytes.size(), stream.handle());
}

void DeviceArray::copy_from(const Array& host) {
  const Device to = device();
  to.wait();
  copy_from(host, to.default_stream());
  to.default_stream().wait();
}

void DeviceArray::copy_from(const Array& host, const Stream& stream) {
  const Device to = device();
  src::check_stream(stream, src::backend_of(to));
  src::check_bytes(host);
  check_same(host.dtype, host.shape, *this);
  src::backend_of(to).copy_in(data(), host.bytes.data(), host.bytes.size(), stream.handle());
}

void DeviceArray::copy_from(const DeviceArray& other) {
  const Device to = device(), from = other.device();
  if (!(to == from)) return copy_from(other.to_host());
  to.wait();
  copy_from(other, to.default_stream());
  to.default_stream().wait();
}

void DeviceArray::copy_from(const DeviceArray& other, const Stream& stream) {
  const Device to = device();
  src::check_stream(stream, src::backend_of(to));
  src::check_stream(stream, src::backend_of(other.device()));
  check_same(other.dtype(), other.shape(), *this);
  if (data() == other.data()) return;
  src::backend_of(to).copy(data(), other.data(), static_cast<std::size_t>(byte_count()), stream.handle());
}

DeviceArray DeviceArray::clone() const {
  DeviceArray copy = device().empty(shape(), dtype());
  copy.copy_from(*this);
  return copy;
}

DeviceArray Device::empty(std::vector<std::int64_t> shape, DType dtype) const {
  DeviceArray array;
  array.reset(*this, dtype, shape);
  return array;
}

DeviceArray Device::zeros(std::vector<std::int64_t> shape, DType dtype) const {
  DeviceArray array = empty(std::move(shape), dtype);
  impl_->backend->fill(array.data(), 0, static_cast<std::size_t>(array.byte_count()), nullptr);
  default_stream().wait();
  return array;
}

DeviceArray Device::array(const Array& host) const {
  src::check_bytes(host);
  DeviceArray array = empty(host.shape, host.dtype);
  array.copy_from(host, default_stream());
  default_stream().wait();
  return array;
}

std::vector<Buffer> buffers_of(const DeviceArrayRefs& arrays) {
  std::vector<Buffer> buffers;
  buffers.reserve(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) buffers.push_back(arrays[i].buffer());
  return buffers;
}

}  // namespace tenon
