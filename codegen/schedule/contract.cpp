// Heuristics for Contract kernels on CUDA: the tile whose waves over the multiprocessors cost least, where larger tiles
// move fewer bytes for each multiplication.
#include <algorithm>
#include <array>
#include <optional>

#include "codegen/analysis/tiling.h"
#include "codegen/schedule/choices.h"

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
constexpr std::array kScalarTiles{Tile{128, 128, 16, 2, 4, 1.0}, Tile{64, 64, 16, 2, 2, 0.75},
                                  Tile{32, 64, 16, 2, 1, 0.5}, Tile{64, 32, 16, 2, 1, 0.5},
                                  Tile{16, 64, 16, 1, 2, 0.4}};

struct WarpgroupTile {
  int m, n, consumers;
  bool turns;
  double efficiency;  // as above
};

// A warpgroup multiplies 64 rows at once: few columns leave it waiting for shared memory. Measured on an H200 at 8192
// cubed.
constexpr std::array kWarpgroupTiles{WarpgroupTile{128, 256, 2, false, 1.0},  WarpgroupTile{256, 128, 2, false, 0.99},
                                     WarpgroupTile{128, 128, 2, true, 0.95},  WarpgroupTile{64, 256, 2, true, 0.9},
                                     WarpgroupTile{128, 192, 2, false, 0.95}, WarpgroupTile{128, 128, 2, false, 0.93},
                                     WarpgroupTile{64, 128, 1, false, 0.7},   WarpgroupTile{128, 64, 2, false, 0.58},
                                     WarpgroupTile{64, 64, 1, false, 0.52}};
constexpr int kFewRows = 32;   // fewer rows or columns than half of a warpgroup's are wasted on it
constexpr int kMostAhead = 8;  // steps of the depth that are asked for ahead

// A size to plan with: unknown extents count as 1024.
std::int64_t typical(const Dim& extent, const Symbols& symbols) {
  const SymbolBounds range = extent.bounds(symbols);
  return std::clamp<std::int64_t>(1024, range.min, range.max);
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Problem {
  std::int64_t batch = 1, m, n, k;
};

template <class Tile>
double cost(const Tile& tile, const Problem& problem, int multiprocessors) {
  const std::int64_t tiles = problem.batch * ceil_div(problem.m, tile.m) * ceil_div(problem.n, tile.n);
  return static_cast<double>(ceil_div(tiles, multiprocessors)) * tile.m * tile.n / tile.efficiency;
}

template <class Tile, std::size_t count>
const Tile& cheapest(const std::array<Tile, count>& tiles, const Problem& problem, int multiprocessors) {
  return *std::min_element(tiles.begin(), tiles.end(), [&](const Tile& a, const Tile& b) {
    return cost(a, problem, multiprocessors) < cost(b, problem, multiprocessors);
  });
}

Problem problem_of(const Kernel& kernel, const ContractParts& parts) {
  const auto extent = [&](int axis) {
    return typical(kernel.axes[static_cast<std::size_t>(axis)].extent, kernel.symbols);
  };
  Problem problem{1, extent(parts.m), extent(parts.n), extent(parts.k)};
  for (int axis : parts.batch) problem.batch *= extent(axis);
  return problem;
}

// With as many stages as fit.
ContractSchedule in_warpgroups(const WarpgroupTile& tile, int cluster, const Kernel& kernel, const Target& target) {
  const int vector = epilogue_vector(kernel, contract_parts(kernel).n, 8);
  ContractSchedule schedule;
  schedule.loop = MainLoop::wgmma;
  schedule.tile_m = tile.m;
  schedule.tile_n = tile.n;
  schedule.tile_k = 64;
  schedule.consumers = tile.consumers;
  schedule.turns = tile.turns;
  schedule.cluster = cluster;
  schedule.stages = kMostAhead;  // of the next tile too
  while (schedule.stages > 2 && wgmma_shared_bytes(schedule, vector) > target.shared_memory_per_block)
    --schedule.stages;
  return schedule;
}

std::optional<ContractSchedule> choose_wgmma(const Kernel& kernel, const Target& target, const Problem& problem) {
  if (!target.may.wgmma || problem.m <= kFewRows || problem.n <= kFewRows) return std::nullopt;
  const WarpgroupTile& tile = cheapest(kWarpgroupTiles, problem, target.multiprocessors);
  const std::int64_t tiles_m = ceil_div(problem.m, tile.m);
  const bool full = problem.batch * tiles_m * ceil_div(problem.n, tile.n) >= target.multiprocessors;
  for (const int cluster : {full && (tiles_m % 2 == 0 || tiles_m > 8) ? 2 : 1, 1}) {
    const ContractSchedule schedule = in_warpgroups(tile, cluster, kernel, target);
    if (verify(schedule, kernel, target).empty()) return schedule;
  }
  return std::nullopt;
}

}  // namespace

ContractSchedule choose_contract_schedule(const Kernel& kernel, const Target& target) {
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = tile_element(kernel, parts.contract, target);
  const Problem problem = problem_of(kernel, parts);
  if (const auto wgmma = choose_wgmma(kernel, target, problem)) return *wgmma;
  const Tile& tile = element.tensor_cores ? cheapest(kTensorTiles, problem, target.multiprocessors)
                                          : cheapest(kScalarTiles, problem, target.multiprocessors);
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
  schedule.stages = a.async || b.async ? 3 : 2;  // what passes through registers has no more than one tile in flight
  while (schedule.stages > 2 && shared_bytes(schedule, element, a, b) > target.shared_memory_per_block)
    --schedule.stages;
  return schedule;
}

std::vector<ContractSchedule> contract_alternatives(const Kernel& kernel, const Target& target,
                                                    const ContractSchedule& chosen) {
  std::vector<ContractSchedule> result;
  if (chosen.loop != MainLoop::wgmma) return result;
  for (const WarpgroupTile& tile : kWarpgroupTiles)
    for (const int cluster : {1, 2}) result.push_back(in_warpgroups(tile, cluster, kernel, target));
  return result;
}

}  // namespace tenon::codegen
