// Persistent blocks: each walks over many rows and accumulates the outer reductions of its own. The block has one row
// at a time, or each warp has some. ring.cpp has the rows in flight. See emitter.h.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/outer_parts.h"
#include "codegen/analysis/rows_ring.h"
#include "codegen/emit/cuda/reduce/emitter.h"
#include "codegen/emit/cuda/reduce/outer.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {

Source ReduceEmitter::emit_persistent() {
  declare_member(out_, rows_, team_);
  if (team_.rows > 1)
    out_.line(
        fmt::format("const {} first = blockIdx.x * {} + {};", unsigned_index_type(kernel_), team_.rows, team_.row));
  declare_outer(out_, rows_, walk_.chunks());
  std::vector<InstrId> of_rows, of_all;  // what changes from row to row, and what does not
  for (InstrId id : held_in(0)) (varies_by_row(id) ? of_rows : of_all).push_back(id);
  for (InstrId id : held_in(0)) declare(id);
  fill(of_all, "x");
  const bool of_block = schedule_.team.mapping == RowMapping::block;
  if (of_block)
    declare_parts();
  else
    out_.line("extern __shared__ __align__(16) unsigned char shared[];");
  if (persistent_->stages > 0) begin_stages(of_rows);
  open_rows();
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
  if (of_block && part_turns() > 1) out_.line("turn ^= 1;");
  next_slot();
  out_.close();
  of_block ? emit_outer_parts(out_, rows_, walk_) : emit_outer_of_warps(out_, rows_, walk_);
  LaunchRule launch;
  launch.grid_x = Dim(persistent_->blocks);
  launch.block = schedule_.team.threads;
  launch.shared_bytes =
      static_cast<int>(std::max(ring_bytes(kernel_, schedule_), warp_parts_bytes(kernel_, schedule_)));
  return finish(kernel_, out_, launch, target_, outer_finisher(rows_, target_), schedule_.occupancy.least);
}

std::string ReduceEmitter::first_row() const { return team_.rows > 1 ? "first" : "blockIdx.x"; }

int ReduceEmitter::rows_at_once() const { return persistent_->blocks * team_.rows; }

// The lanes of a warp go on until none has a row: they meet in the collectives. One beyond the last row has that again,
// and `inside` is false.
void ReduceEmitter::open_rows() {
  const std::string type = unsigned_index_type(kernel_), count = dim_text(rows_.count, rows_.names);
  if (whole_blocks(rows_, team_)) {
    out_.open(fmt::format("for ({} row = {}; row < {}; row += {}) {{", type, first_row(), count, rows_at_once()));
  } else {
    out_.open(fmt::format("for ({0} own_row = first; own_row - threadIdx.x % 32 / {1} < {2}; own_row += {3}) {{", type,
                          team_.size, count, rows_at_once()));
    out_.line(fmt::format("const bool inside = own_row < {};", count));
    out_.line(fmt::format("const {} row = inside ? own_row : {} - 1;", type, count));
  }
  decode_axes(out_, kernel_, 0, rows_.kept, "row");
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
