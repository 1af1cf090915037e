// Writes one Reduce kernel whose rows are shared by the threads of a team. reduce.cpp has the sweeps, shared_sweep.cpp
// what shares one with a reduction that it depends on, persistent.cpp the blocks that walk over many rows, ring.cpp the
// rows that these have in flight, held.cpp what a row keeps from one sweep to the next, staged.cpp the runs of short
// rows.
#pragma once

#include <string>
#include <vector>

#include "codegen/analysis/held.h"
#include "codegen/analysis/peel.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/staged_rows.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/reduce/team.h"
#include "codegen/emit/cuda/reduce/walk.h"

namespace tenon::codegen::cuda {

class ReduceEmitter {
 public:
  /// `kernel` is `whole`, with_staged_rows where the schedule stages them.
  ReduceEmitter(const Kernel& kernel, const Kernel& whole, const Target& target);
  Source emit();

 private:
  // ---- sweeps (reduce.cpp) ----

  Points points_of(const Sweep& sweep, const std::vector<InstrId>& held) const;
  // The same for the edge.
  static Points at_edge(Points points);
  void emit_sweep(std::size_t number);
  void emit_elements(std::size_t number);
  // The sums of a sweep that are cut in blocks (long_sums.h). t<id> is the sum of the blocks so far; where the sum is
  // online, at<id> is the shift that t<id> has.
  std::vector<InstrId> blocked_sums(const Sweep& sweep) const;
  std::vector<InstrId> blocked_reduces(const Sweep& sweep) const;  // without the online one
  void declare_blocks(const Sweep& sweep);
  void end_block(const Sweep& sweep);
  void add_blocks(const std::vector<InstrId>& sums);
  // The row's result, or this part's share of it in scratch.
  void emit_collected(InstrId id, std::size_t slot);
  // This part's `value`, in scratch.
  void save_part(std::size_t slot, const std::string& type, const std::string& value);

  // ---- reductions that share a sweep (shared_sweep.cpp) ----

  // Rescales the sum so far to the maximum so far, then adds the elements just read. In this scope the maximum so far
  // has the name of the maximum. `kept`: what the first run has saved. `again`: a loop of its own goes over the
  // elements.
  void emit_online_points(const Online& online, const Points& first, const std::vector<InstrId>& kept, bool again);
  void emit_online_result(const Sweep& sweep);
  // Moments: a<sum> and a<squares> are a tile's own, n<squares> its number of elements; t<sum> and t<squares>, of x and
  // of x², are those of all tiles so far, in double.
  void declare_moments(const Moments& moments);
  void count_points(const Moments& moments);
  // The tile's mean has the name of the mean, while a loop goes over the elements again. Of a row in shared memory all
  // that a thread has is one tile. `kept`: what the first loop has saved.
  void emit_tile_moments(const Moments& moments, const Points& first, const std::vector<InstrId>& kept);
  void emit_edge_moments(const Moments& moments);
  void add_tile(const Moments& moments);
  void emit_moments_result(const Sweep& sweep);

  // ---- persistent blocks (persistent.cpp) ----

  Source emit_persistent();
  void open_rows();
  std::string first_row() const;  // of this thread
  int rows_at_once() const;       // of all blocks
  bool varies_by_row(InstrId id) const;
  // Buffers for the warps' parts of a row's reductions: "part<id>[turn]".
  int part_turns() const;
  void declare_parts();
  // The row's results. All reductions of the sweep share one barrier.
  void emit_collected_together(std::size_t sweep);

  // ---- rows in flight (ring.cpp) ----

  // Starts the loads of the first rows, in front of the loop over rows: `loads`, and the loads of one element a row.
  void begin_stages(const std::vector<InstrId>& loads);
  // Moves the row's elements to x<id>, and starts the loads of the next row that has a free stage.
  void take_row();
  // Loads row number `row`, which exists, into next<id>.
  void emit_waiting(const std::string& row);
  // Whether next<id> has the words of vector loads; otherwise it has elements that were loaded one by one.
  bool waits_in_words(InstrId id) const;
  std::string waiting_type(InstrId id) const;
  std::string waiting_load(InstrId id, int vector, int width) const;
  // Copies row number `row`, if there is one, to slot number `slot` of the ring.
  void emit_row_copy(const std::string& row, const std::string& slot);
  void emit_bulk_copies(const std::string& slot);
  // Behind the first barrier of a row: all threads have read its slot.
  void refill_slot();
  void next_slot();

  // ---- elements in registers and in shared memory (held.cpp) ----

  std::vector<InstrId> plain_loads(const std::vector<InstrId>& instrs) const;
  // The values of a held row that are there when sweep `number` begins. The first sweep has all that it loads.
  std::vector<InstrId> held_in(std::size_t number) const;
  // Declares what a held row keeps, and fills the loads among it.
  void emit_held();
  // "pack<bf16, 1> e0;": loads of the edge are made at the start.
  void emit_edge_loads();
  // "pack<bf16, 8> x0[4];", and "pack<bf16, 1> e0;" where the value is computed at the edge too.
  void declare(InstrId id, const std::string& name = "x");
  // Declares vectors of these loads and fills them.
  void emit_loads(const std::vector<InstrId>& loads);
  // Fills <name><id> with these loads; `waiting`: whose vectors are of waiting_type.
  void fill(const std::vector<InstrId>& loads, const std::string& name, bool waiting = false);
  using BytesOf = std::int64_t (*)(const Kernel&, const ReduceSchedule&, InstrId);
  // "bf16* s0 = …;": where this thread's vectors of each load begin in dynamic shared memory, `bytes` of it.
  void declare_shared(const std::vector<InstrId>& loads, BytesOf bytes);
  std::string shared_place() const;  // of chunk c: a multiple of this many elements
  std::string ring_place(const std::string& slot) const;
  // The row's elements that go to shared memory, on their way; the first sweep over them waits for each part.
  void copy_row();
  void emit_copies(const char* function, const std::vector<InstrId>& loads, const std::string& place);
  // `counted`: n<squares> counts the elements.
  void emit_shared_points(Points points, const Moments* counted = nullptr);

  // ---- rows as runs in shared memory (staged.cpp) ----

  std::int64_t elements_of_block() const;
  std::string run_in_memory(int operand) const;
  // Brings the block's rows and waits for them; "row_in0" points to the thread's own.
  void bring_rows();
  // Stores those that were written, when all threads have.
  void take_rows();

  const Kernel& kernel_;
  const Kernel& whole_;  // as it was lowered
  const Target& target_;
  Rows rows_;
  const ReduceSchedule& schedule_;
  const PersistentBlocks* persistent_ = persistent_blocks(schedule_);  // null where blocks have no fixed number
  Team team_;
  const Access* peeled_ =
      schedule_.peeled ? peel_reference(kernel_) : nullptr;  // where vectors are aligned in each row
  std::vector<Held> held_;
  std::vector<InstrId> shared_;  // held loads whose first vectors are in shared memory
  bool copies_arrived_ = false;  // a sweep that was written has waited for them
  std::vector<InstrId> edges_;   // loads of the edge, in e<id>
  std::vector<StagedRun> runs_;
  std::vector<InstrId> waiting_, copied_;  // loads of rows in flight: in registers, and in the ring
  Lanes lanes_;
  CacheHints cache_;
  Writer out_{1};
  Walk walk_{out_, rows_, team_, peeled_};
};

}  // namespace tenon::codegen::cuda
