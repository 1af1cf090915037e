// A recorded sequence of launches that the driver repeats with one call (a CUDA graph).
// Relies on stream capture: what is recorded is whatever was put on the stream meanwhile.
#pragma once

#include <functional>

#include "runtime/cuda/device.h"

namespace tenon::runtime::cuda {

/// An instantiated graph; move-only. Launching it is thread-safe only for different objects.
class LaunchGraph {
 public:
  /// Runs `record`, which puts work on `stream` without waiting for anything, and keeps that work instead of doing it.
  /// What `record` throws ends the capture and is passed on.
  LaunchGraph(DevicePtr device, StreamHandle stream, const std::function<void()>& record);
  LaunchGraph(LaunchGraph&& other) noexcept;
  LaunchGraph& operator=(LaunchGraph&& other) noexcept;
  ~LaunchGraph();

  /// Puts the recorded work on `stream`.
  void launch(StreamHandle stream) const;

  /// Records anew. The same launches with other arguments or sizes replace the old ones in place, anything else anew.
  void update(StreamHandle stream, const std::function<void()>& record);

 private:
  DevicePtr device_;
  GraphExecHandle exec_ = nullptr;
};

}  // namespace tenon::runtime::cuda
