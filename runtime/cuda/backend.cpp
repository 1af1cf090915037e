// The CUDA backend: source to cubin through the cache, cubin to function, function to launch.
#include "runtime/cuda/backend.h"

#include <fmt/format.h>

#include <charconv>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/loaded_modules.h"
#include "runtime/cuda/tensor_map.h"
#include "runtime/small_array.h"

namespace tenon::runtime::cuda {
namespace {

struct CudaKernel final : LoadedKernel {
  explicit CudaKernel(std::shared_ptr<const LoadedModule> loaded) : module(std::move(loaded)) {}
  std::shared_ptr<const LoadedModule> module;
  FunctionHandle function = nullptr;
  FunctionHandle finish = nullptr;  ///< null: none
  std::string name;
};

// Resources as the cache keeps them: "registers 32 shared 0 stack 0 spill 0".
std::string metadata_of(const ResourceUse& use) {
  return fmt::format("registers {} shared {} stack {} spill {}", use.registers, use.shared_bytes, use.stack_bytes,
                     use.spill_store_bytes + use.spill_load_bytes);
}

KernelResources resources_of(const std::string& metadata) {
  KernelResources resources;
  const auto number_after = [&](const char* word) {
    std::int64_t value = 0;
    const auto at = metadata.find(word);
    if (at != std::string::npos)
      std::from_chars(metadata.data() + at + std::char_traits<char>::length(word) + 1,
                      metadata.data() + metadata.size(), value);
    return value;
  };
  resources.registers = static_cast<int>(number_after("registers"));
  resources.shared_bytes = number_after("shared");
  resources.stack_bytes = number_after("stack");
  resources.spill_bytes = number_after("spill");
  return resources;
}

// CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
unsigned blocks(std::int64_t count, const std::string& kernel) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  if (count > kMost)
    throw Error(ErrorKind::resource,
                fmt::format("{} would run on {} blocks, a launch has at most {}", kernel, count, kMost), {},
                "run at smaller sizes");
  return static_cast<unsigned>(count);
}

class CudaEvent final : public runtime::Event {
 public:
  explicit CudaEvent(const DevicePtr& device) : event_(device, cuda::Event::Timing::on) {}
  void record(void* stream) override { event_.record(static_cast<StreamHandle>(stream)); }
  void wait() const override { event_.synchronize(); }
  bool reached() const override { return event_.reached(); }
  void hold_back(void* stream) const override { event_.hold_back(static_cast<StreamHandle>(stream)); }
  double milliseconds_since(const runtime::Event& begin) const override {
    const cuda::Event& first = static_cast<const CudaEvent&>(begin).event_;
    first.synchronize();
    event_.synchronize();
    return static_cast<double>(event_.milliseconds_since(first));
  }

 private:
  cuda::Event event_;
};

// Records on a stream of its own: the default stream cannot be captured, and the caller's may be in use.
class CudaRecording final : public Recording {
 public:
  CudaRecording(const DevicePtr& device, const std::function<void(void*)>& work)
      : stream_(device), graph_(device, stream_.get(), [&] { work(stream_.get()); }) {}
  void launch(void* stream) const override { graph_.launch(static_cast<StreamHandle>(stream)); }
  void update(const std::function<void(void*)>& work) override {
    graph_.update(stream_.get(), [&] { work(stream_.get()); });
  }

 private:
  Stream stream_;
  LaunchGraph graph_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const BackendOptions& options, std::shared_ptr<KernelCache> cache)
      : nvrtc_(open_nvrtc(options.nvrtc)), cache_(std::move(cache)), version_(options.tenon_version) {
    if (options.with_device) {
      device_ = Device::open(open_driver(), options.device);
      const std::string own = arch_for(device_->info().major, device_->info().minor, *nvrtc_);
      target_ = target_of(device_->info(), options.arch.empty() ? own : options.arch);
    } else {
      target_ = codegen::cuda_target(options.arch);
    }
    target_.may = codegen::without(target_.may, options.disable);
  }

  const codegen::Target& target() const override { return target_; }
  std::string device_name() const override { return device_ ? device_->info().name : ""; }

  codegen::Source emit(const codegen::Launch& launch) const override { return codegen::emit_cuda(launch, target_); }

  Binary build(const codegen::Source& source) const override {
    const CompileOptions options;
    CacheKey key{version_, nvrtc_->identity(), target_.arch, {}, source.text};
    for (const std::string& flag : compile_flags(*nvrtc_, target_.arch, options)) key.flags += flag + "\n";
    Binary binary;
    binary.entry = cache_->get_or_compile(key, [&] {
      binary.compiled = true;
      CompiledProgram program = compile(*nvrtc_, source.text, source.entry, target_.arch, options);
      return CacheEntry{metadata_of(program.resources), std::move(program.cubin)};
    });
    binary.resources = resources_of(binary.entry->metadata);
    return binary;
  }

  std::shared_ptr<const LoadedKernel> load(const codegen::Source& source, const Binary& binary) const override {
    if (!device_) return nullptr;
    const CurrentContext current(*device_);
    auto kernel = std::make_shared<CudaKernel>(modules_.load(device_, binary.entry, source.launch.shared_bytes));
    const Module& module = kernel->module->module;
    kernel->function = function_of(module, source.entry, source.launch, kernel->resident_blocks);
    if (!source.finish_entry.empty())
      kernel->finish = function_of(module, source.finish_entry, source.finish, kernel->finish_resident_blocks);
    kernel->name = source.entry;
    return kernel;
  }

  std::string disassemble(const codegen::Source& source) const override {
    CompileOptions options;
    options.want_ptx = true;
    return compile(*nvrtc_, source.text, source.entry, target_.arch, options).ptx;
  }

  void launch(const LaunchCall& launch, void* stream) const override {
    const auto& kernel = static_cast<const CudaKernel&>(*launch.kernel);
    const CurrentContext current(device());
    call(kernel.function, launch.function, launch, kernel.name, stream);
    if (kernel.finish != nullptr) call(kernel.finish, launch.finish, launch, kernel.name, stream);
  }

  EncodedTensorMap encode(const codegen::TensorMap& map, const Bindings& bindings) const override {
    const CurrentContext current(device());
    return cuda::encode(driver(), map, bindings);
  }

  void* allocate(std::size_t bytes) const override {
    const CurrentContext current(device());
    DevicePointer address = 0;
    check(device_->driver(), device_->driver().mem_alloc(&address, bytes),
          fmt::format("allocating {} bytes on the device", bytes));
    return reinterpret_cast<void*>(address);
  }

  void release(void* memory) const noexcept override {
    if (!device_ || memory == nullptr) return;
    const CurrentContext current(*device_);
    device_->driver().mem_free(reinterpret_cast<DevicePointer>(memory));
  }

  void copy_in(void* to, const void* from, std::size_t bytes, void* stream) const override {
    const CurrentContext current(device());
    if (bytes > 0)
      check(driver(), driver().memcpy_htod_async(address(to), from, bytes, static_cast<StreamHandle>(stream)),
            "copying to the device");
  }
  void copy_out(void* to, const void* from, std::size_t bytes, void* stream) const override {
    const CurrentContext current(device());
    if (bytes > 0)
      check(driver(), driver().memcpy_dtoh_async(to, address(from), bytes, static_cast<StreamHandle>(stream)),
            "copying from the device");
  }
  void copy(void* to, const void* from, std::size_t bytes, void* stream) const override {
    const CurrentContext current(device());
    if (bytes > 0)
      check(driver(), driver().memcpy_dtod_async(address(to), address(from), bytes, static_cast<StreamHandle>(stream)),
            "copying on the device");
  }
  void fill(void* to, unsigned char byte, std::size_t bytes, void* stream) const override {
    const CurrentContext current(device());
    if (bytes > 0)
      check(driver(), driver().memset_d8_async(address(to), byte, bytes, static_cast<StreamHandle>(stream)),
            "filling device memory");
  }
  void synchronize(void* stream) const override {
    const CurrentContext current(device());
    check(driver(), driver().stream_synchronize(static_cast<StreamHandle>(stream)), "running kernels");
  }

  void drain() const override {
    if (!device_) return;
    const CurrentContext current(*device_);
    check(driver(), driver().ctx_synchronize(), "running kernels");
  }

  void forget_kept(void* stream) const override {
    if (target_.sm < 80) return;
    synchronize(stream);
    const CurrentContext current(device());
    check(driver(), driver().ctx_reset_persisting_l2_cache(), "resetting the second-level cache");
  }

  std::unique_ptr<runtime::Event> make_event() const override {
    device();
    return std::make_unique<CudaEvent>(device_);
  }
  std::shared_ptr<void> make_stream() const override {
    device();
    const auto stream = std::make_shared<const Stream>(device_);
    return {stream, stream->get()};
  }
  int ordinal() const override { return device_ ? device_->info().ordinal : 0; }

  std::unique_ptr<Recording> record(const std::function<void(void*)>& work) const override {
    device();
    return std::make_unique<CudaRecording>(device_, work);
  }

 private:
  const Device& device() const {
    if (!device_)
      throw Error(ErrorKind::no_device, fmt::format("compiled for {} without a device", target_.arch), {},
                  "run on target cuda, or cpu");
    return *device_;
  }
  const Driver& driver() const { return device_->driver(); }

  FunctionHandle function_of(const Module& module, const std::string& entry, const codegen::LaunchRule& rule,
                             std::int64_t& resident) const {
    FunctionHandle function = module.function(entry, static_cast<std::size_t>(rule.shared_bytes));
    if (!rule.resident) return function;
    LaunchConfig config;
    config.block = {static_cast<unsigned>(rule.block), 1, 1};
    config.dynamic_shared_bytes = static_cast<unsigned>(rule.shared_bytes);
    config.cluster = {static_cast<unsigned>(rule.cluster), 1, 1};
    resident = resident_blocks(*device_, function, config);
    if (rule.together > resident)
      throw Error(ErrorKind::resource,
                  fmt::format("{} needs {} blocks at once; {} runs {} of them", entry, rule.together,
                              device_->info().name, resident),
                  {}, "switch off grid_rows and split_k, or compile for this device");
    return function;
  }

  void call(FunctionHandle function, const FunctionCall& how, const LaunchCall& launch, const std::string& name,
            void* stream) const {
    SmallArray<void*> arguments(launch.pointers.size() + launch.dims.size() + how.tensor_maps.size());
    SmallArray<TensorMap> maps(how.tensor_maps.size());
    std::size_t count = 0;
    // The driver copies each argument from the address given: the spans hold them already.
    for (void* const& pointer : launch.pointers) arguments[count++] = const_cast<void**>(&pointer);
    for (const std::int64_t& dim : launch.dims) arguments[count++] = const_cast<std::int64_t*>(&dim);
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const EncodedTensorMap& encoded = how.tensor_maps[i];
      maps[i] =
          at_address(driver(), encoded, static_cast<std::byte*>(launch.pointers[encoded.pointer]) + encoded.offset);
      arguments[count++] = &maps[i];
    }
    LaunchConfig config;
    config.grid = {blocks(how.grid, name), 1, 1};
    config.block = {static_cast<unsigned>(how.block), 1, 1};
    config.dynamic_shared_bytes = static_cast<unsigned>(how.shared_bytes);
    config.programmatic_dependent = how.early;
    config.cooperative = how.together;
    cuda::launch(driver(), function, config, static_cast<StreamHandle>(stream), arguments.data(), name);
  }

  static DevicePointer address(const void* memory) { return reinterpret_cast<DevicePointer>(memory); }

  std::shared_ptr<const Nvrtc> nvrtc_;
  std::shared_ptr<KernelCache> cache_;
  std::string version_;
  DevicePtr device_;
  mutable LoadedModules modules_;
  codegen::Target target_;
};

}  // namespace

std::shared_ptr<const Backend> make_backend(const BackendOptions& options, std::shared_ptr<KernelCache> cache) {
  return std::make_shared<const CudaBackend>(options, std::move(cache));
}

}  // namespace tenon::runtime::cuda
