// From a graph to something that runs: targets, executables and what can be seen of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/array.h"
#include "tenon/array_refs.h"
#include "tenon/buffer.h"
#include "tenon/device.h"
#include "tenon/device_array.h"
#include "tenon/graph.h"
#include "tenon/named_arrays.h"
#include "tenon/options.h"
#include "tenon/shape.h"
#include "tenon/weights.h"

namespace tenon {

/// What one kernel takes, as the compiler reported it (zeros where the target has no such notion).
struct KernelResources {
  int registers = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t stack_bytes = 0;
  std::int64_t spill_bytes = 0;
};

/// One kernel of an executable, for inspection.
struct KernelInfo {
  std::string name;
  int group = 0;             ///< of the plan; of a pack the first
  std::string kernel_class;  ///< "map", "reduce", "contract", "attend", or "pack"
  std::string plan;          ///< the group as text, or those of a pack
  std::string kernel;        ///< the kernel as text, or a pack's members
  std::string schedule;
  std::string source;             ///< CUDA C++ or LLVM assembly
  std::string ptx;                ///< CUDA only
  std::string assembly;           ///< CPU only
  std::vector<std::byte> binary;  ///< cubin or object code
  KernelResources resources;
  std::string launch;      ///< "grid (1024, 1, 1) block 256 shared 0"; CPU: "tasks 64"
  std::int64_t bytes = 0;  ///< unavoidable traffic at the given sizes
};

/// A result that updates an input, for inspection.
struct UpdateInfo {
  std::string output, input;
  std::int64_t bytes = 0;
  std::string copied;  ///< why the result is copied into the input's memory behind all kernels; empty: it is not
};

/// Counters of one executable.
struct ExecutableStats {
  int kernels = 0;               ///< of the plan, a pack as one (CUDA)
  int specializations = 0;       ///< dimension classes whose kernels are kept: the latest, at most 64
  int builds = 0;                ///< kernels generated and compiled or taken from a cache; equal ones count once
  int compiles = 0;              ///< of these, compiled: neither in memory nor on disk
  std::int64_t arena_bytes = 0;  ///< intermediates of the last run
  std::int64_t held_bytes = 0;   ///< memory held for intermediates
  std::int64_t bound_bytes = 0;  ///< of bound inputs, and what was computed of them, that runs read
};

struct BindOptions {
  bool strict = false;  ///< a name that is no input's is an Error(argument)
};

/// A compiled graph. Cheap to copy; all functions may be called from several threads at once.
class Executable {
 public:
  /// Runs on the caller's buffers, one for each input and output in the graph's order, and waits. A result that updates
  /// an input (Graph::update) has no buffer: it is left in the input's, which overlaps with no other. Symbols take
  /// their values from the input shapes. A dimension class that was not met before is compiled first.
  /// Error(argument) when buffers do not fit; launch, out_of_memory, device_lost from the device.
  void run(std::span<const Buffer> inputs, std::span<const Buffer> outputs, const Bindings& bindings = {}) const;

  /// The same without waiting: the work is put on `stream` (a CUstream; null is the default stream). On the CPU this
  /// returns when done.
  void run_async(std::span<const Buffer> inputs, std::span<const Buffer> outputs, void* stream,
                 const Bindings& bindings = {}) const;

  /// Host arrays in, host arrays out: `run({x, y})`, or of a vector. The CPU target works on them where they lie; to
  /// and from a device they are copied. Results have memory of their own, which is new each time: a program that runs
  /// again and again gives it back with the next function. What the graph updates are copies of inputs, so that all
  /// results are returned and no argument changes. Error(argument) as for buffers.
  std::vector<Array> operator()(const ArrayRefs& inputs, const Bindings& bindings = {}) const;

  /// The same into `outputs`, which becomes one array for each output. What has the dtype and shape of its output keeps
  /// its memory and is written there; of the others memory that suffices is used again. The CPU target takes for an
  /// output an input's own array where an update in place is allowed (Buffer), and for what the graph updates. After an
  /// error `outputs` may hold anything.
  void run(const ArrayRefs& inputs, std::vector<Array>& outputs, const Bindings& bindings = {}) const;

  /// Arrays of the executable's device in and out; nothing is copied. `outputs` becomes one array for each output with
  /// memory of its own: what has its dtype and shape is written where it lies, and may be an input where an update in
  /// place is allowed (Buffer); of the others memory that suffices is used again. What the graph updates is left in the
  /// inputs. Waits. Error(argument) as for buffers, and for arrays of another device.
  void run(const DeviceArrayRefs& inputs, std::vector<DeviceArray>& outputs, const Bindings& bindings = {}) const;
  std::vector<DeviceArray> operator()(const DeviceArrayRefs& inputs, const Bindings& bindings = {}) const;
  /// The same without waiting.
  void run_async(const DeviceArrayRefs& inputs, std::vector<DeviceArray>& outputs, const Stream& stream,
                 const Bindings& bindings = {}) const;
  /// On buffers, without waiting.
  void run_async(std::span<const Buffer> inputs, std::span<const Buffer> outputs, const Stream& stream,
                 const Bindings& bindings = {}) const;

  /// Both by name: `run({{"x", x}, {"w", w}})["y"]`, in any order, or of a vector of NamedArray. Error(argument) for a
  /// name that no input has, one that stands twice, and an input that is left out.
  template <std::size_t N>
  NamedResults operator()(const NamedArray (&inputs)[N], const Bindings& bindings = {}) const {
    return run_named(inputs, bindings);
  }
  template <NamedArrayRange Range>
  NamedResults operator()(const Range& inputs, const Bindings& bindings = {}) const {
    return run_named(inputs, bindings);
  }
  /// The same into `results`, whose memory is used again as that of `outputs` above.
  template <std::size_t N>
  void run(const NamedArray (&inputs)[N], NamedResults& results, const Bindings& bindings = {}) const {
    run_named(inputs, results, bindings);
  }
  template <NamedArrayRange Range>
  void run(const Range& inputs, NamedResults& results, const Bindings& bindings = {}) const {
    run_named(inputs, results, bindings);
  }

  /// This with some inputs given once, by name: calls of what is returned take the other inputs, in their order. What
  /// depends on bound inputs alone is computed now where that saves work (`explain` says what), unless
  /// Options::disable has "hoist". A CPU reads bound arrays where they lie, if they are aligned as Buffer asks for, and
  /// the result keeps them; else they are copied to the target once. An input of the name h_0_weight takes the array
  /// h.0.weight too: any character that a name in a graph cannot have may stand for '_'. Other names are ignored. It
  /// may be repeated, for the inputs that are left. Error(argument) when no name is an input's (with `strict`: when one
  /// is not), for another dtype or shape, and for an input that the graph updates.
  Executable bind(const Weights& weights, const BindOptions& options = {}) const;

  /// Frees what no run has in hand: the memory of intermediates, recordings, and the kernels of all dimension classes.
  /// Waits for the device. The next run takes memory again, and its kernels from the kernel cache. Without this call
  /// an executable keeps the largest arena of each of the last few streams (ExecutableStats::held_bytes), and the
  /// kernels of the last 64 classes and sizes.
  void trim() const;

  /// Compiles for these sizes now rather than at the first run.
  void prepare(const Bindings& bindings) const;

  /// The shapes of the outputs that `run` takes buffers for, at these input shapes.
  std::vector<std::vector<std::int64_t>> output_shapes(const std::vector<std::vector<std::int64_t>>& input_shapes,
                                                       const Bindings& bindings = {}) const;

  /// Every update of an input (Graph::update) at these sizes: whether a kernel writes it in place, or why not.
  std::vector<UpdateInfo> updates(const Bindings& bindings = {}) const;

  /// Every kernel as generated for these sizes, in launch order.
  std::vector<KernelInfo> kernels(const Bindings& bindings = {}) const;

  std::string plan() const;     ///< the plan as text
  std::string explain() const;  ///< why operators were not fused, and what `bind` computed
  std::string target() const;   ///< "sm_90a", "cpu"
  ExecutableStats stats() const;

  struct Impl;
  explicit Executable(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  NamedResults run_named(std::span<const NamedArray> inputs, const Bindings& bindings) const;
  void run_named(std::span<const NamedArray> inputs, NamedResults& results, const Bindings& bindings) const;

  std::shared_ptr<const Impl> impl_;
};

/// Compiles `graph` for "cpu", "cuda", "cuda:1" (the GPU of that number), or "auto" (a GPU where there is one). The
/// plan is made now, kernels when the sizes are known (at once for a graph without symbols). Error(no_device) when the
/// target is not there.
Executable compile(const Graph& graph, const std::string& target = "auto", const Options& options = default_options());
/// The same for a device that is open, with its options.
Executable compile(const Graph& graph, const Device& device);

}  // namespace tenon
