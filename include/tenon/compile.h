// From a graph to something that runs: options, targets, buffers, executables and what can be seen of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tenon/array.h"
#include "tenon/array_refs.h"
#include "tenon/dtype.h"
#include "tenon/graph.h"
#include "tenon/named_arrays.h"
#include "tenon/shape.h"
#include "tenon/weights.h"

namespace tenon {

/// Every switch of Tenon. Plain data: `default_options()` fills it from the environment, and nothing else reads the
/// environment.
struct Options {
  bool fuse = true;               ///< false: one kernel for each operator, to compare
  std::set<std::string> disable;  ///< what is switched off (TENON_DISABLE): names that `tenon switches` lists. Another
                                  ///< name is an Error(argument) when a graph is compiled, here and in `print`
  std::set<std::string> print;    ///< levels printed to stderr while compiling (TENON_PRINT): graph, plan, schedule,
                                  ///< kernel, source
  Bindings typical;               ///< typical symbol values, for the planner's estimates
  double max_live_bytes = 0;      ///< of intermediates alive at once at the typical sizes, 0: no limit. Kernels are not
                                  ///< merged beyond it; a graph that does not fit is an Error(resource)

  bool cache = true;      ///< keep compiled kernels on disk, and the plans of graphs of many operators
  std::string cache_dir;  ///< TENON_CACHE_DIR; empty: $XDG_CACHE_HOME/tenon or ~/.cache/tenon
  std::uint64_t cache_bytes = std::uint64_t{1} << 30;  ///< TENON_CACHE_BYTES

  bool replay = false;  ///< runs of several kernels are recorded as a CUDA graph and repeated with one call
                        ///< (TENON_REPLAY); worth it for small kernels and buffers that stay where they are

  bool tune = false;  ///< the first run at new sizes tries several schedules for each kernel on the caller's buffers,
                      ///< checks and times them, and keeps the fastest in the disk cache (TENON_TUNE). Once kept it is
                      ///< used with and without this option, unless `disable` has "tuned"

  std::string nvtx_tool;  ///< NVTX_INJECTION64_PATH, which NVIDIA's profilers set: the library of the tool that is told
                          ///< of each run and kernel (an NVTX range each), unless `disable` has "nvtx"; empty: no tool

  std::string nvrtc_path;  ///< TENON_NVRTC_PATH: libnvrtc, or its folder; empty: search
  int device = 0;          ///< CUDA ordinal
  int threads = 0;         ///< CPU threads; 0: as many as the process may use (TENON_THREADS)
};

/// The options that the environment asks for.
Options default_options();

/// One variable that default_options() reads.
struct EnvironmentVariable {
  std::string name, value, doc;  ///< value is empty when unset
};
std::vector<EnvironmentVariable> environment();

/// A caller's array: dense, row-major, of the graph's dtype. Host memory for the CPU target, device memory of the
/// executable's device for CUDA; 16-byte aligned. Outputs overlap neither with inputs nor with each other
/// (Error(argument) otherwise), but for updates in place: an output may have exactly the buffer of an input of its
/// dtype and shape if the one kernel that writes it is elementwise (class map, without a tile), computes each element
/// from that element of the input, takes no other one, and nothing reads the input beside or behind this kernel; nor,
/// where the dtype is not real, does another result of the kernel. Which kernel that is, the plan says: what fits one
/// size or target need not fit another. Inputs may overlap with each other.
struct Buffer {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};

/// The array's own bytes as a buffer, for a run on the CPU target: good until its `bytes` are given another size or it
/// ends. Of a constant array for an input alone. Error(argument) when it has not as many bytes as its shape says.
Buffer buffer_of(Array& array);
Buffer buffer_of(const Array& array);
Buffer buffer_of(const Array&& array) = delete;  // which ends before the run
/// The same of each.
std::vector<Buffer> buffers_of(std::vector<Array>& arrays);
std::vector<Buffer> buffers_of(const std::vector<Array>& arrays);
std::vector<Buffer> buffers_of(const std::vector<Array>&& arrays) = delete;

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

/// Compiles `graph` for "cpu", "cuda", or "auto" (a GPU where there is one). The plan is made now, kernels when the
/// sizes are known (at once for a graph without symbols). Error(no_device) when the target is not there.
Executable compile(const Graph& graph, const std::string& target = "auto", const Options& options = default_options());

}  // namespace tenon
