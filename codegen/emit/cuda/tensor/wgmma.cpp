// Contract kernels on sm_90a. What is generated: the boxes of both operands, the one product instruction that the loop
// uses, and the epilogue; the loop around them stands in the prelude (contract_wgmma.cuh).
#include <fmt/format.h>

#include "codegen/analysis/box.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/tensor/bounds.h"
#include "codegen/emit/cuda/tensor/product.h"
#include "codegen/emit/cuda/tensor/tensor.h"
#include "codegen/emit/cuda/text/spell.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {
namespace {

constexpr int kLineBytes = 128;  // of shared memory

// How a block asks for its part of an operand's tile: lines of the tile lie along the depth, or boxes of one line
// across it.
struct Tile {
  std::string name;  // "a"
  int map = 0;
  int outer = 0;   // extent of the tile
  int shared = 1;  // blocks of the cluster that share it
};

// "const auto load_a = [&](unsigned char* to, arrival* full, u32 batch, int i0, int r2) { … };"
void emit_load(Writer& out, const Kernel& kernel, const ContractParts& parts, const OperandPart& part,
               const BoxAccess& access, const Tile& tile) {
  const Names names = names_of(kernel);
  const std::string type = index_type(kernel);
  const std::string& outer = names.axes[static_cast<std::size_t>(part.outer)];
  const std::string& depth = names.axes[static_cast<std::size_t>(part.depth)];
  out.open(fmt::format("const auto load_{} = [&](unsigned char* to, arrival* full, u32 batch, {} {}, {} {}) {{",
                       tile.name, type, outer, type, depth));
  decode_batch(out, kernel, parts.batch, "batch");
  const std::string copy = tile.shared > 1 ? "copy_box_to_all" : "copy_box";
  const std::string blocks = tile.shared > 1 ? fmt::format(", {}", (1 << tile.shared) - 1) : "";
  const auto call = [&](const std::string& place, const std::string& first) {
    std::string text = fmt::format("{}({}, map{}, full{}", copy, place, tile.map, blocks);
    for (const std::vector<int>& axes : access.axes)
      text += ", " + (axes.front() == part.outer ? "(int)" + first : box_coordinate(kernel, axes));
    out.line(text + ");");
  };
  if (access.along_depth) {
    const int lines = tile.outer / tile.shared;
    if (tile.shared == 1) {
      call("to", outer);
    } else {
      out.line(fmt::format("const int part = (int)cluster_rank() * {};", lines));
      call("to + part * 128", fmt::format("({} + part)", outer));
    }
  } else {
    constexpr int kLine = kLineBytes / 2;  // of elements of 16 bits: others lie along the depth
    const int boxes = tile.outer / kLine / tile.shared;
    out.unrolled("j", boxes);
    out.line(tile.shared == 1 ? std::string("const int box = j;")
                              : fmt::format("const int box = (int)cluster_rank() * {} + j;", boxes));
    call(fmt::format("to + box * {}", kLine * kLineBytes), fmt::format("({} + box * {})", outer, kLine));
    out.close();
  }
  out.close("};");
}

// "const auto load_b = …": both matrices of a pair, one tile beside the other.
void emit_both(Writer& out, const Kernel& kernel, const ContractParts& parts, Feed feed, int columns) {
  if (feed == Feed::threads) {
    out.line(fmt::format("const auto load_b = make_fed_tiles<{}>(load_first, load_second);", columns * kLineBytes));
    return;
  }
  const Names names = names_of(kernel);
  const std::string& n = names.axes[static_cast<std::size_t>(parts.n)];
  const std::string& k = names.axes[static_cast<std::size_t>(parts.k)];
  out.open(fmt::format("const auto load_b = [&](unsigned char* to, arrival* full, u32 batch, {0} {1}, {0} {2}) {{",
                       index_type(kernel), n, k));
  out.line(fmt::format("load_first(to, full, batch, {}, {});", n, k));
  out.line(fmt::format("load_second(to + {}, full, batch, {}, {});", columns * kLineBytes, n, k));
  out.close("};");
}

// Whether tiles of so many divide the axis.
bool is_whole(const Kernel& kernel, int axis, int tile) {
  return kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols).divisor % tile == 0;
}

}  // namespace

Source emit_contract_wgmma(const Kernel& kernel, const Target& target) {
  const auto& schedule = std::get<ContractSchedule>(kernel.schedule);
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = warpgroup_element(kernel, parts, target);
  const Tile tile_a{"a", 0, schedule.tile_m, 1};
  const int columns = schedule.tile_n / schedule.products;  // of each product
  const Tile tile_b{parts.second ? "first" : "b", schedule.feed_a == Feed::boxes ? 1 : 0, columns, schedule.cluster};
  const Tile tile_second{"second", tile_b.map + 1, columns, schedule.cluster};
  const Names names = names_of(kernel);
  const auto extent = [&](int axis) { return kernel.axes[static_cast<std::size_t>(axis)].extent; };
  const Dim batches = extent_of_axes(kernel, parts.batch);

  Writer out(1);
  join_later(out, target);
  out.line("extern __shared__ __align__(1024) unsigned char shared[];");
  LaunchRule launch;
  bool asynchronous = false;                    // copies of threads
  const bool few_registers = schedule.bounded;  // of producers, beside where they stand among the bounds
  const auto feed = [&](Feed how, const OperandPart& part, const Tile& tile) {
    if (how == Feed::boxes) {
      std::string why_not;
      const auto box = box_access(kernel, part, parts.batch, why_not);
      TENON_CHECK(box, why_not);
      emit_load(out, kernel, parts, part, *box, tile);
      launch.tensor_maps.push_back(
          tensor_map(kernel, *box, box->along_depth ? tile.outer / tile.shared : kLineBytes / 2));
      return box->along_depth;
    }
    const TileAccess access = part.outer == parts.n ? columns_access(kernel, parts, part, element, target)
                                                    : tile_access(kernel, part, element, Lines::as_read, target);
    asynchronous = asynchronous || access.async;
    emit_fed_tile(out, kernel, tile.name, part, parts.batch, element, access,
                  {.outer = tile.outer,
                   .of_rows = part.outer == parts.m,
                   .whole = is_whole(kernel, part.outer, tile.outer) && is_whole(kernel, part.depth, schedule.tile_k),
                   .registers = few_registers && (schedule.producers == 2 || tile.outer > 128) ? 16 : 32});
    return access.along_depth;
  };
  const bool along_depth_a = feed(schedule.feed_a, parts.a, tile_a);
  const bool along_depth_b = feed(schedule.feed_b, parts.b, tile_b);
  if (parts.second) {
    feed(schedule.feed_b, parts.second->b, tile_second);
    emit_both(out, kernel, parts, schedule.feed_b, columns);
  }
  const bool both_fed = schedule.feed_a == Feed::threads && schedule.feed_b == Feed::threads;
  if (both_fed)
    out.line(fmt::format("const auto load_both = make_fed_tiles<{}>(load_a, load_b);", schedule.tile_m * kLineBytes));
  const auto multiplied = [&](const OperandPart& part) {  // f8 operands may be of both kinds
    return is_f8(element.dtype) ? kernel.instr(part.value).dtype : element.dtype;
  };
  emit_product(out, {.a = multiplied(parts.a),
                     .b = multiplied(parts.b),
                     .columns = schedule.tile_n,
                     .across_a = !along_depth_a,
                     .across_b = !along_depth_b});
  out.open("const auto with_result = [&](u32 batch, const auto& use) {");
  decode_batch(out, kernel, parts.batch, "batch");
  if (schedule.box_results) {
    std::string why_not;
    const auto box = result_box(kernel, parts, why_not);
    TENON_CHECK(box, why_not);
    emit_result_boxes(out, kernel, parts, element, *box, launch.tensor_maps.size());
    launch.tensor_maps.push_back(result_map(kernel, *box));
  } else {
    emit_result_ahead(out, kernel, parts, element);
  }
  out.line("use(out);");
  out.close("};");
  const int lag = !asynchronous ? 0 : schedule.producers == 2 ? 1 : 2;
  out.line(fmt::format(
      "using tiles = wgmma_tiles<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>;",
      storage_type(element.dtype), schedule.tile_m, schedule.tile_n, schedule.consumers, schedule.turns, schedule.lead,
      schedule.producers, schedule.stages, schedule.cluster, schedule.parts, schedule.split_k, schedule.box_results,
      schedule.products, schedule.block_steps, along_depth_a, along_depth_b, schedule.feed_a == Feed::boxes,
      schedule.feed_b == Feed::boxes, lag));
  if (schedule.bounded) emit_bounds(out, kernel, parts, schedule.tile_m * schedule.cluster, columns);
  const bool split = schedule.split_k > 1;
  out.line(fmt::format(
      "contract_wgmma{}<tiles, {}>(shared, join, {}{}, load_b, multiply, with_result, {}, {}, {}, {}{});",
      schedule.bounded ? "_bounded" : "", index_type(kernel), schedule.bounded ? "" : "blockIdx.x, gridDim.x, ",
      both_fed ? "load_both" : "load_a", dim_text(batches, names), dim_text(extent(parts.m), names),
      dim_text(extent(parts.n), names), schedule.bounded ? "bounds" : dim_text(extent(parts.k), names),
      split ? ", split_tiles{scratch, zeroed}" : ""));

  constexpr std::int64_t kCounters = 128;  // bytes: a line for each tile
  const Dim tiles =
      batches * blocks_of(extent(parts.m), schedule.tile_m * schedule.cluster) * blocks_of(extent(parts.n), columns);
  launch.grid_x = tiles * Dim(schedule.cluster * schedule.parts * schedule.split_k);
  launch.together = schedule.split_k;
  launch.resident = schedule.parts == 1;
  launch.block = 128 * (schedule.consumers + schedule.producers);
  launch.shared_bytes = static_cast<int>(wgmma_shared_bytes(schedule));
  launch.cluster = schedule.cluster * schedule.parts;
  const Dim sums = tiles * Dim(std::int64_t{4} * schedule.split_k * schedule.tile_m * schedule.tile_n);
  return finish(kernel, out, launch, target, kAllRegisters,
                split ? Meeting{.scratch_bytes = sums, .zeroed_bytes = tiles * Dim(kCounters)} : Meeting{});
}

}  // namespace tenon::codegen::cuda
