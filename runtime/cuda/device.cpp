// Opening a device, and the owners of streams, events and memory on it. Destructors ignore the driver's answer: after a
// lost context every call fails, and the context's own end frees what was left.
#include "runtime/cuda/device.h"

#include <fmt/format.h>

#include <utility>

#include "ir/graph/check.h"

namespace tenon::runtime::cuda {
namespace {

// Attributes of one device, by name.
class Attributes {
 public:
  Attributes(const Driver& driver, DeviceHandle device) : driver_(driver), device_(device) {}
  int operator()(DeviceAttribute attribute) const {
    int value = 0;
    check(driver_, driver_.device_get_attribute(&value, attribute, device_), "asking for a device attribute");
    return value;
  }

 private:
  const Driver& driver_;
  DeviceHandle device_;
};

void read_limits(const Attributes& get, DeviceInfo& info) {
  info.major = get(DeviceAttribute::compute_capability_major);
  info.minor = get(DeviceAttribute::compute_capability_minor);
  info.sm_count = get(DeviceAttribute::multiprocessor_count);
  info.max_threads_per_block = get(DeviceAttribute::max_threads_per_block);
  info.max_threads_per_sm = get(DeviceAttribute::max_threads_per_multiprocessor);
  info.max_blocks_per_sm = get(DeviceAttribute::max_blocks_per_multiprocessor);
  info.registers_per_sm = get(DeviceAttribute::max_registers_per_multiprocessor);
  info.shared_bytes_per_block = get(DeviceAttribute::max_shared_memory_per_block_optin);
  info.shared_bytes_per_sm = get(DeviceAttribute::max_shared_memory_per_multiprocessor);
  info.reserved_shared_bytes_per_block = get(DeviceAttribute::reserved_shared_memory_per_block);
  info.l2_bytes = get(DeviceAttribute::l2_cache_bytes);
  info.clock_khz = get(DeviceAttribute::clock_rate_khz);
  info.memory_clock_khz = get(DeviceAttribute::memory_clock_rate_khz);
  info.memory_bus_bits = get(DeviceAttribute::memory_bus_width_bits);
  info.memory_pools = get(DeviceAttribute::memory_pools_supported) != 0;
}

DeviceInfo read_info(const Driver& driver, DeviceHandle device, int ordinal) {
  DeviceInfo info;
  info.ordinal = ordinal;
  char name[256] = {};
  check(driver, driver.device_get_name(name, sizeof name, device), "asking for a device's name");
  info.name = name;
  check(driver, driver.device_get_uuid(&info.uuid, device), "asking for a device's UUID");
  std::size_t bytes = 0;
  check(driver, driver.device_total_mem(&bytes, device), "asking for a device's memory");
  info.memory_bytes = static_cast<std::int64_t>(bytes);
  read_limits(Attributes(driver, device), info);
  return info;
}

}  // namespace

double bandwidth_gb_s(const DeviceInfo& info) {
  constexpr double kTransfersOfClock = 2, kBitsOfByte = 8;
  return kTransfersOfClock * info.memory_clock_khz * info.memory_bus_bits / kBitsOfByte * 1e-6;
}

codegen::Target target_of(const DeviceInfo& info, const std::string& arch) {
  codegen::Target target = codegen::cuda_target(arch, info.name);
  target.device = info.name;
  target.sm = info.major * 10 + info.minor;
  target.multiprocessors = info.sm_count;
  target.threads_per_multiprocessor = info.max_threads_per_sm;
  target.blocks_per_multiprocessor = info.max_blocks_per_sm;
  target.registers_per_multiprocessor = info.registers_per_sm;
  target.shared_memory_per_multiprocessor = static_cast<int>(info.shared_bytes_per_sm);
  target.shared_memory_per_block = static_cast<int>(info.shared_bytes_per_block);
  target.reserved_shared_memory_per_block = static_cast<int>(info.reserved_shared_bytes_per_block);
  if (info.l2_bytes > 0) target.l2_bytes = info.l2_bytes;
  if (info.clock_khz > 0) target.gigahertz = info.clock_khz * 1e-6;
  if (const double bandwidth = bandwidth_gb_s(info); bandwidth > 0) target.bandwidth_gb_s = bandwidth;
  return target;
}

std::string uuid_text(const std::array<std::uint8_t, 16>& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

int device_count(const Driver& driver) {
  int count = 0;
  const Result result = driver.device_get_count(&count);
  if (result == Result::no_device) return 0;
  check(driver, result, "counting devices");
  return count;
}

std::shared_ptr<const Device> Device::open(std::shared_ptr<const Driver> driver, int ordinal) {
  const int count = device_count(*driver);
  if (ordinal < 0 || ordinal >= count) {
    throw Error(ErrorKind::no_device, fmt::format("there is no CUDA device {}: the driver shows {}", ordinal, count),
                {}, "choose one that nvidia-smi lists and CUDA_VISIBLE_DEVICES admits, or use the CPU target");
  }
  DeviceHandle handle = 0;
  check(*driver, driver->device_get(&handle, ordinal), fmt::format("opening device {}", ordinal));
  DeviceInfo info = read_info(*driver, handle, ordinal);
  return std::shared_ptr<const Device>(new Device(std::move(driver), handle, std::move(info)));
}

Device::Device(std::shared_ptr<const Driver> driver, DeviceHandle handle, DeviceInfo info)
    : driver_(std::move(driver)), handle_(handle), info_(std::move(info)) {
  // For the rest of the process, as the CUDA runtime does it: a context made again for each executable would take
  // longer than compiling it.
  check(*driver_, driver_->device_primary_ctx_retain(&context_, handle_),
        fmt::format("making a context on device {} ({})", info_.ordinal, info_.name));
}

Device::MemoryInfo Device::memory_info() const {
  const CurrentContext current(*this);
  MemoryInfo info;
  check(*driver_, driver_->mem_get_info(&info.free, &info.total), "asking for free memory");
  return info;
}

void Device::synchronize() const {
  const CurrentContext current(*this);
  check(*driver_, driver_->ctx_synchronize(), "waiting for the device");
}

CurrentContext::CurrentContext(const Device& device) : driver_(device.driver()) {
  ContextHandle now = nullptr;
  if (driver_.ctx_get_current(&now) == Result::success && now == device.context()) return;
  check(driver_, driver_.ctx_push_current(device.context()), "making the context current");
  pushed_ = true;
}

CurrentContext::~CurrentContext() {
  ContextHandle popped = nullptr;
  if (pushed_) driver_.ctx_pop_current(&popped);
}

Stream::Stream(DevicePtr device) : device_(std::move(device)) {
  const CurrentContext current(*device_);
  check(device_->driver(), device_->driver().stream_create(&handle_, stream_non_blocking), "making a stream");
}

Stream::Stream(Stream&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Stream::~Stream() {
  if (handle_ != nullptr) device_->driver().stream_destroy(handle_);
}

void Stream::synchronize() const {
  check(device_->driver(), device_->driver().stream_synchronize(handle_), "waiting for a stream");
}

Event::Event(DevicePtr device, Timing timing) : device_(std::move(device)) {
  const CurrentContext current(*device_);
  const unsigned flags = timing == Timing::on ? event_default : event_disable_timing;
  check(device_->driver(), device_->driver().event_create(&handle_, flags), "making an event");
}

Event::Event(Event&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ != nullptr) device_->driver().event_destroy(handle_);
}

void Event::record(StreamHandle stream) const {
  const CurrentContext current(*device_);
  check(device_->driver(), device_->driver().event_record(handle_, stream), "recording an event");
}

void Event::synchronize() const {
  check(device_->driver(), device_->driver().event_synchronize(handle_), "waiting for an event");
}

bool Event::reached() const {
  const Result result = device_->driver().event_query(handle_);
  if (result != Result::not_ready) check(device_->driver(), result, "asking for an event");
  return result == Result::success;
}

void Event::hold_back(StreamHandle stream) const {
  const CurrentContext current(*device_);
  check(device_->driver(), device_->driver().stream_wait_event(stream, handle_, 0), "making a stream wait");
}

float Event::milliseconds_since(const Event& begin) const {
  float milliseconds = 0;
  check(device_->driver(), device_->driver().event_elapsed_time(&milliseconds, begin.handle_, handle_),
        "reading the time between events");
  return milliseconds;
}

DeviceBuffer::DeviceBuffer(DevicePtr device, std::size_t bytes) : device_(std::move(device)), bytes_(bytes) {
  if (bytes == 0) return;
  const CurrentContext current(*device_);
  check(device_->driver(), device_->driver().mem_alloc(&address_, bytes),
        fmt::format("allocating {} bytes on {}", bytes, device_->info().name));
}

DeviceBuffer::DeviceBuffer(DevicePtr device, std::size_t bytes, StreamHandle stream)
    : device_(std::move(device)), bytes_(bytes), stream_(stream), in_stream_order_(device_->info().memory_pools) {
  if (bytes == 0) return;
  const CurrentContext current(*device_);
  const Driver& driver = device_->driver();
  const Result result =
      in_stream_order_ ? driver.mem_alloc_async(&address_, bytes, stream) : driver.mem_alloc(&address_, bytes);
  check(driver, result, fmt::format("allocating {} bytes on {}", bytes, device_->info().name));
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(stream_, other.stream_);
  std::swap(in_stream_order_, other.in_stream_order_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ == 0) return;
  const Driver& driver = device_->driver();
  ContextHandle context = nullptr;
  if (driver.ctx_push_current(device_->context()) != Result::success) return;
  if (in_stream_order_) {
    driver.mem_free_async(address_, stream_);
  } else {
    driver.mem_free(address_);
  }
  driver.ctx_pop_current(&context);
}

void DeviceBuffer::check_range(std::size_t offset, std::size_t count) const {
  TENON_CHECK(offset <= bytes_ && count <= bytes_ - offset,
              fmt::format("a copy of {} bytes at {} leaves its buffer of {}", count, offset, bytes_));
}

void DeviceBuffer::upload(std::span<const std::byte> from, std::size_t offset) const {
  check_range(offset, from.size());
  if (from.empty()) return;
  const CurrentContext current(*device_);
  check(device_->driver(), device_->driver().memcpy_htod(address_ + offset, from.data(), from.size()),
        fmt::format("copying {} bytes to the device", from.size()));
}

void DeviceBuffer::download(std::span<std::byte> to, std::size_t offset) const {
  check_range(offset, to.size());
  if (to.empty()) return;
  const CurrentContext current(*device_);
  check(device_->driver(), device_->driver().memcpy_dtoh(to.data(), address_ + offset, to.size()),
        fmt::format("copying {} bytes from the device", to.size()));
}

}  // namespace tenon::runtime::cuda
