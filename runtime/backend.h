// What a target must be able to do. One implementation in each folder of runtime/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"
#include "codegen/target/target.h"
#include "runtime/cache.h"
#include "tenon/compile.h"

namespace tenon::runtime {

/// A kernel ready to launch.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  /// Blocks that the device runs at once, in whole clusters: of the kernel's function, and of its second one.
  std::int64_t resident_blocks = 0, finish_resident_blocks = 0;
};

/// A compiled kernel: what the cache keeps, and what inspection shows.
struct Binary {
  KernelCache::EntryPointer entry;
  bool compiled = false;  ///< by this call; false: taken from the cache
  KernelResources resources;
};

/// A codegen::TensorMap with its sizes filled in, and no address: a CUtensorMap.
struct alignas(128) EncodedTensorMap {
  std::array<std::byte, 128> bytes = {};
  std::size_t pointer = 0;  ///< which of the launch's pointers it is over
  std::int64_t offset = 0;  ///< bytes from there
};

/// A function of a launch with its sizes filled in.
struct FunctionCall {
  std::int64_t grid = 1;  ///< tasks, or blocks along x
  int block = 1;
  int shared_bytes = 0;
  bool early = false;     ///< may begin before the kernel ahead of it ends
  bool together = false;  ///< CUDA: its blocks wait for each other
  std::span<const EncodedTensorMap> tensor_maps = {};
};

struct LaunchCall {
  const LoadedKernel* kernel = nullptr;
  FunctionCall function;
  FunctionCall finish;              ///< the kernel's second function, if it has one (source.h)
  std::span<void* const> pointers;  ///< one for each operand, then those of scratch and zeroed memory if there is some
  std::span<const std::int64_t> dims;
};

/// A point in a stream's work, by the target's own clock: a CUDA event; on the CPU, whose work is done when a call
/// returns, a time of the host's. Before it is recorded it counts as reached.
class Event {
 public:
  virtual ~Event() = default;
  /// Behind all that is on the stream now; an earlier point is forgotten.
  virtual void record(void* stream) = 0;
  virtual void wait() const = 0;
  virtual bool reached() const = 0;
  /// What is put on `stream` from now on waits for the point.
  virtual void hold_back(void* stream) const = 0;
  /// From `begin`, an event of the same backend, to this one, for both of which it waits. Both are recorded.
  virtual double milliseconds_since(const Event& begin) const = 0;
};

/// Work that was recorded once and is repeated with one call (a CUDA graph). One call at a time.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Puts the work on `stream`.
  virtual void launch(void* stream) const = 0;
  /// Records anew. The same launches on other pointers replace the old ones in place.
  virtual void update(const std::function<void(void* stream)>& work) = 0;
};

/// Thread-safe. `stream` is the target's own stream handle (a CUstream), or null.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const codegen::Target& target() const = 0;
  /// What kernels run on, for texts and for what is kept of it; empty where they are only generated.
  virtual std::string device_name() const = 0;
  virtual codegen::Source emit(const codegen::Launch& launch) const = 0;
  /// From source to binary, through the cache. Error(compile) with the compiler's log.
  virtual Binary build(const codegen::Source& source) const = 0;
  virtual std::shared_ptr<const LoadedKernel> load(const codegen::Source& source, const Binary& binary) const = 0;
  /// PTX or assembly, for inspection.
  virtual std::string disassemble(const codegen::Source& source) const = 0;

  virtual void launch(const LaunchCall& call, void* stream) const = 0;
  /// Error(unsupported) where there are none; Error(argument) for what the device does not take.
  virtual EncodedTensorMap encode(const codegen::TensorMap& map, const Bindings& bindings) const;

  /// Memory where kernels of this target can work, 256-byte aligned. Error(out_of_memory).
  virtual void* allocate(std::size_t bytes) const = 0;
  virtual void release(void* memory) const noexcept = 0;
  virtual void copy_in(void* to, const void* from, std::size_t bytes, void* stream) const = 0;   ///< host to target
  virtual void copy_out(void* to, const void* from, std::size_t bytes, void* stream) const = 0;  ///< target to host
  virtual void copy(void* to, const void* from, std::size_t bytes, void* stream) const = 0;      ///< within the target
  virtual void fill(void* to, unsigned char byte, std::size_t bytes, void* stream) const = 0;
  virtual void synchronize(void* stream) const = 0;
  /// Waits for the work on all streams, so that what it uses can be freed.
  virtual void drain() const {}
  /// Has the caches treat what kernels asked them to keep as anything else. Waits for the stream; where nothing can be
  /// kept it does nothing.
  virtual void forget_kept(void*) const {}

  virtual std::unique_ptr<Event> make_event() const = 0;
  /// A stream that does not wait for others. It ends with the pointer: the work on it then ends by itself. Null on a
  /// target without streams.
  virtual std::shared_ptr<void> make_stream() const { return nullptr; }
  /// Which device of its kind it is.
  virtual int ordinal() const { return 0; }

  /// Keeps what `work` puts on the stream that it is given, instead of doing it. Null where the target cannot.
  virtual std::unique_ptr<Recording> record(const std::function<void(void* stream)>&) const { return nullptr; }
};

}  // namespace tenon::runtime
