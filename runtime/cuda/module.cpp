// Loading machine code and launching it.
#include <fmt/format.h>

#include <utility>

#include "runtime/cuda/device.h"

namespace tenon::runtime::cuda {
namespace {

// A kernel may use this much dynamic shared memory without being told so first.
constexpr std::size_t shared_without_opt_in = 48 * 1024;

int attribute_of(const Driver& driver, FunctionHandle function, FunctionAttribute attribute) {
  int value = 0;
  check(driver, driver.func_get_attribute(&value, attribute, function), "asking for a kernel's attribute");
  return value;
}

Result launch_plain(const Driver& driver, FunctionHandle function, const LaunchConfig& config, StreamHandle stream,
                    void** arguments) {
  const auto& grid = config.grid;
  const auto& block = config.block;
  return driver.launch_kernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, config.dynamic_shared_bytes,
                              stream, arguments, nullptr);
}

Result launch_with_attributes(const Driver& driver, FunctionHandle function, const LaunchConfig& config,
                              StreamHandle stream, void** arguments) {
  LaunchAttribute attributes[3] = {};
  unsigned count = 0;
  if (config.cluster != Dim3{}) {
    auto& attribute = attributes[count++];
    attribute.id = LaunchAttribute::Id::cluster_dimension;
    attribute.value.cluster[0] = config.cluster.x;
    attribute.value.cluster[1] = config.cluster.y;
    attribute.value.cluster[2] = config.cluster.z;
  }
  if (config.programmatic_dependent) {
    auto& attribute = attributes[count++];
    attribute.id = LaunchAttribute::Id::programmatic_stream_serialization;
    attribute.value.flag = 1;
  }
  if (config.cooperative) {
    auto& attribute = attributes[count++];
    attribute.id = LaunchAttribute::Id::cooperative;
    attribute.value.flag = 1;
  }
  const LaunchParameters parameters = {{config.grid.x, config.grid.y, config.grid.z},
                                       {config.block.x, config.block.y, config.block.z},
                                       config.dynamic_shared_bytes,
                                       stream,
                                       attributes,
                                       count};
  return driver.launch_kernel_ex(&parameters, function, arguments, nullptr);
}

std::string launch_text(const LaunchConfig& config, std::string_view name) {
  return fmt::format("launching {} (grid {}x{}x{}, block {}x{}x{}, {} bytes of dynamic shared memory)", name,
                     config.grid.x, config.grid.y, config.grid.z, config.block.x, config.block.y, config.block.z,
                     config.dynamic_shared_bytes);
}

}  // namespace

Module::Module(DevicePtr device, std::span<const std::byte> cubin) : device_(std::move(device)) {
  const CurrentContext current(*device_);
  check(device_->driver(), device_->driver().module_load_data_ex(&handle_, cubin.data(), 0, nullptr, nullptr),
        fmt::format("loading a kernel of {} bytes on {}", cubin.size(), device_->info().name));
}

Module::Module(Module&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}

Module& Module::operator=(Module&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Module::~Module() {
  if (handle_ == nullptr) return;
  const Driver& driver = device_->driver();
  ContextHandle context = nullptr;
  if (driver.ctx_push_current(device_->context()) != Result::success) return;
  driver.module_unload(handle_);
  driver.ctx_pop_current(&context);
}

FunctionHandle Module::function(const std::string& name, std::size_t dynamic_shared_bytes) const {
  const Driver& driver = device_->driver();
  const CurrentContext current(*device_);
  FunctionHandle function = nullptr;
  check(driver, driver.module_get_function(&function, handle_, name.c_str()), "finding kernel " + name);
  if (dynamic_shared_bytes == 0) return function;
  const std::size_t all =
      dynamic_shared_bytes + static_cast<std::size_t>(attribute_of(driver, function, FunctionAttribute::shared_bytes));
  if (all <= shared_without_opt_in) return function;
  const auto most = static_cast<std::size_t>(device_->info().shared_bytes_per_block);
  if (all > most) {
    throw Error(
        ErrorKind::resource,
        fmt::format("{} needs {} bytes of shared memory a block; {} has {}", name, all, device_->info().name, most), {},
        "choose a schedule with smaller tiles or fewer stages");
  }
  check(driver,
        driver.func_set_attribute(function, FunctionAttribute::max_dynamic_shared_bytes,
                                  static_cast<int>(dynamic_shared_bytes)),
        fmt::format("giving {} {} bytes of shared memory", name, dynamic_shared_bytes));
  return function;
}

FunctionInfo Module::info(FunctionHandle function) const {
  const Driver& driver = device_->driver();
  const CurrentContext current(*device_);
  return {attribute_of(driver, function, FunctionAttribute::registers),
          attribute_of(driver, function, FunctionAttribute::max_threads_per_block),
          attribute_of(driver, function, FunctionAttribute::shared_bytes),
          attribute_of(driver, function, FunctionAttribute::local_bytes)};
}

int Module::blocks_per_sm(FunctionHandle function, int threads, std::size_t dynamic_shared_bytes) const {
  const Driver& driver = device_->driver();
  const CurrentContext current(*device_);
  int blocks = 0;
  check(driver, driver.occupancy_max_active_blocks_per_multiprocessor(&blocks, function, threads, dynamic_shared_bytes),
        "asking for a kernel's occupancy");
  return blocks;
}

std::int64_t resident_blocks(const Device& device, FunctionHandle function, const LaunchConfig& config) {
  const Driver& driver = device.driver();
  int count = 0;
  if (config.cluster.x <= 1) {
    check(driver,
          driver.occupancy_max_active_blocks_per_multiprocessor(&count, function, static_cast<int>(config.block.x),
                                                                config.dynamic_shared_bytes),
          "asking how many blocks fit a multiprocessor");
    return std::int64_t{count} * device.info().sm_count;
  }
  LaunchAttribute cluster{LaunchAttribute::Id::cluster_dimension, {}, {}};
  cluster.value.cluster[0] = config.cluster.x;
  cluster.value.cluster[1] = cluster.value.cluster[2] = 1;
  const LaunchParameters parameters{
      {config.cluster.x, 1, 1}, {config.block.x, 1, 1}, config.dynamic_shared_bytes, nullptr, &cluster, 1};
  check(driver, driver.occupancy_max_active_clusters(&count, function, &parameters),
        "asking how many clusters fit the device");
  return std::int64_t{count} * config.cluster.x;
}

void launch(const Driver& driver, FunctionHandle function, const LaunchConfig& config, StreamHandle stream,
            void** arguments, std::string_view name) {
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return;
  const bool plain = config.cluster == Dim3{} && !config.programmatic_dependent && !config.cooperative;
  const Result result = plain ? launch_plain(driver, function, config, stream, arguments)
                              : launch_with_attributes(driver, function, config, stream, arguments);
  if (result != Result::success) throw driver_error(driver, result, launch_text(config, name));
}

}  // namespace tenon::runtime::cuda
