// Heuristics for Contract kernels on CUDA: the tile whose waves over the multiprocessors cost least, where larger tiles
// move fewer bytes for each multiplication.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "codegen/analysis/box.h"
#include "codegen/analysis/product_bounds.h"
#include "codegen/analysis/tiling.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/limits.h"

namespace tenon::codegen {
namespace {

struct Tile {
  int m, n, k, warps_m, warps_n;
  double efficiency;  // of its multiplications, against the largest tile
};

// Warps own 64x32 down to 16x16: enough products for each fragment that is loaded.
constexpr std::array kTensorTiles{
    Tile{128, 128, 32, 2, 4, 1.0}, Tile{128, 64, 32, 4, 2, 0.8}, Tile{64, 128, 32, 2, 4, 0.8},
    Tile{64, 64, 32, 2, 2, 0.6},   Tile{32, 64, 64, 2, 2, 0.35}, Tile{64, 32, 64, 2, 2, 0.35},
    Tile{16, 128, 64, 1, 4, 0.3},  Tile{128, 16, 64, 4, 1, 0.3}, Tile{16, 64, 64, 1, 4, 0.25}};
// Of plain multiplications a small tile costs little, where groups of warps divide its depth. Fitted to every candidate
// of twelve f32 products on an H100 (bench/results/packs-2026-11-28-h100.md).
constexpr std::array kScalarTiles{Tile{128, 128, 16, 2, 4, 1.0}, Tile{64, 64, 16, 2, 2, 0.8},
                                  Tile{32, 64, 16, 2, 1, 0.72}, Tile{64, 32, 16, 2, 1, 0.72},
                                  Tile{16, 64, 16, 1, 2, 0.7}};
constexpr double kSlotsOfLoad = 10;  // multiply-adds that take as long as to bring a vector of an operand

struct WarpgroupTile {
  int m, n, consumers;
  bool turns;
  double efficiency;  // as above
  double beyond;      // the same where the operands are larger than the caches: more of a wide tile's are in L2
};

// A warpgroup multiplies 64 rows at once: few columns leave it waiting for shared memory. Fitted, with the constants of
// cost below, to some 1,700 times of an H200: every candidate of products drawn at random (bench/first_choice.py), and
// of the linear layers of GPT-2, squares and batches; what sums and lines cost, to every candidate of 94 products on an
// H100 (bench/results/random-2026-11-27-h100.md); what meetings in memory, three warpgroups and memory cost, to those
// of 87 on an H200 (bench/results/products-2026-11-29-h200.md).
constexpr std::array kWarpgroupTiles{
    WarpgroupTile{128, 256, 2, false, 0.934, 0.885}, WarpgroupTile{256, 128, 2, false, 0.930, 0.789},
    WarpgroupTile{128, 128, 2, true, 0.803, 0.738},  WarpgroupTile{64, 256, 2, true, 0.778, 0.740},
    WarpgroupTile{128, 192, 2, true, 0.808, 0.755},  WarpgroupTile{128, 192, 2, false, 0.926, 0.799},
    WarpgroupTile{128, 128, 2, false, 0.906, 0.753}, WarpgroupTile{64, 128, 1, false, 0.775, 0.626},
    WarpgroupTile{128, 64, 2, false, 0.550, 0.480},  WarpgroupTile{64, 64, 1, false, 0.560, 0.488},
    WarpgroupTile{192, 128, 3, false, 0.842, 0.749}};
constexpr std::int64_t kBeyondCaches = 128 << 20;      // bytes of operands: more than twice an H200's L2
constexpr double kLineOfMemory = 9, kLineOfBlock = 4;  // clocks of a multiprocessor: where all read, and of one alone
constexpr int kLeastDepth = 256;                       // of a part
constexpr int kMostDivided = 8;                        // parts of a depth: a cluster has no more blocks
// Rows or columns that stream (most_streamed below): as a rule; where threads would bring an operand to warpgroups; and
// where a stream has few blocks, of an operand that lies along the depth, and across it.
constexpr int kFewRows = 24, kFewFed = 32, kFewAlong = 16, kFewAcross = 8;
constexpr std::int64_t kLineBytes = 128;  // of a step's row, and of the caches
constexpr int kMostAhead = 8;             // steps of the depth that are asked for ahead

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Problem {
  std::int64_t batch = 1, m, n, k;
  double epilogue = 1;  // what a sum costs on its way out, where a store is 1
  const Kernel* kernel = nullptr;
  ContractParts parts = {};
  ProductBounds bounds = {};        // empty where nobody looks at them
  double slots_a = 0, slots_b = 0;  // multiply-adds that take as long as to bring an element, of plain ones
  double fed_a = 0, fed_b = 0;      // clocks for an element that one warpgroup of threads brings; 0: boxes bring it
  double line_a = 0, line_b = 0;    // clocks for 128 bytes of a row of a box; 0: threads bring it
  bool from_memory = false;         // the caches hold the operands otherwise
  std::int64_t step = 64;           // elements of 128 bytes

  // tile_n: of all products, side by side.
  ProductShare share(int tile_m, int tile_n) const {
    return product_share(*kernel, parts, bounds, tile_m, tile_n / parts.products());
  }
};

// Tiles, and those of them in which something is multiplied.
struct Tiles {
  std::int64_t all = 0, multiplied = 0;
  double depth = 1;  // of the multiplied ones, a share
};

Tiles tiles_of(const Problem& problem, int tile_m, int tile_n) {
  const ProductShare share = problem.share(tile_m, tile_n);
  const std::int64_t all = problem.batch * ceil_div(problem.m, tile_m) * ceil_div(problem.n, tile_n);
  return {all, static_cast<std::int64_t>(std::ceil(static_cast<double>(all) * share.tiles)), share.depth};
}

ProductBounds bounds_of(const Kernel& kernel, const ContractParts& parts, const Target& target) {
  return target.may.product_bounds ? product_bounds(kernel, parts) : ProductBounds{};
}

// Sums of a thread.
int sums_of(const WarpgroupTile& tile) { return (tile.turns ? tile.m : tile.m / tile.consumers) / 64 * (tile.n / 2); }

// Warpgroups that bring operands of threads: two where those that multiply leave registers for them.
int producers_of(const WarpgroupTile& tile) { return tile.consumers == 2 && sums_of(tile) <= kSumsBesideTwo ? 2 : 1; }

double cost(const Tile& tile, const Problem& problem, int multiprocessors) {
  const Tiles tiles = tiles_of(problem, tile.m, tile.n);
  const double brought = problem.slots_a * tile.m + problem.slots_b * tile.n;
  return static_cast<double>(ceil_div(tiles.multiplied, multiprocessors)) * tiles.depth *
         (tile.m * tile.n / tile.efficiency + brought);
}

// Blocks that find a place at once, of clusters of so many.
int places_of_clusters(int blocks, const Target& target) {
  const double clusters = kShareOfClusters[static_cast<std::size_t>(blocks)] * target.multiprocessors / blocks;
  return std::max(1, static_cast<int>(clusters)) * blocks;
}

// Blocks of which several work at one tile, or at neighbouring ones (ContractSchedule).
struct Sharing {
  int cluster = 1, parts = 1, split_k = 1;

  int of_depth() const { return parts * split_k; }
};

// In clocks of a multiprocessor: its products, unless its operands take longer to come, and the sums' way out, which
// another warpgroup's products hide where they take turns; but then one of them alone hands out a tile.
double cost(const WarpgroupTile& tile, const Sharing& sharing, const Problem& problem, const Target& target) {
  constexpr double kClocksOfSum = 0.17;  // of a multiprocessor, where two warpgroups hand out
  constexpr double kShareOfTwo = 0.7;    // of the time of one: two that hand out at once share the way to memory
  constexpr double kAlone = 1.7;         // times as long as two, a warpgroup that hands out alone
  constexpr double kThree = 0.61;        // and three
  constexpr int kMostAtOnce = 128;       // sums of a thread beside which there are registers for loads ahead
  constexpr double kLate = 1.5;          // times as long again without them
  constexpr double kHidden = 0.03, kWaste = 0.003, kAgain = 0.0005;  // that ties are decided by
  constexpr double kClocksOfStart = 390;                             // of a tile, until its first product
  constexpr double kClocksOfEmpty = 1;  // of a line that lies beyond an operand: it is filled all the same
  constexpr double kClocksOfMeeting = 1500, kClocksOfPart = 700;  // of a cluster's blocks, for each other's sums
  constexpr double kClocksOfWaiting = 9000;                       // where not all clusters find a place at once
  constexpr double kClocksInMemory = 4400,
                   kClocksOfSumInMemory = 0.46;  // of a meeting, for each sum that is left there
  constexpr double kClocksOfPartInMemory = 200;
  constexpr double kNeighbours =
      1.05;  // times as long: what the blocks of a cluster read together lies in one part of the L2
  const auto [all, tiles, depth] = tiles_of(problem, tile.m, tile.n);
  const double depth_parts = sharing.of_depth();
  const bool beyond = 2 * (problem.m + problem.n) * problem.k > kBeyondCaches;  // of one batch, 16 bits each
  const double elements = tile.m * tile.n;
  const double products = 2.0 * static_cast<double>(problem.k) * depth / depth_parts / target.tensor_flops_per_clock /
                          (beyond ? tile.beyond : tile.efficiency) * elements;
  const double fed = (problem.fed_a * tile.m + problem.fed_b * tile.n) * static_cast<double>(problem.k) * depth /
                     depth_parts / producers_of(tile);
  const auto rows = static_cast<double>(std::min<std::int64_t>(tile.m, problem.m));
  const auto columns = static_cast<double>(std::min<std::int64_t>(tile.n, problem.n));
  const double empty = problem.line_a + problem.line_b > 0 ? tile.m - rows + tile.n - columns : 0;
  const double boxes = (problem.line_a * rows + problem.line_b * columns + kClocksOfEmpty * empty) *
                       static_cast<double>(ceil_div(problem.k, problem.step)) * depth / depth_parts;
  const double multiplied = std::max({products, fed, boxes}) * (sharing.parts > 1 ? kNeighbours : 1) + kClocksOfStart;
  const bool alone = tile.turns || tile.consumers == 1;
  const double late = tile.turns && sums_of(tile) > kMostAtOnce ? kLate : 1;
  const double sum = kClocksOfSum * problem.epilogue *
                     (alone                ? kAlone
                      : tile.consumers > 2 ? kThree
                                           : 1) *
                     late * elements / static_cast<double>(sharing.split_k);
  const int places = sharing.parts == 1 ? target.multiprocessors / sharing.split_k * sharing.split_k
                                        : places_of_clusters(sharing.parts, target);
  const auto turns = static_cast<double>(ceil_div(tiles * sharing.of_depth(), places));
  const double meeting =
      sharing.split_k > 1  ? kClocksInMemory + kClocksOfSumInMemory * elements + kClocksOfPartInMemory * sharing.split_k
      : sharing.parts == 1 ? 0
      : turns > 1          ? kClocksOfWaiting
                           : kClocksOfMeeting + kClocksOfPart * sharing.parts;
  const double of_two = std::max({multiplied, (multiplied + sum) / 2, kShareOfTwo * sum});
  const double hidden = sum * static_cast<double>(all - tiles) / target.multiprocessors;  // nothing but their way out
  // What no tile has read before comes from memory, whatever the tiles are.
  const auto blocks = static_cast<double>(std::min<std::int64_t>(tiles * sharing.of_depth(), target.multiprocessors));
  const double lines = static_cast<double>(problem.batch * (problem.m + problem.n) * ceil_div(problem.k, problem.step));
  const double read =
      problem.from_memory ? lines * depth * std::max(kLineOfMemory / target.multiprocessors, kLineOfBlock / blocks) : 0;
  const double multiplying = (tile.turns ? turns * of_two + sum : turns * (multiplied + sum + meeting)) + hidden;
  // Where memory takes the time, the tiles that waste least and bring least decide.
  const double elements_of_result = static_cast<double>(problem.batch * problem.m) * static_cast<double>(problem.n);
  const double wasted = static_cast<double>(all) * elements / elements_of_result;
  const double brought =
      static_cast<double>(all * (tile.m + tile.n)) / static_cast<double>(problem.batch * (problem.m + problem.n));
  return (std::max(read, multiplying) + kHidden * std::min(read, multiplying)) *
         (1 + kWaste * wasted + kAgain * brought);
}

template <std::size_t count>
const Tile& cheapest(const std::array<Tile, count>& tiles, const Problem& problem, int multiprocessors) {
  return *std::min_element(tiles.begin(), tiles.end(), [&](const Tile& a, const Tile& b) {
    return cost(a, problem, multiprocessors) < cost(b, problem, multiprocessors);
  });
}

// How an operand comes to warpgroups: threads bring what boxes cannot.
Feed feed_of(const Kernel& kernel, const ContractParts& parts, const OperandPart& part, const Target& target) {
  const DType element = warpgroup_element(kernel, parts, target).dtype;
  return why_not_boxed(kernel, part, parts.batch, element).empty() ? Feed::boxes : Feed::threads;
}

// Of an element, 0 where boxes bring it: whole vectors of 16 bytes, or as long for fewer elements.
double clocks_of_fed(const Kernel& kernel, const ContractParts& parts, const OperandPart& part, const Target& target) {
  if (feed_of(kernel, parts, part, target) == Feed::boxes) return 0;
  const TileElement element = warpgroup_element(kernel, parts, target);
  const int vector = tile_access(kernel, part, element, Lines::as_read, target).vector;
  return std::max(1.0, 8.0 / vector) / kFedElementsOfClock;
}

// Whether rows of the operand's boxes begin off lines of 128 bytes, so that 128 bytes of them lie across two. Those of
// less than a line have no 128 bytes.
bool splits_lines(const Kernel& kernel, const ContractParts& parts, const OperandPart& part, const Target& target) {
  if (feed_of(kernel, parts, part, target) == Feed::threads) return false;
  std::string why_not;
  const auto box = box_access(kernel, part, parts.batch, why_not);
  const auto line = static_cast<int>(kLineBytes / size_of(warpgroup_element(kernel, parts, target).dtype));
  if (!box || box->strides.empty() || typical(box->strides.front(), kernel.symbols) < line) return false;
  return std::any_of(box->strides.begin(), box->strides.end(),
                     [&](const Dim& stride) { return power_of_two_divisor(stride, line, kernel.symbols) != line; });
}

// Of 128 bytes of a row, on their way from the second-level cache. Fitted to products of an H100 with rows 368 to
// 16,368 bytes apart: lines come at 55 bytes a clock, and rows that split them at 28.
double clocks_of_line(const Kernel& kernel, const ContractParts& parts, const OperandPart& part, const Target& target) {
  if (feed_of(kernel, parts, part, target) == Feed::threads) return 0;
  return splits_lines(kernel, parts, part, target) ? 4.5 : 2.33;
}

Problem problem_of(const Kernel& kernel, const ContractParts& parts, const Target& target) {
  const auto extent = [&](int axis) {
    return typical(kernel.axes[static_cast<std::size_t>(axis)].extent, kernel.symbols);
  };
  Problem problem{1, extent(parts.m), extent(parts.n), extent(parts.k)};
  problem.kernel = &kernel, problem.parts = parts, problem.bounds = bounds_of(kernel, parts, target);
  for (int axis : parts.batch) problem.batch *= extent(axis);
  problem.n *= parts.products();  // side by side
  const std::uint64_t both = 1ull << parts.m | 1ull << parts.n;
  problem.fed_a = clocks_of_fed(kernel, parts, parts.a, target);
  problem.fed_b = clocks_of_fed(kernel, parts, parts.b, target);
  const std::int64_t bytes = 2 * problem.batch * (problem.m + problem.n) * problem.k;  // 16 bits each
  problem.from_memory = 2 * bytes > kBeyondCaches;
  problem.line_a = clocks_of_line(kernel, parts, parts.a, target);
  problem.line_b = clocks_of_line(kernel, parts, parts.b, target);
  problem.step = kLineBytes / static_cast<std::int64_t>(size_of(warpgroup_element(kernel, parts, target).dtype));
  for (const InstrId id : parts.epilogue)
    if ((kernel.instr(id).depends & both) == both)
      problem.epilogue += kernel.instr(id).kind == InstrKind::load ? 1.5 : 0.1;
  return problem;
}

// Whether a result leaves in boxes. What is read for columns is waited for once in a tile: that pays where a block has
// several of them (on an H200 8192 x 2304 x 768 with a bias 51.3 and 47.0 us, but 561 x 10816 x 128 12.1 and 13.6), and
// its text is long.
bool leaves_in_boxes(const WarpgroupTile& tile, const Kernel& kernel, const ContractParts& parts,
                     const Target& target) {
  constexpr int kMostColumns = 192;
  constexpr std::int64_t kSector = 16;  // elements of 32 bytes
  std::string why_not;
  const auto box = target.may.box_results ? result_box(kernel, parts, why_not) : std::nullopt;
  if (!box) return false;
  const auto extent = [&](int axis) {
    return typical(kernel.axes[static_cast<std::size_t>(axis)].extent, kernel.symbols);
  };
  // Boxes whose rows begin off sectors write parts of these, which costs where they leave the caches (31867 x 2072 x
  // 88: 81 us, 72 without).
  double bytes = 2.0 * static_cast<double>(extent(parts.m)) * static_cast<double>(extent(parts.n));
  for (const int axis : parts.batch) bytes *= static_cast<double>(extent(axis));
  if (bytes > static_cast<double>(target.l2_bytes) &&
      std::any_of(box->strides.begin(), box->strides.end(),
                  [&](const Dim& stride) { return power_of_two_divisor(stride, kSector, kernel.symbols) != kSector; }))
    return false;
  const auto reads = [&](InstrId id) {
    return kernel.instr(id).kind == InstrKind::load && (kernel.instr(id).depends >> parts.n & 1) != 0;
  };
  if (std::none_of(parts.epilogue.begin(), parts.epilogue.end(), reads)) return true;
  std::int64_t tiles = ceil_div(extent(parts.m), tile.m) * ceil_div(extent(parts.n), tile.n);
  for (const int axis : parts.batch) tiles *= extent(axis);
  return tiles > 2 * target.multiprocessors && tile.n <= kMostColumns;
}

// With as many stages as fit.
ContractSchedule in_warpgroups(const WarpgroupTile& tile, const Sharing& sharing, const Kernel& kernel,
                               const Target& target) {
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = warpgroup_element(kernel, parts, target);
  const auto feed = [&](const OperandPart& part) { return feed_of(kernel, parts, part, target); };
  ContractSchedule schedule;
  schedule.loop = MainLoop::wgmma;
  schedule.tile_m = tile.m;
  schedule.tile_n = tile.n;
  schedule.tile_k = static_cast<int>(kLineBytes / size_of(element.dtype));
  schedule.products = parts.products();
  schedule.feed_a = feed(parts.a);
  schedule.feed_b = feed(parts.b);
  if (parts.second && feed(parts.second->b) == Feed::threads) schedule.feed_b = Feed::threads;
  const bool by_threads = schedule.feed_a == Feed::threads || schedule.feed_b == Feed::threads;
  schedule.consumers = tile.consumers;
  schedule.block_steps = block_terms(kernel, parts.contract, element) / schedule.tile_k;
  schedule.producers = by_threads && schedule.block_steps == 0 ? producers_of(tile) : 1;
  schedule.turns = tile.turns;
  schedule.cluster = by_threads ? 1 : sharing.cluster;
  schedule.parts = sharing.parts;
  schedule.split_k = sharing.split_k;
  // 1 to 3 % of products of 2048 to 8192 cubed on an H200; clusters lose what they gain by waiting for each other.
  schedule.lead = tile.consumers == 2 && !tile.turns && schedule.cluster == 1 && sharing.of_depth() == 1 ? 1 : 0;
  schedule.bounded = !bounds_of(kernel, parts, target).empty();
  // Beside threads that bring operands, or masks' bounds, there are too few registers.
  schedule.box_results =
      sharing.of_depth() == 1 && !by_threads && !schedule.bounded && leaves_in_boxes(tile, kernel, parts, target);
  schedule.stages = kMostAhead;  // of the next tile too
  while (schedule.stages > 2 && wgmma_shared_bytes(schedule) > target.shared_memory_per_block) --schedule.stages;
  return schedule;
}

// Up to so many rows, or columns, stream: warpgroups would waste most of their 64. Where a stream leaves more than half
// of the multiprocessors without a block, warpgroups have fewer rows too: 24 x 1152 x 7808 takes an H100 18.4 us in a
// stream and 15.6 by warpgroups, but 24 x 4096 x 14336 54 and 64; 32 x 28672 x 8192 takes 197 and 172. A stream reads
// two bytes at a time of what lies across the depth (16 x 1152 x 7808: 21.3 and 16.7 us).
int most_streamed(const Kernel& kernel, const ContractParts& parts, const Target& target, const Problem& problem) {
  constexpr int kBlock = 32;  // rows of the matrix
  if (problem.fed_a > 0 || problem.fed_b > 0) return kFewFed;
  const std::int64_t blocks = problem.batch * ceil_div(std::max(problem.m, problem.n), kBlock);
  if (2 * blocks > target.multiprocessors) return kFewRows;
  std::string why_not;
  const auto box = box_access(kernel, problem.m <= problem.n ? parts.a : parts.b, parts.batch, why_not);
  return box && !box->along_depth ? kFewAcross : kFewAlong;
}

// In how many parts blocks may split the depth of a tile, so that all of them run at once, at whatever size: each has
// memory for its sums.
std::vector<int> splits_of(const WarpgroupTile& tile, const Problem& problem, const Target& target) {
  std::vector<int> splits;
  if (!target.may.split_k || tile.turns || problem.parts.second || !problem.bounds.empty()) return splits;
  const Kernel& kernel = *problem.kernel;
  const auto most_of = [&](int axis) {
    return kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols).max;
  };
  double tiles = std::ceil(static_cast<double>(most_of(problem.parts.m)) / tile.m) *
                 std::ceil(static_cast<double>(most_of(problem.parts.n)) / tile.n);
  for (const int axis : problem.parts.batch) tiles *= static_cast<double>(most_of(axis));
  if (tiles < 1 || tiles > target.multiprocessors) return splits;
  const std::int64_t most = std::min(
      {std::int64_t{kMostSplit}, target.multiprocessors / static_cast<std::int64_t>(tiles), problem.k / kLeastDepth});
  for (std::int64_t split_k = most; split_k > 1; split_k = split_k > 4 ? split_k * 3 / 4 : split_k - 1)
    splits.push_back(static_cast<int>(split_k));
  return splits;
}

// Two blocks that share tiles of b are the tuner's alone: of 66 products drawn at random on an H200 none gained 1 %.
std::optional<ContractSchedule> choose_wgmma(const Kernel& kernel, const ContractParts& parts, const Target& target,
                                             const Problem& problem) {
  if (!target.may.wgmma) return std::nullopt;
  if (!parts.second && std::min(problem.m, problem.n) <= most_streamed(kernel, parts, target, problem))
    return std::nullopt;
  std::optional<ContractSchedule> best;
  double least = 0;
  // Two operands of a step take registers too. A pair, whose matrices lie side by side, has no smaller tiles.
  const bool spares_registers = problem.fed_a > 0 && problem.fed_b > 0 && !parts.second;
  for (const WarpgroupTile& tile : kWarpgroupTiles) {
    if (spares_registers && sums_of(tile) >= kSumsBesideTwo) continue;
    const auto consider = [&](const Sharing& sharing) {
      const double time = cost(tile, sharing, problem, target);
      if (best && time >= least) return;
      const ContractSchedule schedule = in_warpgroups(tile, sharing, kernel, target);
      if (!verify(schedule, kernel, target).empty()) return;
      best = schedule;
      least = time;
    };
    consider({});
    for (int divided = 2; divided <= kMostDivided; divided *= 2)
      if (problem.k / divided >= kLeastDepth) consider({.parts = divided});
    for (const int split_k : splits_of(tile, problem, target)) consider({.split_k = split_k});
  }
  return best;
}

// A tile of plain multiplications, and the groups of warps that divide its depth.
struct PlainTile {
  const Tile* tile = nullptr;
  int groups = 1;
};

// The tile that takes the least time. Where a multiprocessor has few of them, groups of warps divide its depth: a warp
// that multiplies alone waits for each load. More of them gain nothing, but where threads bring both operands.
PlainTile plain_tile(const Kernel& kernel, const ContractParts& parts, Problem problem, const Target& target) {
  constexpr int kWarps = 12, kWarpsThatBring = 16;  // of a multiprocessor
  constexpr int kMost = 4, kLeastSteps = 4;         // groups; steps of the loop over the depth
  const TileElement element = tile_element(kernel, parts.contract, target);
  const TileAccess a = tile_access(kernel, parts.a, element, contract_lines(element), target);
  const TileAccess b = tile_access(kernel, parts.b, element, contract_lines(element), target);
  problem.slots_a = kSlotsOfLoad / a.vector, problem.slots_b = kSlotsOfLoad / b.vector;
  const Tile& tile = cheapest(kScalarTiles, problem, target.multiprocessors);
  const std::int64_t tiles = problem.batch * ceil_div(problem.m, tile.m) * ceil_div(problem.n, tile.n);
  const std::int64_t warps = ceil_div(tiles, target.multiprocessors) * tile.warps_m * tile.warps_n;
  const int most = a.async || b.async ? kWarps : kWarpsThatBring;
  int groups = 1;
  while (groups < kMost && 2 * groups * warps <= most && 2 * groups * tile.k * kLeastSteps <= problem.k) groups *= 2;
  return {&tile, groups};
}

// A tile for warps, with as many stages as fit, up to `most`, and that many groups where warps multiply plainly.
ContractSchedule in_warps(const Tile& tile, int most, int groups, const Kernel& kernel, const Target& target) {
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = tile_element(kernel, parts.contract, target);
  const TileAccess a = tile_access(kernel, parts.a, element, contract_lines(element), target);
  const TileAccess b = tile_access(kernel, parts.b, element, contract_lines(element), target);
  ContractSchedule schedule;
  schedule.loop = element.tensor_cores ? MainLoop::mma_sync : MainLoop::simt;
  schedule.tile_m = tile.m;
  schedule.tile_n = tile.n;
  schedule.tile_k = element.tensor_cores && element.dtype == DType::f32 ? tile.k / 2 : tile.k;
  schedule.warps_m = tile.warps_m;
  schedule.warps_n = tile.warps_n;
  schedule.vector_a = a.vector;
  schedule.vector_b = b.vector;
  schedule.bounded = !bounds_of(kernel, parts, target).empty();
  if (schedule.loop == MainLoop::simt && !schedule.bounded) {
    schedule.warps_k = groups;
    schedule.tile_k *= schedule.warps_k;
  }
  schedule.stages = a.async || b.async ? most : 2;  // what passes through registers has no more than one tile in flight
  const auto exceeds = [&] { return shared_bytes(schedule, element, a, b) > target.shared_memory_per_block; };
  while (schedule.stages > 2 && exceeds()) --schedule.stages;
  for (; schedule.warps_k > 1 && exceeds(); schedule.warps_k /= 2) schedule.tile_k /= 2;
  return schedule;
}

// Few rows or columns: the other operand is read once, at the speed of memory, by warps on all multiprocessors that
// each have much of it under way.
constexpr int kFewStreamed = 32;

ContractSchedule streamed(const Kernel& kernel, const Problem& problem, const Target& target, int wide, int warps,
                          int chunks) {
  const int few = static_cast<int>(ceil_div(std::min(problem.m, problem.n), 8) * 8);
  const bool rows = problem.m <= problem.n;
  ContractSchedule schedule;
  schedule.loop = MainLoop::stream;
  schedule.tile_m = rows ? few : wide;
  schedule.tile_n = rows ? wide : few;
  schedule.warps_m = schedule.warps_n = 1;
  schedule.warps_k = warps;
  schedule.streaming_loads = true;
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = tile_element(kernel, parts.contract, target);
  schedule.vector_a = schedule.vector_b = kWidestStreamed;
  StreamParts stream = stream_parts(schedule, kernel, parts, element, target);
  if (!stream.matrix_access.along_depth)  // eight lanes lie side by side
    stream.matrix_access.vector = std::min(stream.matrix_access.vector, wide / 8);
  schedule.vector_a = (rows ? stream.few_access : stream.matrix_access).vector;
  schedule.vector_b = (rows ? stream.matrix_access : stream.few_access).vector;
  schedule.tile_k = chunks * stream.chunk;
  return schedule;
}

// Warps of a block, as many as let all blocks run at once: what is left for a second turn of theirs has the memory for
// itself.
int warps_at_once(const Kernel& kernel, const Problem& problem, const Target& target,
                  const ContractSchedule& schedule) {
  constexpr int kMost = 16, kLeast = 4;
  const int wide = std::max(schedule.tile_m, schedule.tile_n);
  const std::int64_t tiles = problem.batch * ceil_div(std::max(problem.m, problem.n), wide);
  const int resident = target.registers_per_multiprocessor / (32 * stream_registers(schedule, kernel, target));
  int warps = kMost;
  while (warps > kLeast && tiles > std::int64_t{resident} / warps * target.multiprocessors) warps /= 2;
  return warps;
}

// Tiles of a matrix that is narrower than 16 bits, by how it lies: 16 bytes of each row along the depth (tiles of 16
// rows were 4 to 8 % faster than of 32 on an H200, at 8 x 14336 x 4096 in 8 and 4 bits); across it, lines of 64 bytes.
struct StreamTile {
  int wide = 16, chunks = 4, warps = 8;
};
StreamTile narrow_tile(const Kernel& kernel, const Problem& problem, const Target& target, bool along_depth) {
  const int wide = along_depth ? 16 : 64;
  return {wide, 1, warps_at_once(kernel, problem, target, streamed(kernel, problem, target, wide, 1, 1))};
}

// What was fastest on an H200 at 4096 x 4096 and 14336 x 4096, and on an H100 at ten shapes more, by how the matrix
// lies: narrow tiles along the depth, lines of 64 bytes across it, and of 128 where there are many. A block has fewer
// warps the more blocks there are: what is left for a second turn has the memory for itself (8 x 14336 x 4096 across
// the depth 56 us by 16 warps, 47 by 4, but 4 x 2496 x 23104, which has less than a block a multiprocessor, 50.7 by 8
// and 39.5 by 16; 24 x 25600 x 712 along it 24.2 in four steps, 22.7 in two).
StreamTile stream_tile(const Kernel& kernel, const Problem& problem, const Target& target) {
  constexpr int kBytes = 2, kSteps = 8;  // of an element that is not narrow
  const ContractParts parts = contract_parts(kernel);
  const StreamParts stream = stream_parts(streamed(kernel, problem, target, 32, 1, 1), kernel, parts,
                                          tile_element(kernel, parts.contract, target), target);
  const bool along_depth = stream.matrix_access.along_depth;
  const int axis = along_depth ? stream.matrix.depth : stream.matrix.outer;
  if (stream.ahead ||
      (stream.matrix_access.vector > 1 && 4 * loaded_words(kernel, stream.matrix, axis, kSteps) < kBytes * kSteps))
    return narrow_tile(kernel, problem, target, along_depth);
  const std::int64_t few = std::min(problem.m, problem.n);
  const auto tiles = [&](int wide) { return problem.batch * ceil_div(std::max(problem.m, problem.n), wide); };
  if (!along_depth) {
    constexpr int kWide = 32;
    if (tiles(kWide) > 2 * target.multiprocessors) return {2 * kWide, 2, 4};
    return {kWide, 2, tiles(kWide) > target.multiprocessors ? 8 : 16};
  }
  if (few <= 8) return {16, 2, 8};
  // Few that lie across the depth are read two bytes at a time, for each tile: wide ones (on an H200 16 x 3072 x 1728
  // 14.6 us in tiles of 16, 10.1; 16 x 8192 x 4096 37.1, 26.5; 24 x 16384 x 2048 34.5 by 8 warps in two steps, 28.2).
  if (stream.few_access.vector == 1) {
    constexpr int kWide = 32;
    const int warps = tiles(kWide) <= target.multiprocessors ? 16 : tiles(kWide) <= 2 * target.multiprocessors ? 8 : 4;
    return {kWide, few <= 16 ? 2 : 1, warps};
  }
  const int wide = few <= 16 ? 16 : 32;
  const bool many = tiles(wide) > 4 * target.multiprocessors;
  return {wide, few <= 16 ? 4 : 2, many ? 4 : 8};
}

std::optional<ContractSchedule> choose_stream(const Kernel& kernel, const Target& target, const Problem& problem) {
  if (std::min(problem.m, problem.n) > kFewStreamed) return std::nullopt;
  const StreamTile tile = stream_tile(kernel, problem, target);
  for (int chunks = tile.chunks; chunks >= 1; chunks /= 2) {
    const ContractSchedule one = streamed(kernel, problem, target, tile.wide, 1, chunks);
    const int warps = static_cast<int>(std::clamp<std::int64_t>(problem.k / one.tile_k, 1, tile.warps));
    const ContractSchedule schedule = streamed(kernel, problem, target, tile.wide, warps, chunks);
    if (verify(schedule, kernel, target).empty()) return schedule;
  }
  return std::nullopt;
}

// Where neither operand's rows begin at boundaries, and the product is too small for copies that do, warpgroups wait
// for elements as warps do: 48 x 1600 x 64 x 33 took 28.5 us for 21.8, 40 x 49 x 448 x 221 45 for 31 (H100).
bool small_and_unaligned(const Problem& problem) {
  constexpr double kMostOperations = 1 << 30, kOfHalves = 2 / kFedElementsOfClock;  // of vectors of 8 bytes
  const double operations = 2.0 * static_cast<double>(problem.batch * problem.m) * static_cast<double>(problem.n) *
                            static_cast<double>(problem.k);
  return problem.fed_a >= kOfHalves && problem.fed_b >= kOfHalves && operations <= kMostOperations;
}

}  // namespace

ContractSchedule choose_contract_schedule(const Kernel& kernel, const Target& target) {
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = tile_element(kernel, parts.contract, target);
  const Problem problem = problem_of(kernel, parts, target);
  if (parts.second || !element.tensor_cores || !small_and_unaligned(problem))
    if (const auto wgmma = choose_wgmma(kernel, parts, target, problem)) return *wgmma;
  if (const auto stream = choose_stream(kernel, target, problem)) return *stream;
  if (const auto in_parts = choose_f32_parts(kernel, parts, target)) return *in_parts;
  if (!element.tensor_cores) {
    const PlainTile plain = plain_tile(kernel, parts, problem, target);
    return in_warps(*plain.tile, 3, plain.groups, kernel, target);
  }
  const Tile& tile = cheapest(kTensorTiles, problem, target.multiprocessors);
  // A block that has a multiprocessor for itself has more under way (f16 50 x 780 x 6080, whose rows no copy takes
  // whole, on an H100: 42 us with 3 stages, 34 with 4).
  const bool alone =
      problem.batch * ceil_div(problem.m, tile.m) * ceil_div(problem.n, tile.n) <= target.multiprocessors;
  return in_warps(tile, alone ? 4 : 3, 1, kernel, target);
}

std::vector<ContractSchedule> contract_alternatives(const Kernel& kernel, const Target& target,
                                                    const ContractSchedule& chosen) {
  std::vector<ContractSchedule> result;
  const ContractParts parts = contract_parts(kernel);
  const Problem problem = problem_of(kernel, parts, target);
  const bool fed = chosen.feed_a == Feed::threads || chosen.feed_b == Feed::threads;
  // Warps bring elements of rows that begin anywhere no worse than warpgroups do.
  if (chosen.loop == MainLoop::mma_sync || chosen.loop == MainLoop::stream || (chosen.loop == MainLoop::wgmma && fed))
    for (const Tile& tile : kTensorTiles)
      if (tile_element(kernel, parts.contract, target).tensor_cores && !parts.second)
        for (const int stages : {2, 3, 4}) result.push_back(in_warps(tile, stages, 1, kernel, target));
  for (const ContractSchedule& in_parts : f32_parts_alternatives(kernel, parts, target)) result.push_back(in_parts);
  if (chosen.loop == MainLoop::simt || chosen.loop == MainLoop::mma_3xtf32)
    for (const Tile& tile : kScalarTiles)
      for (const int groups : {1, 2, 4, 8})
        for (const int stages : {2, 3, 4}) result.push_back(in_warps(tile, stages, groups, kernel, target));
  if (chosen.loop == MainLoop::wgmma) {
    for (const WarpgroupTile& tile : kWarpgroupTiles)
      for (const int cluster : {1, 2})
        for (const int lead : {0, 1}) {
          result.push_back(in_warpgroups(tile, {.cluster = cluster}, kernel, target));
          result.back().lead = lead;
          if (cluster > 1 || !result.back().box_results) continue;
          result.push_back(result.back());
          result.back().box_results = false;
        }
    for (const WarpgroupTile& tile : kWarpgroupTiles)
      for (const int divided : {2, 4, 8}) result.push_back(in_warpgroups(tile, {.parts = divided}, kernel, target));
    for (const WarpgroupTile& tile : kWarpgroupTiles)
      for (const int split_k : splits_of(tile, problem, target))
        result.push_back(in_warpgroups(tile, {.split_k = split_k}, kernel, target));
  }
  if (chosen.loop == MainLoop::stream) {
    // Of more rows than eight warpgroups waste less.
    if (std::min(problem.m, problem.n) > kFewAcross)
      for (const WarpgroupTile& tile : kWarpgroupTiles)
        if (std::min(tile.m, tile.n) == 64)
          for (const int divided : {1, 2, 4, 8})
            result.push_back(in_warpgroups(tile, {.parts = divided}, kernel, target));
    for (const int wide : {16, 32, 64})
      for (const int warps : {4, 8, 16})
        for (const int chunks : {1, 2, 4, 8})
          if (wide >= std::min(problem.m, problem.n))
            result.push_back(streamed(kernel, problem, target, wide, warps, chunks));
    result.push_back(chosen);
    result.back().streaming_loads = !chosen.streaming_loads;
  }
  return result;
}

}  // namespace tenon::codegen
