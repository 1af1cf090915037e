// See product_costs.h.
#include "ir/fusion/product_costs.h"

#include <algorithm>
#include <cmath>

#include "ir/fusion/halves.h"

namespace tenon::ir::fusion {
namespace {

constexpr std::int64_t kTile = 128;         // rows and columns of a block's tile
constexpr std::int64_t kSmallTile = 32;     // and of the smallest
constexpr std::int64_t kTileOfF32 = 64;     // of f32, which a block takes whole
constexpr std::int64_t kLeastDepth = 512;   // of a part of the depth
constexpr std::int64_t kAligned = 8;        // elements of which a part is whole ones: no vector crosses its end
constexpr std::int64_t kMostParts = 128;    // of a depth
constexpr std::int64_t kStreamedWide = 32;  // so many of its rows
constexpr double kStreamedDraw = 0.7;       // of a block's bandwidth that it reaches (22 x 704 x 88768, H100)
constexpr double kSplitLines = 1.3;         // times as long where parts begin off lines (512 x 128 x 42112, H100)
constexpr double kKernels = 2;              // launches that a kernel more takes: it begins and ends with few blocks
constexpr double kThreadsOfProcessor = 2048;
constexpr double kMeetingUs = 1.5, kMeetingPartUs = 0.06;  // of blocks that add their sums in memory, of each of them
constexpr double kNextParts = 1.25;                        // times as many, the next number of parts that is looked at

// Microseconds of the tiles, each on a multiprocessor of its own as long as there are any.
double tiles_us(const PlanOptions& options, double tiles, double depth, double tile_elements,
                const ContractionElement& element) {
  const CostModel& cost = options.cost;
  const double processors = std::max(1.0, cost.threads / kThreadsOfProcessor);
  const bool in_parts = element.dtype == DType::f32 && options.split_f32 && cost.f32_tflops > 0;
  const double tflops = element.tensor_cores ? cost.tensor_tflops : in_parts ? cost.f32_tflops : cost.lane_tflops;
  return std::ceil(tiles / processors) * 2 * tile_elements * depth / (tflops * 1e6 / processors);
}

// Where few blocks have work, each of them draws no more than its share of the memory's bandwidth.
double divided_us(const PlanOptions& options, const ProductShape& problem, const ContractionElement& element,
                  const DepthDivision& division) {
  const CostModel& cost = options.cost;
  const std::int64_t few = std::min(problem.m, problem.n), many = std::max(problem.m, problem.n);
  const bool streams = element.tensor_cores && few < (problem.in_boxes ? kLeastOfBoxes : kStreamedRows + 1);
  const auto depth = static_cast<double>(division.depth), parts = static_cast<double>(division.parts);
  // Blocks divide a tile's depth too, but wait for each other, and add up in one place what is in all of them.
  const double most_in_kernel = streams || division.parts > 1 || !element.tensor_cores
                                    ? 1
                                    : std::max(1.0, std::min(cost.depth_parts, depth / kLeastDepth));
  const double processors = std::max(1.0, cost.threads / kThreadsOfProcessor);
  const auto bytes = [&](std::int64_t rows, double columns) {
    return static_cast<double>(rows) * columns * size_of(element.dtype);
  };
  const double read = bytes(few + many, depth * parts) / (cost.bandwidth_gb_s * 1e3);
  const auto meeting = [&](double in_kernel) {
    const double sums = 4 * in_kernel * static_cast<double>(problem.m * problem.n);
    return in_kernel == 1 ? 0 : kMeetingUs + kMeetingPartUs * in_kernel + 2 * sums / (cost.l2_bandwidth_gb_s * 1e3);
  };
  const auto in_parts = [&](std::int64_t most_few, std::int64_t most_many, double in_kernel) {
    const std::int64_t tile_few = std::min(most_few, few), tile_many = std::min(most_many, many);
    const double tiles = std::ceil(static_cast<double>(few) / static_cast<double>(tile_few)) *
                         std::ceil(static_cast<double>(many) / static_cast<double>(tile_many)) * parts * in_kernel;
    const double drawn = bytes(streams ? tile_many : tile_few + tile_many, depth / in_kernel) /
                         (cost.block_gb_s * (streams ? kStreamedDraw : 1) * 1e3);
    const double products =
        tiles_us(options, tiles, depth / in_kernel, static_cast<double>(tile_few * tile_many), element);
    return std::max({products, std::ceil(tiles / processors) * drawn, read}) + meeting(in_kernel);
  };
  const auto in_tiles = [&](std::int64_t most_few, std::int64_t most_many) {
    double least = in_parts(most_few, most_many, 1);
    for (double divided = 2; divided <= most_in_kernel; divided = std::ceil(divided * kNextParts))
      least = std::min(least, in_parts(most_few, most_many, divided));
    return least;
  };
  const bool in_boxes = division.parts > 1 && problem.in_boxes && !streams;
  const bool splits_lines =
      in_boxes && problem.along_depth && division.depth * size_of(element.dtype) % kLineBytes != 0;
  const std::int64_t tile = element.tensor_cores ? kTile : kTileOfF32;
  const double us = in_tiles(tile, streams ? kStreamedWide : tile);
  // Batches that leave multiprocessors without a tile have smaller ones.
  return (splits_lines ? kSplitLines : 1) * (in_boxes ? std::min(us, in_tiles(kTile, kTile / 2)) : us);
}

}  // namespace

DepthDivision division_of(const PlanOptions& options, const ProductShape& problem, const ContractionElement& element) {
  DepthDivision whole{1, problem.k};
  whole.us = divided_us(options, problem, element, whole);
  if (!options.split_depth || problem.batch != 1 || std::min(problem.m, problem.n) == 1) return whole;
  const CostModel& cost = options.cost;
  double least = whole.us / kGain;
  DepthDivision best = whole;
  // Measured on an H100: sums of parts come and go at memory's speed. Where threads bring operands the price of the
  // product is too low by as much.
  const double sums_gb_s = problem.in_boxes ? cost.bandwidth_gb_s : cost.l2_bandwidth_gb_s;
  const auto consider = [&](DepthDivision division) {
    const auto sums = 4 * static_cast<double>(division.parts * problem.m * problem.n);
    double us =
        divided_us(options, problem, element, division) + kKernels * cost.launch_us + 2 * sums / (sums_gb_s * 1e3);
    if (const std::int64_t rest = division.rest(problem); rest > 0)
      us += kKernels * cost.launch_us + divided_us(options, problem, element, {1, rest});
    division.us = us;
    if (us < least) best = division, least = us;
  };
  for (std::int64_t parts = 2; parts <= kMostParts && problem.k / parts >= kLeastDepth; ++parts) {
    for (const std::int64_t aligned : {kLineBytes / size_of(element.dtype), kAligned})
      consider({parts, problem.k / parts / aligned * aligned});
  }
  return best;
}

double undivided_us(const PlanOptions& options, const ProductShape& problem, const ContractionElement& element) {
  const auto in_tiles = [&](std::int64_t size) {
    const std::int64_t tile_m = std::min(size, problem.m), tile_n = std::min(size, problem.n);
    const double tiles = problem.batch * std::ceil(static_cast<double>(problem.m) / static_cast<double>(tile_m)) *
                         std::ceil(static_cast<double>(problem.n) / static_cast<double>(tile_n));
    return tiles_us(options, tiles, static_cast<double>(problem.k), static_cast<double>(tile_m * tile_n), element);
  };
  return std::min(in_tiles(kTile), 2 * in_tiles(kSmallTile));
}

// What threads take to bring an operand to tensor cores, once for each tile of the other one, where its rows have
// `extent` elements: no vector is longer than what divides them. Each multiprocessor that has a tile, or a part of
// one's depth, brings cost.fed_elements_ns in vectors of eight (40 x 737 x 109856 on an H100: 310 us of 373). Few
// elements are better off in the small tiles of warps.
double fed_us(const CostModel& cost, const ProductShape& problem, bool left, std::int64_t extent) {
  if (cost.fed_elements_ns == 0 || std::min(problem.m, problem.n) <= kStreamedRows) return 0;  // these stream
  const std::int64_t rows = left ? problem.m : problem.n, other = left ? problem.n : problem.m;
  const double processors = std::max(1.0, cost.threads / kThreadsOfProcessor);
  const double vector = extent % 4 == 0 ? 4 : extent % 2 == 0 ? 2 : 1;
  const auto in_tiles = [&](std::int64_t size, std::int64_t widest, double parts) {
    const auto tiles = [](std::int64_t all, std::int64_t tile) {
      return std::ceil(static_cast<double>(all) / static_cast<double>(tile));
    };
    const double elements = problem.batch * static_cast<double>(rows * problem.k) * tiles(other, widest);
    const double blocks = problem.batch * tiles(problem.m, size) * tiles(problem.n, size) * parts;
    return elements / (std::min(blocks, processors) * cost.fed_elements_ns * vector / 8 * 1e3);
  };
  const double parts = std::max(1.0, static_cast<double>(problem.k) / kLeastDepth);
  return std::min(in_tiles(kTile, 2 * kTile, parts), in_tiles(kSmallTile, kSmallTile, 1));
}

}  // namespace tenon::ir::fusion
