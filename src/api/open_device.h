// What the public handles of a device hold.
#pragma once

#include <memory>

#include "ir/graph/graph.h"
#include "runtime/backend.h"
#include "tenon/compile.h"
#include "tenon/device.h"
#include "tenon/device_array.h"
#include "tenon/options.h"

namespace tenon {

struct Device::Impl {
  std::shared_ptr<const runtime::Backend> backend;
  Options options;

  bool is_cpu() const { return backend->target().kind == codegen::TargetKind::cpu; }
  /// Whether memory and streams of the one are the other's too.
  bool same_place(const runtime::Backend& other) const {
    return backend->target().kind == other.target().kind && (is_cpu() || backend->ordinal() == other.ordinal());
  }
};

struct Event::Impl {
  Device device;
  std::unique_ptr<runtime::Event> event;
};

namespace src {

inline const runtime::Backend& backend_of(const Device& device) { return *device.impl()->backend; }

/// The device of an executable, with default options.
Device device_of(const Executable::Impl& impl);

/// Error(argument) unless these are as many as the graph has that are not bound, all of the executable's device.
void check_inputs(const Executable::Impl& impl, const DeviceArrayRefs& inputs);
/// Error(argument) unless the stream is of the backend's device.
void check_stream(const Stream& stream, const runtime::Backend& backend);

}  // namespace src
}  // namespace tenon
