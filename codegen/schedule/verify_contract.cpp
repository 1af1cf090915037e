// Rules of Contract kernels on CUDA, main loop by main loop.
#include <algorithm>

#include "codegen/analysis/box.h"
#include "codegen/analysis/tiling.h"
#include "codegen/lower/parts.h"
#include "codegen/schedule/limits.h"
#include "codegen/schedule/rules.h"

namespace tenon::codegen {
namespace {

constexpr int kMostSums = 128;              // of a thread, in registers
constexpr int kMostSumsOfParts = 32;        // of f32: three of each
constexpr int kMostSumsOfWarpgroups = 192;  // beside one warpgroup that asks for boxes
constexpr int kMostSumsAndTotals = 192;     // beside one warpgroup of producers, or one that multiplies alone
constexpr int kMostStages = 16;             // of operands under way

// The extents of an operand's tile: the vectors of its loads are whole.
bool holds_vectors(const TileAccess& access, int outer, int depth) {
  return (access.along_depth ? depth : outer) % access.vector == 0;
}

Reason verify_fragments(const ContractSchedule& schedule, TileElement element) {
  const int threads = 32 * schedule.warps_m * schedule.warps_n;
  if (schedule.loop == MainLoop::mma_3xtf32)
    return schedule.tile_m % (16 * schedule.warps_m) != 0 || schedule.tile_n % (8 * schedule.warps_n) != 0 ||
                   schedule.tile_k % (8 * schedule.warps_k) != 0
               ? "a warp multiplies whole fragments"
               : "";
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
  if (schedule.lead > 0 && (schedule.turns || schedule.consumers != 2 || schedule.parts * schedule.split_k > 1))
    return "of two warpgroups that share a tile one is ahead";
  const int rows = schedule.turns ? schedule.tile_m : schedule.tile_m / schedule.consumers;
  if (schedule.tile_m > 256 || rows < 64 || rows % 64 != 0 || (!schedule.turns && schedule.tile_m % rows != 0))
    return "a warpgroup has 64 rows, or a multiple";
  if (schedule.products != parts.products()) return "a tile has the columns of every product";
  if (schedule.tile_n < 32 || schedule.tile_n > 256 || schedule.tile_n % (32 * schedule.products) != 0)
    return "a tile has 32 to 256 columns, in 32s of each product";
  const int sums = rows / 64 * (schedule.tile_n / 2);
  if (schedule.block_steps < 0) return "a block of the depth has steps";
  const bool beside_threads = by_threads && schedule.consumers > 1;
  if (schedule.block_steps > 0
          ? 2 * sums > (schedule.consumers > 2 ? kSumsBesideTwo
                        : beside_threads       ? kMostSums
                                               : kMostSumsAndTotals) ||
                schedule.producers == 2
          : sums > (schedule.producers == 2 || (by_threads && schedule.consumers > 2) ? kSumsBesideTwo
                    : by_threads || schedule.consumers > 2                            ? kMostSums
                                                                                      : kMostSumsOfWarpgroups))
    return "the sums of a thread exceed its registers";
  if (schedule.tile_k * size_of(element.dtype) != 128) return "a step of the depth is 128 bytes";
  if (schedule.stages < 2 || schedule.stages > kMostStages) return "there are 2 to 16 stages";
  if (schedule.cluster != 1 && schedule.cluster != 2) return "a cluster has one block or two";
  if (schedule.cluster > 1 && (by_threads || !target.may.clusters)) return "blocks of a cluster share boxes";
  if (schedule.parts < 1 || schedule.parts > kMostBlocksOfCluster) return "a tile's depth has one to eight parts";
  if (schedule.parts > 1 && (schedule.cluster > 1 || schedule.turns || !target.may.clusters))
    return "blocks of a cluster share a tile's depth, or what they read, and multiply together";
  if (schedule.split_k < 1 || schedule.split_k > kMostSplit) return "a tile's depth is split among up to 64 blocks";
  if (schedule.split_k > 1 && (schedule.parts > 1 || schedule.cluster > 1 || schedule.turns || schedule.bounded))
    return "blocks that split a tile's depth are in no cluster, and multiply together, to a depth that all tiles have";
  if (schedule.split_k > 1 && !target.may.split_k) return "split_k is switched off";
  if (schedule.split_k > target.multiprocessors) return "blocks that wait for each other run at once";
  if (schedule.box_results) {
    Reason why_not;
    if (!target.may.box_results) return "box_results is switched off";
    if (schedule.parts * schedule.split_k > 1)
      return "sums of parts of the depth leave as their threads have added them";
    if (!result_box(kernel, parts, why_not)) return why_not;
  }
  if (schedule.parts * schedule.split_k > 1 && schedule.products > 1) return "blocks share the depth of one product";
  if (schedule.parts > 1 &&
      4 * schedule.tile_m * schedule.tile_n > 128 * schedule.stages * (schedule.tile_m + schedule.tile_n))
    return "the sums of a tile exceed the memory of its stages";
  if (by_threads && schedule.stages < 4) return "threads bring operands four stages ahead";
  // A stage is told of when copies of the second behind it have begun; none is free before the second warpgroup begins.
  constexpr int kCopiesUnderWay = 2;
  if (by_threads && schedule.lead + kCopiesUnderWay > schedule.stages)
    return "threads copy two stages ahead of those that one warpgroup is ahead by";
  // One that multiplies may still read the last stage of its tile when the next one has let go of those behind it: of a
  // stage's phases each waits for the one that it saw before, which is another's where their number is odd.
  if (schedule.producers == 2 && schedule.turns && schedule.stages % 2 != 0)
    return "two warpgroups bring operands into as many stages each where those that multiply take turns";
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

}  // namespace

Reason verify_cuda(const ContractSchedule& schedule, const Kernel& kernel, const Target& target) {
  if (schedule.loop == MainLoop::cpu) return "the main loop is a CPU's";
  if (schedule.loop != MainLoop::wgmma && (schedule.products != 1 || contract_parts(kernel).second))
    return "two products share a tile of warpgroups";
  if (schedule.bounded && schedule.loop == MainLoop::stream) return "where a matrix streams nobody looks at bounds";
  if (schedule.loop == MainLoop::stream) return verify_stream(schedule, kernel, target);
  if (schedule.streaming_loads) return "loads bypass the caches where a matrix streams";
  if (schedule.warps_k != 1 && schedule.loop != MainLoop::simt && schedule.loop != MainLoop::mma_3xtf32)
    return "warps divide the depth where it streams, and of f32";
  if (schedule.loop == MainLoop::wgmma) return verify_wgmma(schedule, kernel, target);
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = loop_element(schedule, kernel, parts.contract, target);
  if (schedule.loop == MainLoop::mma_sync && !element.tensor_cores) return "tensor cores do not take these operands";
  const bool in_parts = schedule.loop == MainLoop::mma_3xtf32;
  if (in_parts && (element.dtype != DType::f32 || !may_split_f32(target)))
    return "tensor cores take f32 in parts from sm_80 on";
  if (schedule.warps_m < 1 || schedule.warps_n < 1 || schedule.warps_k < 1 ||
      schedule.warps_m * schedule.warps_n * schedule.warps_k > kMostThreads / 32)
    return "a block has whole warps, up to 1024 threads";
  if (schedule.tile_m < 1 || schedule.tile_n < 1 || schedule.tile_k < 1) return "a tile is not empty";
  if (schedule.tile_k % schedule.warps_k != 0) return "groups of warps divide a tile's depth";
  if (Reason why = verify_fragments(schedule, element); !why.empty()) return why;
  if (schedule.tile_m * schedule.tile_n >
      (in_parts ? kMostSumsOfParts : kMostSums) * 32 * schedule.warps_m * schedule.warps_n)
    return "the sums of a thread exceed its registers";
  if (schedule.stages < 2) return "one stage is filled while another is read";
  if (!is_vector(schedule.vector_a) || !is_vector(schedule.vector_b)) return "a vector has 1 to 16 elements";
  const Lines lines = loop_lines(schedule, element);
  const TileAccess a = tile_access(kernel, parts.a, element, lines, target, schedule.vector_a);
  const TileAccess b = tile_access(kernel, parts.b, element, lines, target, schedule.vector_b);
  if (!holds_vectors(a, schedule.tile_m, schedule.tile_k) || !holds_vectors(b, schedule.tile_n, schedule.tile_k))
    return "the lines of a tile are whole vectors";
  if (shared_bytes(schedule, element, a, b) > target.shared_memory_per_block)
    return "the tiles exceed the shared memory of a block";
  return {};
}

}  // namespace tenon::codegen
