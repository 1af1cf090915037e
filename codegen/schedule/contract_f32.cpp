// f32 products on tensor cores in parts of tf32 (codegen/prelude/contract_3xtf32.cuh): tiles, and what they cost.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "codegen/analysis/product_bounds.h"
#include "codegen/analysis/tiling.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

struct Tile {
  int m, n, warps_m, warps_n;
};

// A warp has 32 x 32 of a tile, or less.
constexpr std::array kTiles{Tile{64, 64, 2, 2},  Tile{128, 64, 4, 2}, Tile{64, 128, 2, 4}, Tile{128, 32, 4, 1},
                            Tile{32, 128, 1, 4}, Tile{64, 32, 2, 1},  Tile{32, 64, 1, 2},  Tile{32, 32, 1, 1},
                            Tile{128, 16, 4, 1}, Tile{16, 128, 1, 4}, Tile{64, 16, 2, 1},  Tile{16, 64, 1, 2},
                            Tile{128, 8, 4, 1}};
constexpr std::array kGroups{1, 2, 4};            // of warps, which divide a tile's depth
constexpr int kDepth = 32;                        // of a group
constexpr int kStages = 3;                        // more were within 2 % on an H200
constexpr std::int64_t kLeastProducts = 1 << 20;  // fewer are multiplied plainly, as fast

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Problem {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double products() const { return static_cast<double>(batch * m) * static_cast<double>(n) * static_cast<double>(k); }
  double bytes() const { return 4.0 * static_cast<double>(batch) * static_cast<double>(m * k + k * n + m * n); }
};

Problem problem_of(const Kernel& kernel, const ContractParts& parts) {
  const auto extent = [&](int axis) {
    return typical(kernel.axes[static_cast<std::size_t>(axis)].extent, kernel.symbols);
  };
  Problem problem{1, extent(parts.m), extent(parts.n), extent(parts.k)};
  for (const int axis : parts.batch) problem.batch *= extent(axis);
  return problem;
}

// How both operands are read, whichever tiles they have.
struct Operands {
  TileElement element = {DType::f32, false};
  TileAccess a, b;
  bool bounded = false;
};

Operands operands_of(const Kernel& kernel, const ContractParts& parts, const Target& target) {
  Operands operands;
  operands.a = tile_access(kernel, parts.a, operands.element, Lines::as_read, target);
  operands.b = tile_access(kernel, parts.b, operands.element, Lines::as_read, target);
  operands.bounded = target.may.product_bounds && !product_bounds(kernel, parts).empty();
  return operands;
}

std::int64_t shared_bytes(const ContractSchedule& schedule, const Operands& operands) {
  return shared_bytes(schedule, operands.element, operands.a, operands.b);
}

ContractSchedule in_tiles(const Tile& tile, int groups, int stages, const Operands& operands, const Target& target) {
  ContractSchedule schedule;
  schedule.loop = MainLoop::mma_3xtf32;
  schedule.tile_m = tile.m;
  schedule.tile_n = tile.n;
  schedule.tile_k = kDepth * groups;
  schedule.warps_m = tile.warps_m;
  schedule.warps_n = tile.warps_n;
  schedule.warps_k = groups;
  schedule.vector_a = operands.a.vector;
  schedule.vector_b = operands.b.vector;
  schedule.bounded = operands.bounded;
  schedule.stages = operands.a.async || operands.b.async ? stages : 2;
  while (schedule.stages > 2 && shared_bytes(schedule, operands) > target.shared_memory_per_block) --schedule.stages;
  return schedule;
}

// Blocks that a multiprocessor has registers and memory for.
int resident(const ContractSchedule& schedule, std::int64_t shared, const Target& target) {
  const int warps = schedule.warps_m * schedule.warps_n * schedule.warps_k;
  const int sums = schedule.tile_m * schedule.tile_n / (32 * schedule.warps_m * schedule.warps_n);
  const int registers = sums > 16 ? 192 : sums > 8 ? 128 : sums > 4 ? 100 : 90;  // as ptxas takes them
  const std::int64_t by_memory =
      target.shared_memory_per_multiprocessor / (shared + target.reserved_shared_memory_per_block);
  const int by_registers = target.registers_per_multiprocessor / (32 * warps * registers);
  return std::max(1, static_cast<int>(std::min<std::int64_t>(by_registers, by_memory)));
}

// In clocks. Fitted to the times of every candidate of 15 products on an H200: the choice by it takes 1.02 times the
// best one's time in geometric mean (bench/results/matmul-f32-2026-11-28-h200.md).
double cost(const ContractSchedule& schedule, std::int64_t shared, bool ends, const Problem& problem,
            const Target& target) {
  constexpr double kOfElement = 4.2, kOfCopy = 6, kOfStep = 14;  // instructions
  constexpr double kClocks = 2.5;  // of an instruction where a scheduler has several warps
  constexpr double kAlone = 1.2;   // times as long with one
  constexpr double kLone = 1.05;   // times as long where nobody multiplies while a block's warps meet
  constexpr double kStart = 1500, kOfBlock = 690;
  constexpr double kShareOfBandwidth = 0.87;
  constexpr int kSchedulers = 4;
  const int of_tile = schedule.warps_m * schedule.warps_n, warps = of_tile * schedule.warps_k;
  const double rows = schedule.tile_m / schedule.warps_m / 16.0, columns = schedule.tile_n / schedule.warps_n / 8.0;
  const double copies = (static_cast<double>(schedule.tile_m) / schedule.vector_a +
                         static_cast<double>(schedule.tile_n) / schedule.vector_b) *
                        8 / (32 * of_tile);
  const double step = 3 * rows * columns + kOfElement * (4 * rows + 2 * columns) + kOfCopy * copies + kOfStep;
  constexpr std::int64_t kSteps = kDepth / 8;
  const std::int64_t rest = problem.k % schedule.tile_k;
  const std::int64_t last = rest == 0 ? 0 : ends ? std::min(kSteps, ceil_div(rest, 8)) : kSteps;
  const auto steps = static_cast<double>(problem.k / schedule.tile_k * kSteps + last);
  const double block = kOfBlock * std::sqrt(schedule.tile_m * schedule.tile_n / 4096.0) * std::sqrt(schedule.warps_k);
  const auto turn = [&](std::int64_t blocks) {  // of those that a multiprocessor runs at once
    const double turns = std::max(kAlone, static_cast<double>(blocks * warps) / kSchedulers);
    return steps * step * kClocks * turns * (blocks == 1 && warps > kSchedulers ? kLone : 1) + kStart +
           block * static_cast<double>(blocks);
  };
  const std::int64_t tiles =
      problem.batch * ceil_div(problem.m, schedule.tile_m) * ceil_div(problem.n, schedule.tile_n);
  const std::int64_t fit = resident(schedule, shared, target), places = fit * target.multiprocessors;
  const std::int64_t others = ceil_div(tiles % places, target.multiprocessors);
  const double clocks = static_cast<double>(tiles / places) * turn(fit) + (others > 0 ? turn(others) : 0);
  return std::max(clocks, problem.bytes() * target.gigahertz / (kShareOfBandwidth * target.bandwidth_gb_s));
}

bool may_choose(const Kernel& kernel, const ContractParts& parts, const Target& target) {
  const TileElement element = tile_element(kernel, parts.contract, target);
  return may_split_f32(target) && !parts.second && element.dtype == DType::f32 && !element.tensor_cores;
}

}  // namespace

std::optional<ContractSchedule> choose_f32_parts(const Kernel& kernel, const ContractParts& parts,
                                                 const Target& target) {
  const Problem problem = problem_of(kernel, parts);
  if (!may_choose(kernel, parts, target) || problem.products() < kLeastProducts) return std::nullopt;
  const Operands operands = operands_of(kernel, parts, target);
  std::vector<std::pair<double, ContractSchedule>> by_clocks;
  for (const Tile& tile : kTiles)
    for (const int groups : kGroups) {
      if (operands.bounded && groups > 1) continue;
      const ContractSchedule schedule = in_tiles(tile, groups, kStages, operands, target);
      const bool ends = ends_early(schedule, kernel, parts);
      by_clocks.emplace_back(cost(schedule, shared_bytes(schedule, operands), ends, problem, target), schedule);
    }
  std::stable_sort(by_clocks.begin(), by_clocks.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  for (const auto& [clocks, schedule] : by_clocks)
    if (verify(schedule, kernel, target).empty()) return schedule;
  return std::nullopt;
}

std::vector<ContractSchedule> f32_parts_alternatives(const Kernel& kernel, const ContractParts& parts,
                                                     const Target& target) {
  std::vector<ContractSchedule> result;
  if (!may_choose(kernel, parts, target)) return result;
  const Operands operands = operands_of(kernel, parts, target);
  for (const Tile& tile : kTiles)
    for (const int groups : kGroups)
      for (const int stages : {2, 3, 4}) result.push_back(in_tiles(tile, groups, stages, operands, target));
  return result;
}

}  // namespace tenon::codegen
