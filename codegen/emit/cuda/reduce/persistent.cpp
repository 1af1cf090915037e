// Persistent blocks: each walks over many rows and accumulates the outer reductions of its own. ring.cpp has the rows
// in flight. See emitter.h.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/rows_ring.h"
#include "codegen/emit/cuda/reduce/emitter.h"
#include "codegen/emit/cuda/reduce/outer.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {

Source ReduceEmitter::emit_persistent() {
  out_.line(fmt::format("const {} member = threadIdx.x;", index_type(kernel_)));
  declare_outer(out_, rows_, walk_.chunks());
  std::vector<InstrId> of_rows, of_all;  // what changes from row to row, and what does not
  for (InstrId id : held_in(0)) (varies_by_row(id) ? of_rows : of_all).push_back(id);
  for (InstrId id : held_in(0)) declare(id);
  fill(of_all, "x");
  declare_parts();
  if (persistent_->stages > 0) begin_stages(of_rows);
  const std::string type = unsigned_index_type(kernel_), count = dim_text(rows_.count, rows_.names);
  out_.open(fmt::format("for ({} row = blockIdx.x; row < {}; row += {}) {{", type, count, persistent_->blocks));
  decode_axes(out_, kernel_, 0, rows_.kept, "row");
  for (const Held& held : held_)
    if (kernel_.instr(held.value).kind != InstrKind::load) declare(held.value);
  if (persistent_->stages > 0) {
    take_row();
  } else {
    fill(of_rows, "x");
  }
  for (std::size_t sweep = 0; sweep < rows_.rounds.sweeps.size(); ++sweep) emit_sweep(sweep);
  define(out_, rows_, rows_.rounds.after);
  emit_row_stores(out_, rows_, team_);
  if (part_turns() > 1) out_.line("turn ^= 1;");
  next_slot();
  out_.close();
  emit_outer_parts(out_, rows_, walk_);
  LaunchRule launch;
  launch.grid_x = Dim(persistent_->blocks);
  launch.block = schedule_.team.threads;
  launch.shared_bytes = static_cast<int>(ring_bytes(kernel_, schedule_));
  return finish(kernel_, out_, launch, target_, outer_finisher(rows_, target_), schedule_.occupancy.least);
}

bool ReduceEmitter::varies_by_row(InstrId id) const {
  return (kernel_.instr(id).depends & ((std::uint64_t{1} << rows_.kept) - 1)) != 0;
}

// A warp that has passed a barrier may leave its parts of the next row while others read those of this one: with a
// barrier for each of several sweeps they do that behind the next, with one barrier a row two buffers take turns.
int ReduceEmitter::part_turns() const {
  const auto sweeps = std::count_if(rows_.rounds.sweeps.begin(), rows_.rounds.sweeps.end(),
                                    [](const Sweep& sweep) { return !sweep.reduces.empty(); });
  return sweeps == 1 ? 2 : 1;
}

void ReduceEmitter::declare_parts() {
  for (const Sweep& sweep : rows_.rounds.sweeps)
    for (InstrId id : sweep.reduces)
      out_.line(fmt::format("__shared__ __align__(16) {} part{}[{}][{}];", combination(kernel_, id).type, id,
                            part_turns(), schedule_.team.threads / 32));
  if (part_turns() > 1) out_.line("int turn = 0;");
}

void ReduceEmitter::emit_collected_together(std::size_t sweep) {
  const auto& sweeps = rows_.rounds.sweeps;
  const std::vector<InstrId>& reduces = sweeps[sweep].reduces;
  if (reduces.empty()) return;
  const char* turn = part_turns() > 1 ? "turn" : "0";
  for (InstrId id : reduces)
    out_.line(fmt::format("leave_warps(part{0}[{1}], a{0}, {2});", id, turn, combination(kernel_, id).function));
  out_.line("__syncthreads();");
  const bool first = std::all_of(sweeps.begin(), sweeps.begin() + static_cast<std::ptrdiff_t>(sweep),
                                 [](const Sweep& before) { return before.reduces.empty(); });
  if (first) refill_slot();
  for (InstrId id : reduces)
    emit_result(out_, rows_, id,
                fmt::format("combine_warps<{}>(part{}[{}], {})", schedule_.team.threads / 32, id, turn,
                            combination(kernel_, id).function));
}

}  // namespace tenon::codegen::cuda
