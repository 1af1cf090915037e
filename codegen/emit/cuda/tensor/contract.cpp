// Contract kernels: a block for each tile of the result. What is generated are the operands' loads with their prologues
// and the epilogue with its stores; the loop between them stands in the prelude (contract.cuh).
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/tensor/bounds.h"
#include "codegen/emit/cuda/tensor/tensor.h"
#include "codegen/emit/cuda/text/spell.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {
namespace {

// ", 16": how many steps of the depth are a block. Empty where there is one.
std::string steps_of_block(const Kernel& kernel, InstrId contract, TileElement element, int step) {
  const int terms = block_terms(kernel, contract, element);
  return terms > 0 ? fmt::format(", {}", std::max(1, terms / step)) : std::string();
}

std::string main_loop(const ContractSchedule& schedule, TileElement element, const std::string& index,
                      const std::string& block, bool ends) {
  const std::string tile =
      fmt::format("{}, {}, {}, {}", tile_type(element), schedule.tile_m, schedule.tile_n, schedule.tile_k);
  switch (schedule.loop) {
    case MainLoop::mma_sync:
      return fmt::format("contract_mma<{}, {}, {}, {}, {}{}>", tile, schedule.warps_m, schedule.warps_n,
                         schedule.stages, index, block);
    case MainLoop::simt:
      return fmt::format("contract_simt<{}, {}, {}, {}, {}{}>", tile, 32 * schedule.warps_m * schedule.warps_n,
                         schedule.warps_k, schedule.stages, index, block);
    case MainLoop::mma_3xtf32:
      return fmt::format("contract_3xtf32<{}, {}, {}, {}, {}, {}, {}, {}, {}>", schedule.tile_m, schedule.tile_n,
                         schedule.tile_k, schedule.warps_m, schedule.warps_n, schedule.warps_k, schedule.stages, ends,
                         index);
    case MainLoop::wgmma:
    case MainLoop::stream:
    case MainLoop::cpu: break;
  }
  TENON_CHECK(false, "the main loop has an emitter of its own, or is a CPU's");
  return {};
}

// Blocks that a multiprocessor must have registers for: whatever a compiler could convert at once, more warps hide
// more.
int blocks_ahead(const ContractSchedule& schedule, const Kernel& kernel, const Target& target) {
  const int registers = 32 * schedule.warps_k * stream_registers(schedule, kernel, target);
  return std::max(kAllRegisters, target.registers_per_multiprocessor / registers);
}

// A matrix that streams past few rows or columns.
Source emit_stream(const Kernel& kernel, const Target& target) {
  const auto& schedule = std::get<ContractSchedule>(kernel.schedule);
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = tile_element(kernel, parts.contract, target);
  const StreamParts stream = stream_parts(schedule, kernel, parts, element, target);
  const Names names = names_of(kernel);
  const auto extent = [&](int axis) { return kernel.axes[static_cast<std::size_t>(axis)].extent; };
  const Dim tiles_m = blocks_of(extent(parts.m), schedule.tile_m),
            tiles_n = blocks_of(extent(parts.n), schedule.tile_n);
  const std::string index = index_type(kernel);
  const bool rows = stream.few_are_rows;
  const int wide = rows ? schedule.tile_n : schedule.tile_m, few = rows ? schedule.tile_m : schedule.tile_n;

  Writer out(1);
  join_stream(out, target);
  out.line("extern __shared__ __align__(16) unsigned char shared[];");
  out.line(fmt::format("const raster tile = raster_of(blockIdx.x, {}, {});", dim_text(tiles_m, names),
                       dim_text(tiles_n, names)));
  decode_batch(out, kernel, parts.batch, "tile.batch");
  CacheHints cache;
  const std::uint64_t both = 1ull << stream.matrix.outer | 1ull << stream.matrix.depth;
  const auto is_read_again = [&](InstrId id) {  // a line of scales has those of groups to come; a byte, the next step
    const Access& access = kernel.instr(id).access;
    const int steps = stream.ahead ? stream.matrix_access.vector : 2;
    return (stream.ahead || !stream.matrix_access.along_depth) &&
           step_along(access.offset, stream.matrix.depth, steps, kernel) == 0;
  };
  for (const InstrId id : stream.matrix.region)
    if (schedule.streaming_loads && kernel.instr(id).kind == InstrKind::load &&
        (kernel.instr(id).depends & both) == both && !is_read_again(id))
      cache.streamed.push_back(id);
  const auto emit_matrix = stream.ahead ? emit_operand_ahead : emit_operand;
  emit_matrix(out, kernel, "matrix", stream.matrix, element, stream.matrix_access, cache);
  emit_operand(out, kernel, "few", stream.few, element, stream.few_access);
  emit_result(out, kernel, parts, element);
  out.line(fmt::format("contract_stream<{}, {}, {}, {}, {}, {}, {}{}>(", tile_type(element), wide, few,
                       schedule.warps_k, schedule.tile_k / stream.chunk, rows, index,
                       steps_of_block(kernel, parts.contract, element, stream.chunk)));
  out.line(fmt::format("    shared, matrix, few, out, ({0})tile.{1} * {2}, ({0})tile.{3} * {4}, {5}, {6}, {7});", index,
                       rows ? "n" : "m", wide, rows ? "m" : "n", few, dim_text(extent(rows ? parts.n : parts.m), names),
                       dim_text(extent(rows ? parts.m : parts.n), names), dim_text(extent(parts.k), names)));

  LaunchRule launch;
  launch.grid_x = extent_of_axes(kernel, parts.batch) * tiles_m * tiles_n;
  launch.block = 32 * schedule.warps_k;
  launch.shared_bytes = static_cast<int>(stream_shared_bytes(schedule));
  return finish(kernel, out, launch, target, stream.ahead ? blocks_ahead(schedule, kernel, target) : kAllRegisters);
}

}  // namespace

Source emit_contract(const Kernel& kernel, const Target& target) {
  const auto& schedule = std::get<ContractSchedule>(kernel.schedule);
  if (schedule.loop == MainLoop::wgmma) return emit_contract_wgmma(kernel, target);
  if (schedule.loop == MainLoop::stream) return emit_stream(kernel, target);
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = loop_element(schedule, kernel, parts.contract, target);
  const Lines lines = loop_lines(schedule, element);
  const TileAccess a = tile_access(kernel, parts.a, element, lines, target, schedule.vector_a);
  const TileAccess b = tile_access(kernel, parts.b, element, lines, target, schedule.vector_b);
  const Names names = names_of(kernel);
  const auto extent = [&](int axis) { return kernel.axes[static_cast<std::size_t>(axis)].extent; };
  const Dim tiles_m = blocks_of(extent(parts.m), schedule.tile_m),
            tiles_n = blocks_of(extent(parts.n), schedule.tile_n);
  const std::string index = index_type(kernel);

  Writer out(1);
  join_stream(out, target);
  out.line("extern __shared__ __align__(16) unsigned char shared[];");
  out.line(fmt::format("const raster tile = raster_of({}, {}, {});",
                       schedule.bounded ? first_block(product_bounds(kernel, parts), parts) : "blockIdx.x",
                       dim_text(tiles_m, names), dim_text(tiles_n, names)));
  decode_batch(out, kernel, parts.batch, "tile.batch");
  emit_operand(out, kernel, "a", parts.a, element, a);
  emit_operand(out, kernel, "b", parts.b, element, b);
  emit_result(out, kernel, parts, element);
  if (schedule.bounded) {
    emit_depth_of(out, kernel, parts, schedule.tile_m, schedule.tile_n);
    out.line(fmt::format("const auto depth = depth_of(({0})tile.m * {1}, ({0})tile.n * {2});",
                         bound_type(kernel, parts), schedule.tile_m, schedule.tile_n));
  }
  out.line(fmt::format(
      "{}(", main_loop(schedule, element, index, steps_of_block(kernel, parts.contract, element, schedule.tile_k),
                       ends_early(schedule, kernel, parts))));
  const std::string first = fmt::format("({})depth.begin", index);
  out.line(fmt::format(
      "    shared, {6}, out, ({0})tile.m * {1}, ({0})tile.n * {2}, {3}, {4}, {5});", index, schedule.tile_m,
      schedule.tile_n, dim_text(extent(parts.m), names), dim_text(extent(parts.n), names),
      schedule.bounded ? fmt::format("({})(depth.end - depth.begin)", index) : dim_text(extent(parts.k), names),
      schedule.bounded && !product_bounds(kernel, parts).depth.empty()
          ? fmt::format("make_operand_from(a, {0}), make_operand_from(b, {0})", first)
          : std::string("a, b")));

  LaunchRule launch;
  launch.grid_x = extent_of_axes(kernel, parts.batch) * tiles_m * tiles_n;
  launch.block = 32 * schedule.warps_m * schedule.warps_n * schedule.warps_k;
  launch.shared_bytes = static_cast<int>(shared_bytes(schedule, element, a, b));
  return finish(kernel, out, launch, target, kAllRegisters);
}

}  // namespace tenon::codegen::cuda
