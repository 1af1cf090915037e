// Rules of Attend kernels on CUDA: by warpgroups, by mma.sync, and by scalars.
#include <algorithm>

#include "codegen/analysis/box.h"
#include "codegen/analysis/draws.h"
#include "codegen/analysis/scaled_scores.h"
#include "codegen/analysis/tile_tests.h"
#include "codegen/analysis/tiling.h"
#include "codegen/kernel/uses.h"
#include "codegen/lower/parts.h"
#include "codegen/schedule/limits.h"
#include "codegen/schedule/rules.h"

namespace tenon::codegen {
namespace {

constexpr int kMostKeys = 128;  // of a tile, whose scores are in registers

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
    if (box->along_depth != (part != &parts.v || is_f8(element)))
      return "queries and keys lie along d, values along e, or of f8 along the keys";
    if (is_f8(element) && box->page) return "an operand of f8 is gathered";
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
  constexpr int kMostOfOne = 160, kMostOfTwo = 180, kMostOfThree = 128, kMostOfShared = 136, kOfOthers = 8;
  constexpr int kOfBlockMask = 16;  // that the warp which finds tiles has of each other warpgroup
  if (!target.may.wgmma) return "warpgroups multiply on sm_90a";
  const AttendParts parts = attend_parts(kernel);
  const AttendTiles tiles = warpgroup_tiles(kernel, parts, target);
  const bool f8 = is_f8(tiles.element.dtype);
  if (!tiles.element.tensor_cores) return "warpgroups multiply queries, keys and values of f16, bf16 or f8";
  if (!weights_are_exponentials(kernel, parts)) return "weights are exponentials of f32";
  const int consumers = schedule.tile_q / 64;
  if (schedule.tile_q % 64 != 0 || consumers < 1 || consumers > 3)
    return "one to three warpgroups have 64 queries each";
  if (schedule.turns && consumers < 2) return "warpgroups that take turns are several";
  if (schedule.tile_kv < 16 || schedule.tile_kv % 16 != 0 || schedule.tile_kv > kMostKeysOfTile)
    return "keys come in sixteens, up to 256";
  if (f8 && (schedule.tile_kv % 64 != 0 || schedule.parts * schedule.split_kv > 1))
    return "lines of values of f8 have 64 or 128 keys, of one block";
  if (Reason why = verify_boxes(schedule, kernel, parts, tiles.element.dtype); !why.empty()) return why;
  if (schedule.stages < 1 || schedule.stages > kMostStagesOfKeys) return "there are one to eight stages";
  if (schedule.parts < 1 || schedule.parts > kMostBlocksOfCluster) return "the keys of a tile have one to eight parts";
  if (schedule.resident < 1 || schedule.resident > 2 ||
      (schedule.resident == 2 && (consumers > 1 || schedule.block_mask)))
    return "a multiprocessor runs one block, or two of one warpgroup that test no tiles";
  if (schedule.split_kv < 1 || schedule.split_kv > kMostSplit)
    return "the keys of a tile are split among up to 64 blocks";
  if (schedule.split_kv > 1 && (schedule.parts > 1 || !target.may.split_k))
    return "blocks that split keys are in no cluster, where split_k is on";
  if (schedule.split_kv > schedule.resident * target.multiprocessors)
    return "blocks that wait for each other run at once";
  if (schedule.parts > 1 && !target.may.clusters) return "blocks that divide keys are a cluster";
  if (schedule.parts > 1 && 4 * schedule.tile_q * (wgmma_width(tiles) + 16) >
                                2 * schedule.stages * schedule.tile_kv * (tiles.depth + wgmma_width(tiles)))
    return "the sums of a tile exceed the memory of its keys and values";
  const KeyMasks masks = key_masks(kernel);
  if (schedule.block_mask && tile_tests(kernel, masks).empty()) return "no mask tells tiles of keys apart";
  if (schedule.score_boxes && (tiles.score_bytes == 0 || schedule.block_mask))
    return "boxes bring what scores read where its rows differ and begin at 16 bytes, and no tiles are tested";
  const Region open = open_region(kernel, parts, masks);
  const std::int64_t divisor = kernel.axes[static_cast<std::size_t>(parts.j)].extent.bounds(kernel.symbols).divisor;
  const int drawn = drawing(kernel, parts, open, !masks.bounds.empty() || divisor % schedule.tile_kv != 0);
  if (consumers == 3 && (loads_keys(kernel, parts, open) || drawn > 0 || score_cost(kernel, parts) > kCostlyScore))
    return "three warpgroups have no registers for a score that takes many";
  const bool computed = scaled_scores(kernel, parts, masks).value != parts.scores || !parts.key_factors.empty();
  const bool bounded = !masks.bounds.empty() && (tiles.depth > 128 || consumers == 3);
  // The producer has more of the others' registers.
  const bool lent = (consumers == 3 || schedule.block_mask) && (kernel.wide_index || has_pages(kernel, parts));
  const int beside =
      kOfOthers * (computed + !masks.complete() + (schedule.score_boxes ? 1 : 2 * loads_keys(kernel, parts, open)) +
                   bounded + !kernel.symbols.empty() + 2 * (computed && bounded && consumers == 3) + lent + drawn);
  const int registers = schedule.tile_kv / 2 + schedule.tile_kv / 4 + wgmma_width(tiles) / 2 + beside;
  const int most = schedule.resident == 2 ? kMostOfShared
                   : consumers == 3       ? kMostOfThree
                   : consumers == 2       ? kMostOfTwo
                                          : kMostOfOne;
  if (registers + (schedule.block_mask && consumers > 1 ? kOfBlockMask : 0) > most)
    return "scores, weights and sums exceed the registers";
  if (wgmma_shared_bytes(schedule, tiles, {.queries = 1, .scores = schedule.score_boxes ? 1 : 0}) >
      wgmma_shared_limit(schedule, target))
    return "the tiles exceed the shared memory of a block";
  return {};
}

}  // namespace

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

}  // namespace tenon::codegen
