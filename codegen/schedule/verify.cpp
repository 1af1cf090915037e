// What a schedule must keep to so that its kernel can be written, rule by rule: the heuristics and the tuner give no
// other, and emitters check no more. Rules of speed are none of these.
#include <algorithm>

#include "codegen/analysis/flat_tile.h"
#include "codegen/analysis/gathered_rows.h"
#include "codegen/analysis/interior.h"
#include "codegen/analysis/outer_parts.h"
#include "codegen/analysis/overlap.h"
#include "codegen/analysis/peel.h"
#include "codegen/analysis/product_bounds.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/rows_ring.h"
#include "codegen/analysis/shared_rows.h"
#include "codegen/analysis/staged_rows.h"
#include "codegen/analysis/tile_tests.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/kernel.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/limits.h"
#include "codegen/schedule/rules.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

constexpr int kMostUnrolled = 16;              // steps of a loop, vectors of a thread
constexpr int kMostParts = 65536;              // of a row
constexpr std::int64_t kMostOfTurn = 1 << 29;  // elements: beside a row of 2^30 (specialize) they are 31 bits
constexpr int kMostOfTile = 4096;              // of a CPU, in scratch memory of a thread
constexpr int kWidestColumns = 32;             // of a micro-kernel: two registers of f32

bool divides(int vector, const Dim& extent, const Symbols& symbols) {
  return is_vector(vector) && power_of_two_divisor(extent, vector, symbols) == vector;
}

Reason verify_threads(int threads) {
  if (threads < 32 || threads > kMostThreads || threads % 32 != 0) return "a block has whole warps, up to 1024 threads";
  return {};
}

// ---- Map ------------------------------------------------------------------------------------------------------------

Reason verify_tile(const MapSchedule& schedule, const Kernel& kernel) {
  const MapTile& tile = *schedule.tile;
  if (tile.axis < 0 || tile.axis + 1 >= static_cast<int>(kernel.axes.size()))
    return "a tile crosses the innermost axis";
  const Transposed transposed = transposed_along(kernel, tile.axis);
  if (transposed.empty()) return "no access lies along the tile's axis";
  if (!is_power_of_two(tile.rows) || !is_power_of_two(tile.columns) || !is_power_of_two(schedule.threads) ||
      tile.rows < kWidestVector || tile.columns < kWidestVector || tile.columns < 2 * schedule.vector)
    return "a tile has powers of two of rows, columns and threads, 16 or more";
  if (!is_vector(tile.vector)) return "a vector has 1 to 16 elements";
  const int per_row = tile.columns / schedule.vector;
  if (schedule.threads % per_row != 0 || tile.rows * per_row % schedule.threads != 0)
    return "the threads of a block do not divide its tile";
  if (schedule.unroll != 1 || schedule.spread || schedule.flat) return "a tile is neither unrolled nor flat";
  if (tile.shift && !may_shift(kernel, schedule)) return "the rows of the tile are not all aligned alike";
  if (transpose_bytes(kernel, tile) > kStaticSharedBytes) return "the tiles exceed 48 KB of shared memory";
  return {};
}

Reason verify_flat_tile(const MapSchedule& schedule, const Kernel& kernel) {
  const MapTile& tile = *schedule.tile;
  const std::vector<FlatLoad> loads = loads_across(kernel);
  if (loads.empty()) return "no load lies in another order than the domain";
  if (tile.axis != loads[0].order[0]) return "the axis of a flat tile is the one of neighbours in its first load";
  if (tile.rows < 2 || tile.rows > kMostOfTile || tile.columns < 2 || tile.columns > kMostOfTile)
    return "a flat tile has 2 to 4096 rows and columns";
  if (schedule.unroll != 1 || schedule.spread || tile.shift || tile.vector != 1)
    return "a flat tile is neither unrolled nor shifted, and its vectors are as wide as may be";
  const auto flat = flat_tile_of(kernel, schedule);
  if (!flat) return "the box of a flat tile has whole vectors, and no more than 32768 points";
  if (shared_bytes(kernel, *flat) > kStaticSharedBytes) return "the tiles exceed 48 KB of shared memory";
  return {};
}

Reason verify_gathering(const MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  if (target.sm < 80) return "there are asynchronous copies from sm_80 on";
  if (schedule.tile || schedule.flat || schedule.spread || schedule.interior || schedule.overlaps)
    return "rows in shared memory are read by plain vectors";
  if (gathered_rows(kernel).empty()) return "nothing is gathered along the innermost axis";
  if (!is_power_of_two(schedule.threads)) return "the threads of rows in shared memory are a power of two";
  if (gathered_bytes(kernel, schedule) > target.shared_memory_per_block)
    return "the rows exceed the shared memory of a block";
  return {};
}

Reason verify_cuda(const MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  if (Reason why = verify_threads(schedule.threads); !why.empty()) return why;
  if (!is_vector(schedule.vector)) return "a vector has 1 to 16 elements";
  const bool across_rows = kernel.axes.size() == 1 || schedule.flat || (schedule.tile && schedule.tile->shift);
  if (kernel.axes.empty() && schedule.vector > 1) return "a vector of one point";
  if (!across_rows && schedule.vector > 1 && !divides(schedule.vector, kernel.axes.back().extent, kernel.symbols))
    return "a vector must divide the innermost of several axes";
  if (schedule.unroll < 1 || schedule.unroll > kMostUnrolled) return "a thread has 1 to 16 vectors";
  if (schedule.spread && !may_spread(kernel, schedule))
    return "vectors that are spread fill whole blocks, and divide the outermost axis";
  if ((schedule.interior || schedule.overlaps) && (schedule.tile || schedule.unroll > 1 || schedule.spread))
    return "an interior and overlaps are of threads of one vector";
  if (schedule.strip < 1 || schedule.strip > kMostUnrolled) return "a thread has 1 to 16 rows";
  if (schedule.staged) return verify_gathering(schedule, kernel, target);
  if (schedule.strip > 1 &&
      (schedule.tile || schedule.unroll > 1 || schedule.spread || schedule.flat || kernel.axes.size() < 2))
    return "a thread that has several rows has one vector of each";
  if (schedule.interior && interior_of(kernel).empty()) return "no guard is of one axis";
  const VectorPoints points{static_cast<int>(kernel.axes.size()) - 1, schedule.vector, schedule.flat};
  if (schedule.overlaps && overlaps_of(kernel, points).empty()) return "no loads of neighbouring points overlap";
  if (!schedule.tile) return {};
  return schedule.flat ? verify_flat_tile(schedule, kernel) : verify_tile(schedule, kernel);
}

// ---- Reduce ---------------------------------------------------------------------------------------------------------

Reason verify_team(const RowTeam& team, const Target& target) {
  if (Reason why = verify_threads(team.threads); !why.empty()) return why;
  switch (team.mapping) {
    case RowMapping::thread: break;
    case RowMapping::warp:
      if (!is_power_of_two(team.lanes) || team.lanes > 32) return "the lanes of a row are a power of two, up to 32";
      break;
    case RowMapping::block:
      if (!is_power_of_two(team.cluster) || team.cluster > kMostOfCluster)
        return "a cluster has up to 8 blocks, a power of two";
      break;
    case RowMapping::column:
      if (!is_power_of_two(team.columns) || team.threads % team.columns != 0)
        return "the columns of a block are a power of two that divides its threads";
      break;
  }
  if (team.cluster != 1 && team.mapping != RowMapping::block) return "a cluster is of blocks that share a row";
  if (team.cluster > 1 && target.sm < 90) return "there are clusters from sm_90 on";
  if (team.grid < 1 || (team.grid > 1 && (team.mapping != RowMapping::block || team.cluster > 1)))
    return "blocks of a grid share a row, or those of a cluster";
  return {};
}

// Whether the row's elements have places: `vectors` of the longest row, with `team` threads.
bool fits(std::int64_t vectors, int team, const ReduceSchedule& schedule) {
  return vectors <= std::int64_t{team} * (held_elements(schedule) / schedule.vector);
}

Reason verify_kept(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target) {
  const std::int64_t length = shape_of(kernel).length;
  const bool column = schedule.team.mapping == RowMapping::column;
  if (std::holds_alternative<InBuffer>(schedule.keep)) return "a buffer is for the CPU";
  if (!std::holds_alternative<Reread>(schedule.keep)) {
    if (held_elements(schedule) % schedule.vector != 0) return "a row is held in whole vectors";
    if (!fits(column ? length : length / schedule.vector, team_size(schedule), schedule))
      return "a row must fit what holds it";
  }
  if (const auto* shared = std::get_if<InShared>(&schedule.keep)) {
    if (schedule.team.mapping != RowMapping::block) return "a block has a row in shared memory";
    if (target.sm < 80) return "there are asynchronous copies from sm_80 on";
    if (shared->shared <= 0 || shared->shared % schedule.vector != 0 || shared->shared > shared->elements)
      return "what lies in shared memory is whole vectors of the row";
    if (shared->unroll < 1 || shared->unroll > kMostUnrolled) return "a loop takes 1 to 16 steps at once";
    if (shared->moments && !find_moments(kernel)) return "no mean and squares of a row share a sweep";
    if (shared_loads(kernel, schedule).empty()) return "shared memory holds rows of whole vectors of loads alone";
    const int resident = resident_blocks(kernel, schedule, target);
    if (resident < 1) return "the row exceeds the shared memory of a block";
    if (schedule.team.grid > std::min(resident, schedule.occupancy.least) * target.multiprocessors &&
        schedule.team.grid > 1)
      return "the blocks of a row run at once";
  }
  if (schedule.team.grid > 1 && !std::holds_alternative<InShared>(schedule.keep))
    return "blocks of a grid have their row in shared memory";
  const auto* reread = std::get_if<Reread>(&schedule.keep);
  if (reread != nullptr && (reread->unroll < 1 || reread->unroll > kMostUnrolled))
    return "a loop takes 1 to 16 steps at once";
  if (reread != nullptr && reread->online && !find_online(kernel)) return "no maximum and sum of a row share a sweep";
  if (column && reread != nullptr && reread->online && (schedule.peeled || reread->moments))
    return "a maximum and its sum share the sweep of columns in whole vectors, without a mean";
  if (reread != nullptr && reread->moments && ((!column && reread->unroll == 1) || !find_moments(kernel)))
    return "no mean and squares of a row share a sweep of tiles";
  return {};
}

Reason verify_persistent(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target) {
  const PersistentBlocks& blocks = *persistent_blocks(schedule);
  const bool of_warp = schedule.team.mapping == RowMapping::warp;
  if ((schedule.team.mapping != RowMapping::block && !of_warp) || schedule.team.cluster > 1 || schedule.team.grid > 1 ||
      schedule.peeled || !std::holds_alternative<InRegisters>(schedule.keep))
    return "a row that is walked over is in the registers of a block or a warp";
  if (schedule.staged) return "runs are of blocks that have rows once";
  if (blocks.blocks < 1 || blocks.stages < 0) return "blocks and stages are counted from one and nought";
  if (of_warp && blocks.bulk) return "bulk copies are of a block's row";
  if (warp_parts_bytes(kernel, schedule) > target.shared_memory_per_block)
    return "what the warps of a block leave exceeds its shared memory";
  if (blocks.bulk && blocks.stages == 0) return "bulk copies bring rows that follow";
  if (has_ring(schedule) && !fits_ring(kernel, schedule, target))
    return "rows in shared memory are of whole vectors, copied asynchronously, and fit";
  return {};
}

Reason verify_splits(const ReduceSchedule& schedule, const Kernel& kernel) {
  if (parts_of(schedule) < 2 || parts_of(schedule) > kMostParts)
    return "a split row has two parts or more, up to 65536";
  if (finish_of(schedule) == RowMapping::column) return "a thread, a warp or a block combines the parts of a row";
  const std::int64_t turn = std::int64_t{team_size(schedule)} * schedule.vector * unroll_of(schedule);
  if (parts_of(schedule) * turn > kMostOfTurn) return "a turn of all parts is an offset of 31 bits";
  if (schedule.team.cluster > 1 || !std::holds_alternative<Reread>(schedule.keep) ||
      !may_split(rounds_of(kernel, shared_of(schedule))))
    return "only rows that one sweep reads can be split";
  return {};
}

Reason verify_vector(const ReduceSchedule& schedule, const Kernel& kernel) {
  if (!is_vector(schedule.vector)) return "a vector has 1 to 16 elements";
  if (schedule.team.mapping == RowMapping::column) {
    const std::size_t kept = shape_of(kernel).kept;
    if (kept == 0) return "columns lie along a kept axis";
    if (schedule.peeled)
      return column_reference(kernel, schedule.vector, shared_of(schedule)) == nullptr ||
                     parts_of(schedule) % schedule.vector != 0
                 ? "peeled columns are of rows of one alignment, in as many parts"
                 : "";
    return divides(schedule.vector, kernel.axes[kept - 1].extent, kernel.symbols)
               ? ""
               : "a vector must divide the innermost kept axis";
  }
  if (!schedule.peeled)
    return divides(schedule.vector, kernel.axes.back().extent, kernel.symbols)
               ? ""
               : "a vector must divide the innermost reduced axis, or be peeled off contiguous rows";
  if (schedule.vector < 2 || peel_reference(kernel) == nullptr) return "vectors are peeled off contiguous rows";
  if (team_size(schedule) < 2 * (schedule.vector - 1)) return "each end of a row is at most one element a thread";
  return {};
}

Reason verify_staged(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target) {
  const RowShape shape = shape_of(kernel);
  const RowMapping mapping = schedule.team.mapping;
  if (target.sm < 80) return "there are asynchronous copies from sm_80 on";
  if ((mapping != RowMapping::thread && mapping != RowMapping::warp) || schedule.peeled ||
      !std::holds_alternative<WholeRows>(schedule.cut))
    return "a block has whole rows in a run";
  if (shape.kept == 0 || !shape.known || shape.length == 0) return "the rows of a run are of one length";
  const auto* reread = std::get_if<Reread>(&schedule.keep);
  if (reread != nullptr && (reread->online || reread->moments)) return "sweeps over a run share nothing";
  const std::vector<StagedRun> runs = staged_runs(kernel);
  if (runs.empty()) return "nothing lies in runs";
  for (const StagedRun& run : runs)
    if (rows_of_block(schedule) * shape.length * size_of(run.dtype) % 16 != 0)
      return "the runs of all blocks are aligned to 16 bytes";
  if (staged_bytes(kernel, schedule) > shared_row_room(kernel, schedule, target, 1))
    return "the runs exceed the shared memory of a block";
  return {};
}

Reason verify_cuda(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target) {
  if (Reason why = verify_team(schedule.team, target); !why.empty()) return why;
  if (Reason why = verify_vector(schedule, kernel); !why.empty()) return why;
  if (Reason why = verify_kept(schedule, kernel, target); !why.empty()) return why;
  const bool walks = persistent_blocks(schedule) != nullptr;
  if (has_outer(kernel) != walks) return "blocks walk over the rows for the sake of outer reductions";
  if (walks) return verify_persistent(schedule, kernel, target);
  if (std::holds_alternative<Splits>(schedule.cut))
    if (Reason why = verify_splits(schedule, kernel); !why.empty()) return why;
  if (schedule.staged)
    if (Reason why = verify_staged(schedule, kernel, target); !why.empty()) return why;
  if (schedule.occupancy.most > 0 && schedule.team.mapping != RowMapping::block)
    return "blocks are held off a multiprocessor where a block has a row";
  return {};
}
// ---- CPU ------------------------------------------------------------------------------------------------------------

// Lanes, of which the processor makes as many registers as it takes.
bool is_lanes(int vector) { return is_power_of_two(vector) && vector <= 64; }

Reason verify_cpu_tile(const MapTile& tile, const Kernel& kernel) {
  if (tile.axis < 0 || tile.axis + 1 >= static_cast<int>(kernel.axes.size()))
    return "a tile crosses the innermost axis";
  const Transposed transposed = transposed_along(kernel, tile.axis);
  const auto is_guarded = [&](InstrId load) { return !kernel.instr(load).access.guards.empty(); };
  if (transposed.loads.empty() || std::any_of(transposed.loads.begin(), transposed.loads.end(), is_guarded))
    return "the loads along the tile's axis are not guarded";
  if (tile.rows < kWidestVector || tile.rows > kMostOfTile || tile.columns < kWidestVector ||
      tile.columns > kMostOfTile)
    return "a tile has 16 to 4096 rows and columns";
  return {};
}

Reason verify_cpu(const MapSchedule& schedule, const Kernel& kernel) {
  if (!is_lanes(schedule.vector)) return "a vector has 1 to 64 elements";
  if (schedule.unroll < 1 || schedule.unroll > kMostUnrolled) return "a turn has 1 to 16 vectors";
  if (schedule.grain < (schedule.tile ? 0 : 1)) return "tasks are not empty";
  if (schedule.interior && (schedule.tile || interior_of(kernel).empty()))
    return "an interior is cut from loops that have guards of one axis, and no tile";
  return schedule.tile ? verify_cpu_tile(*schedule.tile, kernel) : Reason();
}

Reason verify_cpu(const ReduceSchedule& schedule, const Kernel& kernel) {
  if (!is_lanes(schedule.vector)) return "a vector has 1 to 64 elements";
  if (schedule.grain < 1) return "tasks are not empty";
  if (!is_power_of_two(schedule.in_flight) || schedule.in_flight > kMostUnrolled) return "a turn has 1 to 16 vectors";
  if (has_outer(kernel) || persistent_blocks(schedule) != nullptr)
    return "outer reductions beside those of rows are for CUDA";
  if (holds_rows(schedule)) return "registers and shared memory hold rows on CUDA";
  const RowMapping mapping = schedule.team.mapping;
  const std::size_t kept = shape_of(kernel).kept;
  if (mapping != RowMapping::thread && mapping != RowMapping::column) return "a thread has rows, or columns";
  if (mapping == RowMapping::column && kept == 0) return "columns lie along a kept axis";
  const bool column = mapping == RowMapping::column || kept == kernel.axes.size();
  if (is_online(schedule) && (column || !shares_the_only_sweep(kernel)))
    return "no maximum and sum of a row share a sweep";
  if (has_moments(schedule)) return "a mean and squares share a sweep on CUDA";
  if (std::holds_alternative<InBuffer>(schedule.keep) && (column || !may_keep_dear_values(kernel)))
    return "a buffer is for rows that lie along the innermost axis";
  if (std::holds_alternative<Splits>(schedule.cut) &&
      (parts_of(schedule) < 2 || parts_of(schedule) > kMostParts || !may_split_on_cpu(kernel, is_online(schedule))))
    return "only rows that one sweep reads can be split";
  if (schedule.late_stores && !stores_may_be_late(kernel, schedule))
    return "elements are stored late where the last sweep stores them and nothing else";
  return {};
}

Reason verify_cpu(const ContractSchedule& schedule, const Kernel&) {
  if (schedule.loop != MainLoop::cpu) return "the main loop is a GPU's";
  if (schedule.micro_m < 1 || schedule.micro_m > kMostUnrolled) return "a micro-kernel has 1 to 16 rows";
  const int least = std::min({schedule.tile_m, schedule.tile_n, schedule.tile_k});
  if (least < kWidestVector || std::max({schedule.tile_m, schedule.tile_n, schedule.tile_k}) > kMostOfTile)
    return "a tile has 16 to 4096 rows, columns and steps";
  if (schedule.tile_n % kWidestColumns != 0) return "a tile has whole micro-kernels of columns";
  return {};
}

Reason verify_cpu(const AttendSchedule& schedule, const Kernel& kernel) {
  if (schedule.loop != MainLoop::cpu) return "the main loop is a GPU's";
  if (schedule.tile_q < 1 || schedule.tile_q > kMostOfTile || schedule.tile_kv < 1 || schedule.tile_kv > kMostOfTile)
    return "a tile has 1 to 4096 queries and keys";
  if (schedule.block_mask && tile_tests(kernel, key_masks(kernel)).empty()) return "no mask tells tiles of keys apart";
  return {};
}

bool is_of_class(const Schedule& schedule, ir::KernelClass kernel_class) {
  switch (kernel_class) {
    case ir::KernelClass::map: return std::holds_alternative<MapSchedule>(schedule);
    case ir::KernelClass::reduce: return std::holds_alternative<ReduceSchedule>(schedule);
    case ir::KernelClass::contract: return std::holds_alternative<ContractSchedule>(schedule);
    case ir::KernelClass::attend: return std::holds_alternative<AttendSchedule>(schedule);
  }
  return false;
}

}  // namespace

std::string verify(const Schedule& schedule, const Kernel& kernel, const Target& target) {
  if (!is_of_class(schedule, kernel.kernel_class)) return "the schedule is of another class of kernels";
  const auto* contract = std::get_if<ContractSchedule>(&schedule);
  if (contract != nullptr && contract->bounded && product_bounds(kernel, contract_parts(kernel)).empty())
    return "no mask of positions bounds the product";
  return std::visit(
      [&](const auto& s) {
        return target.kind == TargetKind::cpu ? verify_cpu(s, kernel) : verify_cuda(s, kernel, target);
      },
      schedule);
}

}  // namespace tenon::codegen
