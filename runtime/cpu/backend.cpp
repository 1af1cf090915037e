// The CPU backend: LLVM assembly to an object file through the cache, object to function, function to parallel tasks.
#include "runtime/cpu/backend.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "ir/graph/check.h"
#include "runtime/cpu/compile.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/jit.h"
#include "runtime/cpu/thread_pool.h"
#include "tenon/bytes.h"
#include "tenon/error.h"

namespace tenon::runtime::cpu {
namespace {

struct CpuKernel final : LoadedKernel {
  CpuKernel(LoadedObject object, codegen::Source text) : code(std::move(object)), source(std::move(text)) {}
  LoadedObject code;
  codegen::Source source;
  KernelFunction function = nullptr;
  KernelFunction finish = nullptr;  ///< null: none
};

void* allocate_bytes(std::size_t bytes) {
  try {
    return detail::allocate_host(bytes);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::out_of_memory, fmt::format("{} bytes of host memory cannot be had", bytes), {},
                "run at smaller sizes");
  }
}

// What a function is given: the operands' addresses, then the scratch's, and the sizes.
struct Arguments {
  void* const* pointers;
  const std::int64_t* dims;
};

void run_tasks(KernelFunction function, const Arguments& arguments, std::int64_t tasks, int threads) {
  parallel_for(tasks, threads,
               [&](std::int64_t begin, std::int64_t end) { function(arguments.pointers, arguments.dims, begin, end); });
}

// A launch returns when it is done, so the host's clock tells.
class CpuEvent final : public Event {
 public:
  void record(void*) override { at_ = Clock::now(); }
  void wait() const override {}
  bool reached() const override { return true; }
  void hold_back(void*) const override {}
  double milliseconds_since(const Event& begin) const override {
    return std::chrono::duration<double, std::milli>(at_ - static_cast<const CpuEvent&>(begin).at_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point at_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(const BackendOptions& options, std::shared_ptr<KernelCache> cache)
      : target_(host_target(options.vector_bytes)), cache_(std::move(cache)), version_(options.tenon_version) {
    target_.may = codegen::without(target_.may, options.disable);
    if (!options.cpu.empty()) target_.cpu = options.cpu;
    if (options.threads > 0) target_.threads = options.threads;
    if (options.l3_bytes > 0) target_.l3_bytes = options.l3_bytes;
    if (options.streamed_row_bytes > 0) target_.streamed_row_bytes = options.streamed_row_bytes;
  }

  const codegen::Target& target() const override { return target_; }
  std::string device_name() const override { return target_.cpu + ", " + std::to_string(target_.threads) + " threads"; }

  codegen::Source emit(const codegen::Launch& launch) const override {
    TENON_CHECK(launch.members.size() == 1, "a CPU has no packs");
    return codegen::emit_llvm(launch.members.front(), target_);
  }

  Binary build(const codegen::Source& source) const override {
    const CacheKey key{version_, "LLVM " LLVM_VERSION_STRING, target_.cpu, target_.features, source.text};
    Binary binary;
    binary.entry = cache_->get_or_compile(key, [&] {
      binary.compiled = true;
      const Object object = compile(source.text, target_);
      const auto* bytes = reinterpret_cast<const std::byte*>(object.bytes.data());
      return CacheEntry{{}, {bytes, bytes + object.bytes.size()}};
    });
    return binary;
  }

  std::shared_ptr<const LoadedKernel> load(const codegen::Source& source, const Binary& binary) const override {
    const auto& bytes = binary.entry->binary;
    auto kernel = std::make_shared<CpuKernel>(
        jit_.load(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())), source);
    kernel->function = kernel->code.function(source.entry);
    if (!source.finish_entry.empty()) kernel->finish = kernel->code.function(source.finish_entry);
    return kernel;
  }

  std::string disassemble(const codegen::Source& source) const override { return assembly_text(source.text, target_); }

  void launch(const LaunchCall& launch, void*) const override {
    const auto& kernel = static_cast<const CpuKernel&>(*launch.kernel);
    const Arguments arguments{launch.pointers.data(), launch.dims.data()};
    run_tasks(kernel.function, arguments, launch.function.grid, target_.threads);
    if (kernel.finish) run_tasks(kernel.finish, arguments, launch.finish.grid, target_.threads);
  }

  void* allocate(std::size_t bytes) const override { return allocate_bytes(bytes); }
  void release(void* memory) const noexcept override { detail::release_host(memory); }
  void copy_in(void* to, const void* from, std::size_t bytes, void*) const override {
    copy_on_threads(to, from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes, void*) const override {
    copy_on_threads(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes, void*) const override { copy_on_threads(to, from, bytes); }
  void fill(void* to, unsigned char byte, std::size_t bytes, void*) const override {
    in_chunks(bytes, [&](std::size_t begin, std::size_t count) {
      std::memset(static_cast<std::byte*>(to) + begin, byte, count);
    });
  }
  void synchronize(void*) const override {}  // a launch returns when its tasks are done

  std::unique_ptr<Event> make_event() const override { return std::make_unique<CpuEvent>(); }

 private:
  // One core does not fill the memory's bandwidth. A chunk is large enough for memcpy to stream past the caches.
  void in_chunks(std::size_t bytes, const std::function<void(std::size_t begin, std::size_t count)>& work) const {
    if (bytes == 0) return;
    constexpr std::size_t kChunk = 64 << 20;
    const auto chunks = static_cast<std::int64_t>((bytes + kChunk - 1) / kChunk);
    const auto chunk = [&](std::int64_t begin, std::int64_t end) {
      const std::size_t from = static_cast<std::size_t>(begin) * kChunk;
      work(from, std::min(bytes, static_cast<std::size_t>(end) * kChunk) - from);
    };
    parallel_for(chunks, target_.threads, std::ref(chunk));  // without an allocation
  }
  void copy_on_threads(void* to, const void* from, std::size_t bytes) const {
    in_chunks(bytes, [&](std::size_t begin, std::size_t count) {
      std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin, count);
    });
  }

  codegen::Target target_;
  std::shared_ptr<KernelCache> cache_;
  std::string version_;
  Jit jit_;
};

}  // namespace

std::shared_ptr<const Backend> make_backend(const BackendOptions& options, std::shared_ptr<KernelCache> cache) {
  return std::make_shared<const CpuBackend>(options, std::move(cache));
}

}  // namespace tenon::runtime::cpu
