// Writes one Reduce kernel whose rows are shared by the threads of a team: reduce.cpp has the sweeps, reduce_walk.cpp
// the blocks that walk over many rows, reduce_ahead.cpp what they load of the next ones, reduce_held.cpp what is kept
// of a row from one sweep to the next.
#pragma once

#include <string>
#include <vector>

#include "codegen/analysis/held.h"
#include "codegen/analysis/peel.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/reduce/team.h"
#include "codegen/emit/cuda/reduce/walk.h"

namespace tenon::codegen::cuda {

class ReduceEmitter {
 public:
  ReduceEmitter(const Kernel& kernel, const Target& target);
  Source emit();

 private:
  // The compiler rather spills for a further block than it uses what peeled rows take.

  // ---- sweeps (reduce.cpp) ----

  Points points_of(const Sweep& sweep, const std::vector<InstrId>& held) const;
  // The same for the edge.
  static Points at_edge(Points points);
  void emit_sweep(std::size_t number);
  void emit_elements(std::size_t number);
  // The sums of a sweep that are cut in blocks, and what there is of them in t<id>, of an online one by shift at<id>.
  std::vector<InstrId> blocked_sums(const Sweep& sweep) const;
  void declare_blocks(const Sweep& sweep);
  void end_block(const Sweep& sweep);
  void add_blocks(const std::vector<InstrId>& sums);
  // The row's result, or this part's share of it in scratch.
  void emit_collected(InstrId id, std::size_t slot);
  // The sum so far with the shift of the maximum so far, and the elements just read, in a scope where that maximum has
  // the maximum's name. `again`: in a loop over them of its own.
  void emit_online_points(const Online& online, const Points& first, bool again);
  void emit_online_result(const Online& online);

  // ---- many rows, one after the other (reduce_walk.cpp) ----

  // The block's rows, one after the other.
  Source emit_walk();
  bool varies_by_row(InstrId id) const;
  // How many buffers the warps' parts of a row's reductions have: "part<id>[turn]".
  int part_turns() const;
  void declare_parts();
  // The row's results, behind one barrier.
  void emit_collected_together(std::size_t sweep);

  // ---- rows under way (reduce_ahead.cpp) ----

  // In front of the loop over rows, the first rows: these loads, and what there is once for each row.
  void begin_ahead(const std::vector<InstrId>& loads);
  // The row's elements in x<id>, and the next row that has no place yet on its way.
  void take_row();
  // What is loaded of row number `row`, which is there, into next<id>.
  void emit_waiting(const std::string& row);
  // Whether next<id> has the words of vector loads, rather than elements that were loaded one by one.
  bool waits_in_words(InstrId id) const;
  std::string waiting_type(InstrId id) const;
  std::string waiting_load(InstrId id, int vector, int width) const;
  // Row number `row`, if there is one, into slot number `slot` of the ring.
  void emit_row_copy(const std::string& row, const std::string& slot);
  void emit_bulk_copies(const std::string& slot);
  // Behind the first barrier of a row, where all have read its slot.
  void refill_slot();
  void next_slot();

  // ---- elements in registers, and in shared memory (reduce_held.cpp) ----

  std::vector<InstrId> plain_loads(const std::vector<InstrId>& instrs) const;
  // Of a persistent row, what is there when sweep `number` begins: to the first, all that it loads.
  std::vector<InstrId> held_in(std::size_t number) const;
  // What a persistent row holds, and the loads among it.
  void emit_held();
  // "pack<bf16, 1> e0;": what is loaded of the edge is there from the start.
  void emit_edge_loads();
  // "pack<bf16, 8> x0[4];", and "pack<bf16, 1> e0;" of what is computed at the edge.
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
  // The row's elements that go to shared memory, on their way.
  void copy_row();
  void emit_copies(const char* function, const std::vector<InstrId>& loads, const std::string& place);
  void emit_shared_points(Points points);

  const Kernel& kernel_;
  const Target& target_;
  Rows rows_;
  const ReduceSchedule& schedule_;
  const PersistentBlocks* persistent_ = persistent_blocks(schedule_);  // null where blocks have no fixed number
  Team team_;
  const Access* peeled_ =
      schedule_.peeled ? peel_reference(kernel_) : nullptr;  // where vectors are aligned in each row
  std::vector<Held> held_;
  std::vector<InstrId> shared_;            // held loads whose first vectors are in shared memory
  std::vector<InstrId> edges_;             // loads of the edge, in e<id>
  std::vector<InstrId> waiting_, copied_;  // loads of rows under way: in registers, and in the ring
  Lanes lanes_;
  CacheHints cache_;
  Writer out_{1};
  Walk walk_{out_, rows_, team_, peeled_};
};

}  // namespace tenon::codegen::cuda
