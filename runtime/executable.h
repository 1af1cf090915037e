// The Executable: a plan, the kernels built for each dimension class met so far, and a launch record for each exact
// binding of the symbols. Turns buffers into launches.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "runtime/backend.h"
#include "runtime/nvtx.h"
#include "runtime/replay.h"
#include "tenon/compile.h"

namespace tenon::runtime {

/// A launch for one dimension class, ready to run.
struct BuiltLaunch {
  codegen::Launch launch;  ///< its groups: the first of those that are alike (codegen/lower/alike.h)
  codegen::Source source;
  Binary binary;
  std::shared_ptr<const LoadedKernel> loaded;
};

/// The launches of `groups`, which a plan runs together, for a dimension class, but of those that write no element:
/// given by the pipeline, so that the runtime does not know how kernels are made. Called by several threads at once,
/// and of sets of groups that are alike for the first alone.
using BuildGroups = std::function<std::vector<std::shared_ptr<const BuiltLaunch>>(const std::vector<int>& groups,
                                                                                  const codegen::Specialization&)>;

/// A launch of a plan. Those of groups that are alike share what is built.
struct PlannedLaunch {
  std::vector<int> groups;  ///< of the plan, one for each member
  std::shared_ptr<const BuiltLaunch> built;
};

/// All groups for one dimension class, but those that write no element.
struct BuiltPlan {
  codegen::Specialization specialization;
  std::vector<PlannedLaunch> launches;  ///< in the plan's order
};

/// Where a kernel argument comes from.
struct PointerSource {
  enum class Kind : std::uint8_t { input, output, arena, zeroed };
  Kind kind = Kind::input;
  std::int64_t at = 0;  ///< position of the input or output, or byte offset in the arena or the zeroed memory
  bool operator==(const PointerSource&) const = default;
};

/// A function of a launch whose sizes are known.
struct PreparedFunction {
  std::int64_t grid = 0;  ///< tasks, or blocks along x
  std::vector<EncodedTensorMap> tensor_maps;
};

/// A launch whose sizes are known and whose pointers are not.
struct PreparedLaunch {
  std::size_t planned = 0;  ///< which launch of the built plan it is
  const BuiltLaunch* built = nullptr;
  PreparedFunction function, finish;
  std::vector<std::int64_t> dims;       ///< and where the blocks of a pack's members end
  std::vector<PointerSource> pointers;  ///< of the operands, then of scratch and zeroed memory
  bool early = false;                   ///< may begin before what is ahead of it in the stream has ended
};

/// An output that no kernel writes: an input returned as it is, or a value returned twice.
struct PreparedCopy {
  PointerSource from, to;
  std::int64_t bytes = 0;
};

/// An output that updates an input: a kernel writes it there, or a copy behind all kernels brings it.
struct PlacedUpdate {
  int output = 0, input = 0;  ///< of the graph
  std::int64_t bytes = 0;
  std::string copied;  ///< why it is copied; empty: it is written in place
};

/// Everything that depends on the sizes only. Outputs are those with memory of their own (ir::own_outputs).
struct LaunchRecord {
  Bindings bindings;
  std::shared_ptr<const BuiltPlan> built;
  std::vector<std::vector<std::int64_t>> input_shapes, output_shapes;
  std::vector<PreparedLaunch> launches;
  std::vector<PreparedCopy> copies;
  std::int64_t arena_bytes = 0, zeroed_bytes = 0;
  std::vector<std::vector<int>> in_place;  ///< by output: inputs whose buffer it may be (overlap.h)
  std::vector<PlacedUpdate> updates;
  std::shared_ptr<Replays> replays = std::make_shared<Replays>();
};

/// Searches better schedules for the kernels of a record on these buffers and keeps them where build_groups finds them.
using Tuner = std::function<void(const Executable::Impl&, const LaunchRecord&, std::span<const Buffer> inputs,
                                 std::span<const Buffer> outputs)>;

/// What an executable was given once: buffers for the last inputs of its plan's graph, which callers do not give.
struct Bound {
  std::vector<Buffer> buffers;
  std::vector<std::shared_ptr<const void>> memory;  ///< what keeps each buffer's data
  std::string computed;                             ///< what was computed of bound inputs, as text for people
};

/// Makes the executable for which some more inputs are bound.
using Binder = std::function<Executable(const Executable::Impl&, const Weights&, const BindOptions&)>;

/// Memory for intermediates, kept between runs. One arena for each run in flight: runs on the same stream share one,
/// since the stream orders them. A larger one replaces the idle ones of its stream, and of other streams' at most
/// kMostIdle stay. A pool may be of zeroed memory: it is 0 when it is first taken, and each run leaves it so.
class ArenaPool {
 public:
  static constexpr std::size_t kMostIdle = 8;

  explicit ArenaPool(const Backend& backend, bool zeroed = false) : backend_(backend), zeroed_(zeroed) {}
  ~ArenaPool();
  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;

  struct Arena {
    void* memory = nullptr;
    std::int64_t bytes = 0;
    void* stream = nullptr;
    bool busy = false;
  };
  /// An arena of at least `bytes`, held until given back. Null when bytes is 0.
  Arena* take(std::int64_t bytes, void* stream);
  void give_back(Arena* arena);
  /// Frees the idle ones.
  void trim();
  /// Of all arenas.
  std::int64_t bytes() const;

 private:
  void release(std::list<Arena> idle);

  const Backend& backend_;
  const bool zeroed_;
  mutable std::mutex mutex_;
  std::list<Arena> arenas_;  ///< those given back last in front of the idle ones
};

/// The arenas of an executable: for intermediates, and zeroed.
struct ArenaPools {
  explicit ArenaPools(const Backend& backend) : arenas(backend), zeroed(backend, true) {}
  ArenaPool arenas, zeroed;
};

/// The memory of one run beside its buffers, for the length of the run.
class Workspace {
 public:
  Workspace(ArenaPools& pools, const LaunchRecord& record, void* stream)
      : pools_(pools),
        arena_(pools.arenas.take(record.arena_bytes, stream)),
        zeroed_(pools.zeroed.take(record.zeroed_bytes, stream)) {}
  ~Workspace() {
    pools_.arenas.give_back(arena_);
    pools_.zeroed.give_back(zeroed_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  /// Null where the record needs none.
  void* arena() const { return arena_ == nullptr ? nullptr : arena_->memory; }
  void* zeroed() const { return zeroed_ == nullptr ? nullptr : zeroed_->memory; }

 private:
  ArenaPools& pools_;
  ArenaPool::Arena *arena_, *zeroed_;
};

}  // namespace tenon::runtime

namespace tenon {

struct Executable::Impl {
  Impl(ir::Plan plan, std::shared_ptr<const runtime::Backend> backend, runtime::BuildGroups build_groups,
       runtime::Bound bound = {});

  /// How many inputs callers give: the first ones of the plan's graph.
  std::size_t free_inputs() const { return plan.graph.inputs.size() - bound.buffers.size(); }
  /// The given inputs' shapes and those of the bound ones behind them.
  std::vector<std::vector<std::int64_t>> with_bound(std::vector<std::vector<std::int64_t>> input_shapes) const;

  /// The address of an argument: of a bound input its own, whatever the caller gives.
  void* resolve(const runtime::PointerSource& source, std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                const runtime::Workspace& workspace) const;
  /// Error(argument) unless the bound inputs have the shapes that these symbols say.
  void check_bound(const Bindings& bindings) const;
  std::int64_t bound_bytes() const;

  /// The record for these input shapes, made (and its kernels built) when it is new.
  std::shared_ptr<const runtime::LaunchRecord> record_for(std::span<const Buffer> inputs,
                                                          const Bindings& bindings) const;
  std::shared_ptr<const runtime::LaunchRecord> record_for(const Bindings& bindings) const;
  /// The same once the inputs are found to be what the graph takes; Error(argument).
  std::shared_ptr<const runtime::LaunchRecord> admit(std::span<const Buffer> inputs, const Bindings& bindings) const;
  /// Puts a run of what was admitted on the stream; Error(argument) where outputs do not fit.
  void start(std::shared_ptr<const runtime::LaunchRecord> record, std::span<const Buffer> inputs,
             std::span<const Buffer> outputs, void* stream) const;
  std::shared_ptr<const runtime::BuiltPlan> build(const codegen::Specialization& specialization) const;
  std::vector<runtime::PlannedLaunch> build_launches(const codegen::Specialization& specialization) const;
  void launch(const runtime::LaunchRecord& record, std::span<const Buffer> inputs, std::span<const Buffer> outputs,
              void* stream) const;
  void put(const runtime::LaunchRecord& record, std::span<const Buffer> inputs, std::span<const Buffer> outputs,
           const runtime::Workspace& workspace, void* stream) const;
  void launch_kernel(const runtime::PreparedLaunch& launch, std::span<const Buffer> inputs,
                     std::span<const Buffer> outputs, const runtime::Workspace& workspace, void* stream) const;

  /// The record to run once its dimension class is tuned, which is done on these buffers if it is not.
  std::shared_ptr<const runtime::LaunchRecord> tuned(const std::shared_ptr<const runtime::LaunchRecord>& record,
                                                     std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                                                     void* stream) const;
  /// Builds the kernels of a dimension class anew when they are next needed.
  void forget(const std::string& key) const;
  /// Frees what no run has in hand: records, kernels and arenas.
  void trim() const;

  ir::Plan plan;
  std::vector<std::size_t> own_outputs;  ///< positions of the graph's outputs for which a caller has memory
  std::shared_ptr<const runtime::Backend> backend;
  runtime::BuildGroups build_groups;
  runtime::Tuner tuner;                 ///< empty: schedules are not searched
  bool replay = false;                  ///< a run is recorded the first time and repeated as one call
  const runtime::Nvtx* nvtx = nullptr;  ///< is told of each run and kernel; null: nobody is
  runtime::Bound bound;
  runtime::Binder binder;  ///< empty where the graph is not known, but the plan alone

  mutable std::shared_mutex records_mutex;
  mutable std::vector<std::shared_ptr<const runtime::LaunchRecord>> records;  ///< most recent last
  mutable std::mutex build_mutex;
  mutable std::map<std::string, std::shared_ptr<const runtime::BuiltPlan>> built;  ///< by dimension class
  mutable std::list<std::string> classes;  ///< those of `built`, that which a record was last made of in front
  mutable std::mutex tune_mutex;
  mutable std::set<std::string> tuned_classes;
  mutable runtime::ArenaPools arenas;
  mutable std::atomic<int> builds{0}, compiles{0};
  mutable std::atomic<std::int64_t> last_arena_bytes{0};
};

}  // namespace tenon
