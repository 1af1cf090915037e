// What a schedule must keep to so that its kernel can be written, rule by rule: the heuristics and the tuner give no
// other, and emitters check no more. Rules of speed are none of these.
#include <algorithm>

#include "codegen/analysis/box.h"
#include "codegen/analysis/draws.h"
#include "codegen/analysis/peel.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/rows_ring.h"
#include "codegen/analysis/scaled_scores.h"
#include "codegen/analysis/shared_rows.h"
#include "codegen/analysis/tile_tests.h"
#include "codegen/analysis/tiling.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/kernel.h"
#include "codegen/lower/parts.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/limits.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

using Reason = std::string;  // empty: none

constexpr int kMostThreads = 1024, kMostOfCluster = 8;
constexpr int kWidestVector = 16;              // elements
constexpr int kMostUnrolled = 16;              // steps of a loop, vectors of a thread
constexpr int kMostParts = 65536;              // of a row
constexpr std::int64_t kMostOfTurn = 1 << 29;  // elements: beside a row of 2^30 (specialize) they are 31 bits
constexpr int kMostOfTile = 4096;              // of a CPU, in scratch memory of a thread
constexpr int kWidestColumns = 32;             // of a micro-kernel: two registers of f32
constexpr int kMostSums = 128;                 // of a thread, in registers
constexpr int kMostSumsOfWarpgroups = 192;     // beside one warpgroup that asks for boxes
constexpr int kMostSumsAndTotals = 192;        // beside one warpgroup of producers
constexpr int kFewSums = 64;                   // beside two warpgroups of producers
constexpr int kMostStages = 16;                // of operands under way
constexpr int kMostKeys = 128;                 // of a tile, whose scores are in registers

bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

bool is_vector(int vector) { return is_power_of_two(vector) && vector <= kWidestVector; }

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
  if (transpose_bytes(kernel, transposed, tile.rows, tile.columns) > kStaticSharedBytes)
    return "the tiles exceed 48 KB of shared memory";
  return {};
}

Reason verify_cuda(const MapSchedule& schedule, const Kernel& kernel, const Target&) {
  if (Reason why = verify_threads(schedule.threads); !why.empty()) return why;
  if (!is_vector(schedule.vector)) return "a vector has 1 to 16 elements";
  const bool across_rows = kernel.axes.size() == 1 || schedule.flat || (schedule.tile && schedule.tile->shift);
  if (kernel.axes.empty() && schedule.vector > 1) return "a vector of one point";
  if (!across_rows && schedule.vector > 1 && !divides(schedule.vector, kernel.axes.back().extent, kernel.symbols))
    return "a vector must divide the innermost of several axes";
  if (schedule.unroll < 1 || schedule.unroll > kMostUnrolled) return "a thread has 1 to 16 vectors";
  if (schedule.spread && !may_spread(kernel, schedule))
    return "vectors that are spread fill whole blocks, and divide the outermost axis";
  return schedule.tile ? verify_tile(schedule, kernel) : Reason();
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
    if (shared_loads(kernel, schedule).empty()) return "shared memory holds rows of whole vectors of loads alone";
    if (resident_blocks(kernel, schedule, target) < 1) return "the row exceeds the shared memory of a block";
  }
  const auto* reread = std::get_if<Reread>(&schedule.keep);
  if (reread != nullptr && (reread->unroll < 1 || reread->unroll > kMostUnrolled))
    return "a loop takes 1 to 16 steps at once";
  if (reread != nullptr && reread->online && (column || !find_online(kernel)))
    return "no maximum and sum of a row share a sweep";
  return {};
}

Reason verify_persistent(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target) {
  const PersistentBlocks& blocks = *persistent_blocks(schedule);
  if (schedule.team.mapping != RowMapping::block || schedule.team.cluster > 1 || schedule.peeled ||
      !std::holds_alternative<InRegisters>(schedule.keep))
    return "a row that is walked over is in the registers of a block";
  if (blocks.blocks < 1 || blocks.stages < 0) return "blocks and stages are counted from one and nought";
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
      !may_split(rounds_of(kernel, is_online(schedule))))
    return "only rows that one sweep reads can be split";
  return {};
}

Reason verify_vector(const ReduceSchedule& schedule, const Kernel& kernel) {
  if (!is_vector(schedule.vector)) return "a vector has 1 to 16 elements";
  if (schedule.team.mapping == RowMapping::column) {
    const std::size_t kept = shape_of(kernel).kept;
    if (kept == 0) return "columns lie along a kept axis";
    if (schedule.peeled)
      return column_reference(kernel, schedule.vector) == nullptr || parts_of(schedule) % schedule.vector != 0
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

Reason verify_cuda(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target) {
  if (Reason why = verify_team(schedule.team, target); !why.empty()) return why;
  if (Reason why = verify_vector(schedule, kernel); !why.empty()) return why;
  if (Reason why = verify_kept(schedule, kernel, target); !why.empty()) return why;
  const bool walks = persistent_blocks(schedule) != nullptr;
  if (has_outer(kernel) != walks) return "blocks walk over the rows for the sake of outer reductions";
  if (walks) return verify_persistent(schedule, kernel, target);
  if (std::holds_alternative<Splits>(schedule.cut))
    if (Reason why = verify_splits(schedule, kernel); !why.empty()) return why;
  if (schedule.occupancy.most > 0 && schedule.team.mapping != RowMapping::block)
    return "blocks are held off a multiprocessor where a block has a row";
  return {};
}

// ---- Contract, Attend -----------------------------------------------------------------------------------------------

// The extents of an operand's tile: the vectors of its loads are whole.
bool holds_vectors(const TileAccess& access, int outer, int depth) {
  return (access.along_depth ? depth : outer) % access.vector == 0;
}

Reason verify_fragments(const ContractSchedule& schedule, TileElement element) {
  const int threads = 32 * schedule.warps_m * schedule.warps_n;
  if (element.tensor_cores) {
    const int step = static_cast<int>(32 / size_of(element.dtype));  // of the depth, of one fragment
    return schedule.tile_m % (16 * schedule.warps_m) != 0 || schedule.tile_n % (16 * schedule.warps_n) != 0 ||
                   schedule.tile_k % step != 0
               ? "a warp multiplies whole fragments"
               : "";
  }
  return schedule.tile_n % 16 != 0 || schedule.tile_m % (threads / 16) != 0 ? "sixteen threads share rows of the tile"
                                                                            : "";
}

// Of a main loop of warpgroups (codegen/prelude/contract_wgmma.cuh).
Reason verify_wgmma(const ContractSchedule& schedule, const Kernel& kernel, const Target& target) {
  if (!target.may.wgmma) return "warpgroups multiply on sm_90a";
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = warpgroup_element(kernel, parts, target);
  if (!element.tensor_cores || size_of(element.dtype) > 2) return "warpgroups multiply f16, bf16 and f8";
  const auto check_feed = [&](Feed feed, const OperandPart& part) {
    return feed == Feed::boxes ? why_not_boxed(kernel, part, parts.batch, element.dtype) : Reason();
  };
  if (Reason why = check_feed(schedule.feed_a, parts.a); !why.empty()) return why;
  if (Reason why = check_feed(schedule.feed_b, parts.b); !why.empty()) return why;
  if (parts.second)
    if (Reason why = check_feed(schedule.feed_b, parts.second->b); !why.empty()) return why;
  const bool by_threads = schedule.feed_a == Feed::threads || schedule.feed_b == Feed::threads;
  if (by_threads && is_f8(element.dtype)) return "operands of f8 come in boxes";
  if (schedule.producers < 1 || schedule.producers > (by_threads && schedule.consumers == 2 ? 2 : 1))
    return "one warpgroup brings operands, or two where they are threads beside two that multiply";
  const auto along_depth = [&](Feed feed, const OperandPart& part) {
    Reason why_not;
    return feed == Feed::boxes ? box_access(kernel, part, parts.batch, why_not)->along_depth
                               : columns_access(kernel, parts, part, element, target).along_depth;
  };
  if (schedule.consumers < 1 || schedule.consumers > 3) return "one to three warpgroups multiply";
  if (schedule.turns && schedule.consumers < 2) return "warpgroups that take turns are several";
  if (schedule.lead < 0 || schedule.lead >= schedule.stages)
    return "the first warpgroup is ahead by less than the stages";
  if (schedule.lead > 0 && (schedule.turns || schedule.consumers != 2 || schedule.parts > 1))
    return "of two warpgroups that share a tile one is ahead";
  const int rows = schedule.turns ? schedule.tile_m : schedule.tile_m / schedule.consumers;
  if (schedule.tile_m > 256 || rows < 64 || rows % 64 != 0 || (!schedule.turns && schedule.tile_m % rows != 0))
    return "a warpgroup has 64 rows, or a multiple";
  if (schedule.products != parts.products()) return "a tile has the columns of every product";
  if (schedule.tile_n < 32 || schedule.tile_n > 256 || schedule.tile_n % (32 * schedule.products) != 0)
    return "a tile has 32 to 256 columns, in 32s of each product";
  const int sums = rows / 64 * (schedule.tile_n / 2);
  if (schedule.block_steps < 0) return "a block of the depth has steps";
  if (schedule.block_steps > 0 ? 2 * sums > kMostSumsAndTotals || schedule.producers == 2
                               : sums > (schedule.producers == 2                ? kFewSums
                                         : by_threads || schedule.consumers > 2 ? kMostSums
                                                                                : kMostSumsOfWarpgroups))
    return "the sums of a thread exceed its registers";
  if (schedule.tile_k * size_of(element.dtype) != 128) return "a step of the depth is 128 bytes";
  if (schedule.stages < 2 || schedule.stages > kMostStages) return "there are 2 to 16 stages";
  if (schedule.cluster != 1 && schedule.cluster != 2) return "a cluster has one block or two";
  if (schedule.cluster > 1 && (by_threads || !target.may.clusters)) return "blocks of a cluster share boxes";
  if (schedule.parts < 1 || schedule.parts > kMostBlocksOfCluster) return "a tile's depth has one to eight parts";
  if (schedule.parts > 1 && (schedule.cluster > 1 || schedule.turns || !target.may.clusters))
    return "blocks of a cluster share a tile's depth, or what they read, and multiply together";
  if (schedule.parts > 1 && schedule.products > 1) return "blocks of a cluster share the depth of one product";
  if (schedule.parts > 1 &&
      4 * schedule.tile_m * schedule.tile_n > 128 * schedule.stages * (schedule.tile_m + schedule.tile_n))
    return "the sums of a tile exceed the memory of its stages";
  if (by_threads && schedule.stages < 4) return "threads bring operands four stages ahead";
  // A stage is told of when copies of the second behind it have begun; none is free before the second warpgroup begins.
  constexpr int kCopiesUnderWay = 2;
  if (by_threads && schedule.lead + kCopiesUnderWay > schedule.stages)
    return "threads copy two stages ahead of those that one warpgroup is ahead by";
  const bool b_along_depth = along_depth(schedule.feed_b, parts.b);
  if (parts.second && along_depth(schedule.feed_b, parts.second->b) != b_along_depth)
    return "the matrices of a pair lie alike in a tile";
  const int lines = b_along_depth ? 8 : 64;  // of a box: whole patterns of the swizzle
  if (schedule.tile_n % (lines * schedule.cluster * schedule.products) != 0)
    return "a tile is whole boxes of each block of the cluster";
  if (wgmma_shared_bytes(schedule) > target.shared_memory_per_block)
    return "the tiles exceed the shared memory of a block";
  return {};
}

// Of a streaming main loop (codegen/prelude/contract_stream.cuh).
Reason verify_stream(const ContractSchedule& schedule, const Kernel& kernel, const Target& target) {
  constexpr int kMostRegisters = 240, kMostRowsAhead = 32;
  constexpr int kOfArrived = 16;  // addresses are no longer held when what they point at is multiplied
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = tile_element(kernel, parts.contract, target);
  if (target.sm < 80 || !element.tensor_cores || size_of(element.dtype) != 2)
    return "matrices stream through tensor cores from sm_80 on, in f16 and bf16";
  if (schedule.warps_m != 1 || schedule.warps_n != 1) return "the warps of a block divide the depth";
  if (schedule.warps_k < 1 || schedule.warps_k > 16) return "one to sixteen warps divide the depth";
  const int wide = std::max(schedule.tile_m, schedule.tile_n), few = std::min(schedule.tile_m, schedule.tile_n);
  if (few < 8 || few % 8 != 0) return "few rows or columns come in eights";
  const StreamParts stream = stream_parts(schedule, kernel, parts, element, target);
  const TileAccess& access = stream.matrix_access;
  if (wide % (access.along_depth || access.vector == 1 ? 16 : 8 * access.vector) != 0)
    return "a warp multiplies whole fragments";
  if (schedule.tile_k < stream.chunk || schedule.tile_k % stream.chunk != 0)
    return "a warp takes the depth in whole chunks";
  const int registers = stream_registers(schedule, kernel, target);
  const int held = stream.ahead ? registers : registers - kOfArrived;
  const bool fits = 32 * schedule.warps_k * held <= target.registers_per_multiprocessor;
  if (registers > kMostRegisters || !fits || (stream.ahead && few > 8 && wide > kMostRowsAhead))
    return "what is under way exceeds the registers of a thread";
  if (schedule.tile_n % epilogue_vector(kernel, parts.n, 8) != 0) return "the columns of a tile are whole vectors";
  if (stream_shared_bytes(schedule) > target.shared_memory_per_block)
    return "the sums exceed the shared memory of a block";
  return {};
}

Reason verify_cuda(const ContractSchedule& schedule, const Kernel& kernel, const Target& target) {
  if (schedule.loop == MainLoop::cpu) return "the main loop is a CPU's";
  if (schedule.loop != MainLoop::wgmma && (schedule.products != 1 || contract_parts(kernel).second))
    return "two products share a tile of warpgroups";
  if (schedule.loop == MainLoop::stream) return verify_stream(schedule, kernel, target);
  if (schedule.streaming_loads) return "loads bypass the caches where a matrix streams";
  if (schedule.warps_k != 1) return "warps divide the depth where it streams";
  if (schedule.loop == MainLoop::wgmma) return verify_wgmma(schedule, kernel, target);
  const ContractParts parts = contract_parts(kernel);
  TileElement element = tile_element(kernel, parts.contract, target);
  if (schedule.loop == MainLoop::mma_sync && !element.tensor_cores) return "tensor cores do not take these operands";
  if (schedule.loop == MainLoop::simt && element.tensor_cores) element = {DType::f32, false};
  if (schedule.warps_m < 1 || schedule.warps_n < 1 || schedule.warps_m * schedule.warps_n > kMostThreads / 32)
    return "a block has whole warps, up to 1024 threads";
  if (schedule.tile_m < 1 || schedule.tile_n < 1 || schedule.tile_k < 1) return "a tile is not empty";
  if (Reason why = verify_fragments(schedule, element); !why.empty()) return why;
  if (schedule.tile_m * schedule.tile_n > kMostSums * 32 * schedule.warps_m * schedule.warps_n)
    return "the sums of a thread exceed its registers";
  if (schedule.stages < 2) return "one stage is filled while another is read";
  if (!is_vector(schedule.vector_a) || !is_vector(schedule.vector_b)) return "a vector has 1 to 16 elements";
  const TileAccess a = tile_access(kernel, parts.a, element, contract_lines(element), target, schedule.vector_a);
  const TileAccess b = tile_access(kernel, parts.b, element, contract_lines(element), target, schedule.vector_b);
  if (!holds_vectors(a, schedule.tile_m, schedule.tile_k) || !holds_vectors(b, schedule.tile_n, schedule.tile_k))
    return "the lines of a tile are whole vectors";
  if (shared_bytes(schedule, element, a, b) > target.shared_memory_per_block)
    return "the tiles exceed the shared memory of a block";
  return {};
}

// Queries, keys or values lie where a table says.
bool has_pages(const Kernel& kernel, const AttendParts& parts) {
  const auto is_paged = [&](const OperandPart& part) {
    Reason why;
    return paged_box_access(kernel, part, parts.batch, why)->page.has_value();
  };
  return is_paged(parts.q) || is_paged(parts.k) || is_paged(parts.v);
}

// Scores or factors load something for each key.
bool loads_keys(const Kernel& kernel, const AttendParts& parts, const Region& open) {
  const auto loads = [&](InstrId id) {
    return kernel.instr(id).kind == InstrKind::load && (kernel.instr(id).depends >> parts.j & 1) != 0;
  };
  return std::any_of(open.begin(), open.end(), loads) ||
         std::any_of(parts.factor_region.begin(), parts.factor_region.end(), loads);
}

// Registers, in eights, of random numbers: of those under way for scores, which wait for all of theirs, and for
// weights, which leave one after the other: more where they end within a tile (`limited`). So many that nothing is
// spilled.
int drawing(const Kernel& kernel, const AttendParts& parts, const Region& open, bool limited) {
  const auto is_random = [&](InstrId id) { return kernel.instr(id).kind == InstrKind::random; };
  const auto is_wide = [&](InstrId id) { return !has_narrow_blocks(kernel, kernel.instr(id)); };
  const bool by_scores = std::any_of(open.begin(), open.end(), is_random);
  const int of_scores = !by_scores ? 0 : drawn_by_fours(kernel, open, parts.j).empty() ? 8 : 5;
  if (std::none_of(parts.factor_region.begin(), parts.factor_region.end(), is_random)) return of_scores;
  const Region fours = drawn_by_fours(kernel, parts.factor_region, parts.j);
  if (fours.empty()) return of_scores + 3;
  const bool selects = std::all_of(parts.key_factors.begin(), parts.key_factors.end(),
                                   [](const Factor& factor) { return factor.op == ir::Op::where; });
  const bool wide = std::any_of(fours.begin(), fours.end(), is_wide);
  return of_scores + 5 * static_cast<int>(fours.size()) - 4 + limited + !selects + 2 * wide;
}

// Of queries, keys and values.
Reason verify_boxes(const AttendSchedule& schedule, const Kernel& kernel, const AttendParts& parts, DType element) {
  for (const OperandPart* part : {&parts.q, &parts.k, &parts.v}) {
    Reason why;
    const auto box = paged_box_access(kernel, *part, parts.batch, why);
    if (!box) return why;
    if (why = why_not_stored(kernel, *box, element); !why.empty()) return why;
    if (box->along_depth != (part != &parts.v)) return "queries and keys lie along d, values along e";
    if (box->extents.front().bounds(kernel.symbols).min < 1) return "boxes have an element";
    why = why_not_tiled(box->page, part == &parts.q ? schedule.tile_q : schedule.tile_kv);
    if (!why.empty()) return why;
  }
  return {};
}

// Of a main loop of warpgroups (codegen/prelude/attend_wgmma.cuh).
Reason verify_wgmma(const AttendSchedule& schedule, const Kernel& kernel, const Target& target) {
  constexpr int kMostKeysOfTile = 256, kMostStagesOfKeys = 8;
  // Registers: scores, weights and sums of a thread, without spills; what scores that are computed take, or sizes.
  constexpr int kMostOfOne = 160, kMostOfTwo = 180, kMostOfThree = 128, kOfOthers = 8;
  constexpr int kOfBlockMask = 16;  // that the warp which finds tiles has of each other warpgroup
  if (!target.may.wgmma) return "warpgroups multiply on sm_90a";
  const AttendParts parts = attend_parts(kernel);
  const AttendTiles tiles = attend_tiles(kernel, parts, target);
  if (!tiles.element.tensor_cores) return "warpgroups multiply queries, keys and values of f16 or bf16";
  if (!weights_are_exponentials(kernel, parts)) return "weights are exponentials of f32";
  const int consumers = schedule.tile_q / 64;
  if (schedule.tile_q % 64 != 0 || consumers < 1 || consumers > 3)
    return "one to three warpgroups have 64 queries each";
  if (schedule.turns && consumers < 2) return "warpgroups that take turns are several";
  if (schedule.tile_kv < 16 || schedule.tile_kv % 16 != 0 || schedule.tile_kv > kMostKeysOfTile)
    return "keys come in sixteens, up to 256";
  if (Reason why = verify_boxes(schedule, kernel, parts, tiles.element.dtype); !why.empty()) return why;
  if (schedule.stages < 1 || schedule.stages > kMostStagesOfKeys) return "there are one to eight stages";
  if (schedule.parts < 1 || schedule.parts > kMostBlocksOfCluster) return "the keys of a tile have one to eight parts";
  if (schedule.parts > 1 && !target.may.clusters) return "blocks that divide keys are a cluster";
  if (schedule.parts > 1 && 4 * schedule.tile_q * (wgmma_width(tiles) + 16) >
                                2 * schedule.stages * schedule.tile_kv * (tiles.depth + wgmma_width(tiles)))
    return "the sums of a tile exceed the memory of its keys and values";
  const KeyMasks masks = key_masks(kernel);
  if (schedule.block_mask && tile_tests(kernel, masks).empty()) return "no mask tells tiles of keys apart";
  const Region open = open_region(kernel, parts, masks);
  const std::int64_t divisor = kernel.axes[static_cast<std::size_t>(parts.j)].extent.bounds(kernel.symbols).divisor;
  const int drawn = drawing(kernel, parts, open, !masks.bounds.empty() || divisor % schedule.tile_kv != 0);
  if (consumers == 3 && (loads_keys(kernel, parts, open) || drawn > 0 || score_cost(kernel, parts) > kCostlyScore))
    return "three warpgroups have no registers for a score that takes many";
  const bool computed = scaled_scores(kernel, parts, masks).value != parts.scores || !parts.key_factors.empty();
  const bool bounded = !masks.bounds.empty() && (tiles.depth > 128 || consumers == 3);
  // The producer has more of the others' registers.
  const bool lent = (consumers == 3 || schedule.block_mask) && (kernel.wide_index || has_pages(kernel, parts));
  const int beside = kOfOthers * (computed + !masks.complete() + 2 * loads_keys(kernel, parts, open) + bounded +
                                  !kernel.symbols.empty() + 2 * (computed && bounded && consumers == 3) + lent + drawn);
  const int registers = schedule.tile_kv / 2 + schedule.tile_kv / 4 + wgmma_width(tiles) / 2 + beside;
  if (registers + (schedule.block_mask && consumers > 1 ? kOfBlockMask : 0) > (consumers == 3   ? kMostOfThree
                                                                               : consumers == 2 ? kMostOfTwo
                                                                                                : kMostOfOne))
    return "scores, weights and sums exceed the registers";
  if (wgmma_shared_bytes(schedule, tiles) > target.shared_memory_per_block)
    return "the tiles exceed the shared memory of a block";
  return {};
}

Reason verify_cuda(const AttendSchedule& schedule, const Kernel& kernel, const Target& target) {
  if (schedule.loop == MainLoop::cpu) return "the main loop is a CPU's";
  if (schedule.loop == MainLoop::wgmma) return verify_wgmma(schedule, kernel, target);
  const AttendTiles tiles = attend_tiles(kernel, attend_parts(kernel), target);
  const bool tensor_cores = tiles.element.tensor_cores;
  if ((schedule.loop == MainLoop::mma_sync) != tensor_cores)
    return "scores and values are multiplied by tensor cores where these take the operands, and only there";
  const int threads_of_query = tensor_cores ? 2 : 4;
  if (schedule.tile_q < 1 || schedule.tile_q * threads_of_query > kMostThreads ||
      schedule.tile_q * threads_of_query % 32 != 0)
    return "a block has whole warps, up to 1024 threads";
  if (schedule.tile_kv < 16 || schedule.tile_kv % 16 != 0 || schedule.tile_kv > kMostKeys)
    return "keys come in sixteens, up to 128";
  if (!is_vector(schedule.vector)) return "a vector has 1 to 16 elements";
  if (shared_bytes(schedule, tiles) > target.shared_memory_per_block)
    return "the tiles exceed the shared memory of a block";
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

Reason verify_cpu(const AttendSchedule& schedule, const Kernel&) {
  if (schedule.loop != MainLoop::cpu) return "the main loop is a GPU's";
  if (schedule.tile_q < 1 || schedule.tile_q > kMostOfTile || schedule.tile_kv < 1 || schedule.tile_kv > kMostOfTile)
    return "a tile has 1 to 4096 queries and keys";
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
  return std::visit(
      [&](const auto& s) {
        return target.kind == TargetKind::cpu ? verify_cpu(s, kernel) : verify_cuda(s, kernel, target);
      },
      schedule);
}

}  // namespace tenon::codegen
