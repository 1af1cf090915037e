// Devices, streams and events: handles on a backend.
#include "tenon/device.h"

#include <fmt/format.h>

#include "src/api/open_device.h"
#include "src/driver/backends.h"
#include "src/driver/switches.h"
#include "tenon/device_array.h"
#include "tenon/error.h"

namespace tenon {
namespace src {

void check_stream(const Stream& stream, const runtime::Backend& backend) {
  if (stream.device().impl()->same_place(backend)) return;
  throw Error(ErrorKind::argument, fmt::format("a stream of {} where another device works", stream.device().name()), {},
              "take one of this device: Device::stream()");
}

}  // namespace src

namespace {

std::shared_ptr<const Device::Impl> open(const std::string& name, const Options& options) {
  src::check_options(options);
  if (name.starts_with("sm_"))
    throw Error(ErrorKind::argument, fmt::format("'{}' is an architecture, not a device", name), {},
                "compile(graph, \"" + name + "\") generates kernels for it without a device");
  return std::make_shared<const Device::Impl>(Device::Impl{src::open_backend(name, options), options});
}

}  // namespace

Device::Device(const std::string& name, const Options& options) : Device(open(name, options)) {}

std::string Device::name() const { return impl_->is_cpu() ? "cpu" : fmt::format("cuda:{}", impl_->backend->ordinal()); }

std::string Device::description() const { return impl_->backend->device_name(); }

Stream Device::stream() const { return {*this, impl_->backend->make_stream()}; }

Stream Device::default_stream() const { return {*this, nullptr}; }

void Device::wait() const { impl_->backend->drain(); }

bool Device::operator==(const Device& other) const { return impl_->same_place(*other.impl_->backend); }

void Stream::wait() const { src::backend_of(device_).synchronize(handle()); }

void Stream::wait_for(const Event& event) const {
  src::check_stream(*this, src::backend_of(event.impl().device));
  event.impl().event->hold_back(handle());
}

Event Stream::record() const {
  const Event event(std::make_shared<const Event::Impl>(Event::Impl{device_, src::backend_of(device_).make_event()}));
  event.record(*this);
  return event;
}

void Event::record(const Stream& stream) const {
  src::check_stream(stream, src::backend_of(impl_->device));
  impl_->event->record(stream.handle());
}

void Event::wait() const { impl_->event->wait(); }

bool Event::reached() const { return impl_->event->reached(); }

double Event::milliseconds_since(const Event& begin) const {
  if (!(begin.impl_->device == impl_->device))
    throw Error(
        ErrorKind::argument,
        fmt::format("no time from an event of {} to one of {}", begin.impl_->device.name(), impl_->device.name()), {},
        "record both on streams of one device");
  return impl_->event->milliseconds_since(*begin.impl_->event);
}

}  // namespace tenon
