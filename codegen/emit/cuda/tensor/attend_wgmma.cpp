// Attend kernels on sm_90a. What is generated: the boxes of queries, keys and values, the two products, the functions
// of the softmax, the ranges of keys, and the epilogue; the loop around them stands in the prelude (attend_wgmma.cuh).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/analysis/read_ahead.h"
#include "codegen/analysis/scaled_scores.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/tensor/attend_boxes.h"
#include "codegen/emit/cuda/tensor/attention.h"
#include "codegen/emit/cuda/tensor/block_mask.h"
#include "codegen/emit/cuda/tensor/product.h"
#include "codegen/emit/cuda/tensor/tensor.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kOfL2 = 32 << 20;  // bytes of keys and values that are walked at once

// The score's function with the constant left to the exponential: the value that has it is that without.
void emit_score(Writer& out, const AttentionText& a, const std::string& name, const Region& region,
                const ScaledScores& scaled, InstrId result, InstrId read = -1, bool boxed = false) {
  KeyFunction function = drawing_function(a, name, parameter(a, a.parts.scores), region);
  function.read = read;
  function.boxed = boxed;
  if (read >= 0) std::erase(function.region, read);
  if (scaled.product < 0 || result == scaled.product) {
    std::erase(function.region, scaled.product);
    return emit_key_function(out, a, function, value_name(a.kernel, result == scaled.product ? scaled.value : result));
  }
  const auto at = std::find(function.region.begin(), function.region.end(), scaled.product);
  open_key_function(out, a, function);
  define(out, a.kernel, Region(function.region.begin(), at), a.names);
  out.line(fmt::format("const float {} = {};  // times {}, in the exponent", value_name(a.kernel, scaled.product),
                       value_name(a.kernel, scaled.value), scaled.scale));
  define(out, a.kernel, Region(at + 1, function.region.end()), a.names);
  close_key_function(out, function, value_name(a.kernel, result));
}

// "const auto visible = [&](int i, int s) -> bool { … };": what masks ask beside bounds.
void emit_visible(Writer& out, const AttentionText& a) {
  std::vector<InstrId> asked;
  std::string text;
  for (const MaskCondition& mask : a.masks.others) {
    asked.push_back(mask.condition);
    text +=
        fmt::format("{}{}{}", text.empty() ? "" : " && ", mask.holds ? "" : "!", value_name(a.kernel, mask.condition));
  }
  out.open(fmt::format("const auto visible = [&]({0} {1}, {0} {2}) -> bool {{", a.index, axis_name(a, a.parts.i),
                       axis_name(a, a.parts.j)));
  define(out, a.kernel, needed(a.kernel, asked), a.names);
  out.line(fmt::format("return {};", text));
  out.close("};");
}

// "const auto with_weights = [&](u32 batch, const auto& use) { … use(weights, out); };"
void emit_weights(Writer& out, AttentionText& a, const ScaledScores& scaled, const std::optional<BoxedScores>& boxed,
                  const Features& may) {
  const AttendParts& p = a.parts;
  const bool plain = scaled.value == p.scores;
  const char* by = a.masks.complete() ? "by_ranges" : a.masks.exact ? "by_conditions" : "by_scores";
  const char* masked = a.masks.complete() ? "0" : a.masks.exact ? "visible" : "score";
  out.open("const auto with_weights = [&](u32 batch, const auto& use) {");
  decode_batch(out, a.kernel, p.batch, "batch");
  emit_keys(out, a);
  if (!a.masks.exact) emit_score(out, a, "score", p.score_region, scaled, p.score);
  if (a.masks.exact && !a.masks.complete()) emit_visible(out, a);
  const InstrId read = boxed ? boxed->read : may.read_ahead ? read_ahead(a.kernel, p, a.masks) : -1;
  emit_score(out, a, "open_score", open_region(a.kernel, p, a.masks), scaled, a.masks.open, read, boxed.has_value());
  emit_shift(out, a);
  emit_weight(out, a);
  emit_key_function(out, a, drawing_function(a, "factor", a.real + " w", p.factor_region), factored(a));
  out.line(fmt::format(
      "const auto weights = make_weights<{}, {}, {}, masking::{}>({}, {}, open_score, shift, weight, factor);",
      p.maximum >= 0, plain, !p.key_factors.empty(), by,
      literal(ir::Scalar(static_cast<double>(scaled.scale)), DType::f32), masked));
  emit_attention_result(out, a);
  out.line("use(weights, out);");
  out.close("};");
}

// "const auto keys_of = [&](u32 batch, int first, int rows) { … };"
void emit_ranges(Writer& out, const AttentionText& a, bool block_mask) {
  const std::string& type = a.index;
  const std::string keys = dim_text(extent(a, a.parts.j), a.names);
  out.open(fmt::format("const auto keys_of = [&](u32 batch, {0} first, int rows) -> key_range<{0}> {{", type));
  const bool complete = a.masks.exact && (block_mask || a.masks.others.empty());
  out.line(fmt::format("key_range<{}> range = {{0, {}, 0, {}}};", type, keys, complete ? keys : "0"));
  if (!a.masks.bounds.empty()) {
    decode_batch(out, a.kernel, a.parts.batch, "batch");
    emit_bound_values(out, a);
    out.line(fmt::format("const {0} last = min(first + rows, ({0}){1}) - 1;", type,
                         parenthesized(dim_text(extent(a, a.parts.i), a.names))));
  }
  for (const KeyBound& bound : a.masks.bounds) {
    const std::string limit = bound.upper ? "range.last" : "range.first";
    out.line(bounded(a, bound, true, limit, "first", "last"));
    if (complete) out.line(bounded(a, bound, false, limit + "_open", "first", "last"));
  }
  out.line("return range;");
  out.close("};");
}

// Later queries see more keys, and as many of the first as those ahead of them.
bool in_pairs(const AttentionText& a) {
  return grows_with_query(a) && std::none_of(a.masks.bounds.begin(), a.masks.bounds.end(),
                                             [](const KeyBound& b) { return !b.upper && b.slope != 0; });
}

// Heads that all multiprocessors have tiles of at once, so that blocks which read the same keys do it together; no more
// than have their keys and values in part of the second-level cache. A power of two, as are mostly the heads that share
// keys and the sequences that share a bias.
std::int64_t heads_together(const AttentionText& a, const AttendSchedule& schedule, const Target& target) {
  constexpr std::int64_t kTypical = 1024;  // where lengths are symbols
  const auto length = [&](int axis) {
    const SymbolBounds range = extent(a, axis).bounds(a.kernel.symbols);
    return std::clamp(kTypical, range.min, range.max);
  };
  const std::int64_t bytes = std::max<std::int64_t>(1, length(a.parts.j)) * 2 * (a.tiles.depth + a.tiles.width);
  const std::int64_t tiles = (length(a.parts.i) + schedule.tile_q - 1) / schedule.tile_q;
  const std::int64_t turns = std::max<std::int64_t>(1, in_pairs(a) ? (tiles + 1) / 2 : tiles);
  const std::int64_t wanted = (target.multiprocessors + turns - 1) / turns;
  const std::int64_t most = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, kOfL2 / bytes));
  std::int64_t heads = 1;
  while (2 * heads <= most) heads *= 2;
  return heads;
}

}  // namespace

Source emit_attend_wgmma(const Kernel& kernel, const Target& target) {
  const auto& schedule = std::get<AttendSchedule>(kernel.schedule);
  AttentionText a = attention_text(kernel, target);
  const AttendParts& p = a.parts;
  const ScaledScores scaled = scaled_scores(kernel, p, a.masks);

  Writer out(1);
  join_later(out, target);
  out.line("extern __shared__ __align__(1024) unsigned char shared[];");
  LaunchRule launch;
  bool pages = false;
  for (const BoxedTile& tile :
       {BoxedTile{"q", p.q, schedule.tile_q, a.tiles.depth}, BoxedTile{"k", p.k, schedule.tile_kv, a.tiles.depth},
        BoxedTile{"v", p.v, schedule.tile_kv, wgmma_width(a.tiles)}})
    pages |= emit_load(out, a, tile, launch);
  const DType type = a.tiles.element.dtype;
  const bool f8 = is_f8(type);
  const auto multiplied = [&](const OperandPart& part) {  // f8 operands may be of both kinds
    return f8 ? stored_dtype(kernel, kernel.instr(part.value).access) : type;
  };
  const auto boxed = schedule.score_boxes ? boxed_scores(kernel, p, a.masks) : std::nullopt;
  if (boxed) emit_score_boxes(out, a, *boxed, schedule.tile_kv, launch);
  const AttendStages stages = attend_stages(schedule, a.tiles, target);
  emit_product(out,
               {.name = "multiply_scores", .a = multiplied(p.q), .b = multiplied(p.k), .columns = schedule.tile_kv});
  emit_product(out, {.name = "multiply_values",
                     .a = type,
                     .b = multiplied(p.v),
                     .columns = wgmma_width(a.tiles),
                     .across_b = !f8,
                     .a_in_registers = true});
  emit_ranges(out, a, schedule.block_mask);
  if (schedule.block_mask) emit_see_tiles(out, a, tile_tests(kernel, a.masks), schedule.tile_kv);
  emit_weights(out, a, scaled, boxed, target.may);
  const Dim batches = extent_of_axes(kernel, p.batch);
  const auto text = [&](int axis) { return dim_text(extent(a, axis), a.names); };
  const bool whole_q = extent(a, p.i).bounds(kernel.symbols).divisor % schedule.tile_q == 0;
  std::string more;  // what few kernels have
  if (pages || f8 || boxed) more += fmt::format(", {}", pages);
  if (f8 || boxed) more += fmt::format(", {}", f8 ? std::ilogb(p.weight_scale) : 0);
  if (boxed) more += fmt::format(", {}, {}", boxed->bytes, stages.scores);
  out.line(fmt::format("using tiles = attend_tiles<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}{}>;",
                       storage_type(type), schedule.tile_q / 64, schedule.tile_kv, a.tiles.depth, wgmma_width(a.tiles),
                       schedule.stages, stages.queries, whole_q, schedule.turns, schedule.parts, schedule.split_kv,
                       schedule.resident, schedule.block_mask, more));
  out.line(fmt::format(
      "attend_wgmma<tiles, {}, {}>(shared, join, load_q, load_k, load_v, {}, multiply_scores, multiply_values,",
      in_pairs(a) && schedule.parts * schedule.split_kv == 1, a.index, boxed ? "load_s" : "0"));
  const bool split = schedule.split_kv > 1;
  out.line(fmt::format("    keys_of, {}, with_weights, {}, {}, {}, {}, {}, {});",
                       schedule.block_mask ? "see_tiles" : "0", split ? "split_tiles{scratch, zeroed}" : "0",
                       dim_text(batches, a.names), heads_together(a, schedule, target), text(p.i), text(p.j),
                       text(p.e)));

  constexpr std::int64_t kCounters = 128;  // bytes: a line for each tile
  const Dim queries = batches * blocks_of(extent(a, p.i), schedule.tile_q);
  launch.grid_x = queries * Dim(schedule.parts * schedule.split_kv);
  launch.together = schedule.split_kv;
  launch.resident = schedule.parts == 1;
  launch.cluster = schedule.parts;
  launch.block = 2 * schedule.tile_q + 128;
  launch.shared_bytes = static_cast<int>(wgmma_shared_bytes(schedule, a.tiles, stages));
  const Dim sums = queries * Dim(std::int64_t{4} * schedule.split_kv * schedule.tile_q * (wgmma_width(a.tiles) + 16));
  return finish(kernel, out, launch, target, schedule.resident,
                split ? Meeting{.scratch_bytes = sums, .zeroed_bytes = queries * Dim(kCounters)} : Meeting{});
}

}  // namespace tenon::codegen::cuda
