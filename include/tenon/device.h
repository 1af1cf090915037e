// Where arrays live and graphs run, and in which order: devices, streams, events. Nobody needs the driver's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tenon/dtype.h"
#include "tenon/options.h"

namespace tenon {

struct Array;
class DeviceArray;
class Event;
class Stream;

/// A device that is open. Cheap to copy; all functions may be called from several threads at once.
class Device {
 public:
  /// "cpu", "cuda" (the GPU that options.device names), "cuda:1", or "auto" (a GPU where there is one, else the CPU).
  /// The options hold for what is compiled for the device too. Error(no_device) when it is not there, Error(argument)
  /// for another name.
  explicit Device(const std::string& name = "auto", const Options& options = default_options());

  std::string name() const;         ///< "cpu", "cuda:0"
  std::string description() const;  ///< "NVIDIA H200", or the CPU's kind and the number of its threads

  /// A copy of a host array. Error(out_of_memory), as the next two.
  DeviceArray array(const Array& host) const;
  /// Zeros (false for bool); Error(argument) for a negative extent.
  DeviceArray zeros(std::vector<std::int64_t> shape, DType dtype = DType::f32) const;
  /// The same with any values, for a caller that writes them all.
  DeviceArray empty(std::vector<std::int64_t> shape, DType dtype = DType::f32) const;

  /// A new stream, which waits for no other. On the CPU a call returns when its work is done, so that streams and
  /// events have nothing to order there: a program that uses them runs as it is.
  Stream stream() const;
  /// The stream of all calls that name none.
  Stream default_stream() const;

  /// Waits for the work on all streams.
  void wait() const;

  /// The same GPU, or both the CPU.
  bool operator==(const Device& other) const;

  struct Impl;
  explicit Device(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Work of a device that is done in the order in which it is put there. Cheap to copy: copies are the same stream,
/// which ends with the last one.
class Stream {
 public:
  /// Until all work that is on it now is done.
  void wait() const;
  /// What is put on it from now on waits for the event, which may be of another stream of the device.
  void wait_for(const Event& event) const;
  /// A point behind the work that is on it now.
  Event record() const;

  const Device& device() const { return device_; }
  void* handle() const { return handle_.get(); }  ///< a CUstream; null for the default stream, and on the CPU

  Stream(Device device, std::shared_ptr<void> handle) : device_(std::move(device)), handle_(std::move(handle)) {}

 private:
  Device device_;
  std::shared_ptr<void> handle_;
};

/// A point in a stream's work. Cheap to copy: copies are the same event.
class Event {
 public:
  /// Moves it behind the work that is on the stream now.
  void record(const Stream& stream) const;
  /// Until the work before it is done.
  void wait() const;
  /// Whether it is.
  bool reached() const;
  /// The device's time from `begin` to this event, for both of which it waits.
  double milliseconds_since(const Event& begin) const;

  struct Impl;
  explicit Event(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tenon
