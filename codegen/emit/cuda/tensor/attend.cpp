// Attend kernels: a block for each tile of queries. What is generated are the operands' loads, the score function, the
// weights, the range of keys that masks leave, and the epilogue; the loop stands in the prelude (attend.cuh).
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/tensor/attention.h"
#include "codegen/emit/cuda/tensor/tensor.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

void emit_softmax(Writer& out, const AttentionText& a) {
  const AttendParts& p = a.parts;
  emit_key_function(out, a, key_function("score", parameter(a, p.scores), p.score_region),
                    value_name(a.kernel, p.score));
  emit_shift(out, a);
  emit_weight(out, a);
  emit_key_function(out, a, key_function("factor", a.real + " w", p.factor_region), factored(a));
  out.line(fmt::format("const auto weights = make_softmax<{}, {}, {}>(score, shift, weight, factor);", p.maximum >= 0,
                       p.shift >= 0, !p.key_factors.empty()));
}

// "first_key" and "last_key": the keys that some query of the tile sees, from a multiple of the tile on.
void emit_range(Writer& out, const AttentionText& a, const AttendSchedule& schedule) {
  out.line(fmt::format("{} first_key = 0, last_key = {};", a.index, dim_text(extent(a, a.parts.j), a.names)));
  if (a.masks.bounds.empty()) return;
  out.line(fmt::format("const {0} last_query = min(first_query + {1}, ({0}){2}) - 1;", a.index, schedule.tile_q,
                       parenthesized(dim_text(extent(a, a.parts.i), a.names))));
  emit_bound_values(out, a);
  for (const KeyBound& bound : a.masks.bounds)
    out.line(bounded(a, bound, true, bound.upper ? "last_key" : "first_key", "first_query", "last_query"));
  if (std::any_of(a.masks.bounds.begin(), a.masks.bounds.end(), [](const KeyBound& b) { return !b.upper; }))
    out.line(fmt::format("first_key -= first_key % {};", schedule.tile_kv));
}

}  // namespace

Source emit_attend(const Kernel& kernel, const Target& target) {
  const auto& schedule = std::get<AttendSchedule>(kernel.schedule);
  if (schedule.loop == MainLoop::wgmma) return emit_attend_wgmma(kernel, target);
  const AttentionText a = attention_text(kernel, target);
  const AttendTiles& tiles = a.tiles;
  const bool mma = tiles.element.tensor_cores;
  const Dim tiles_q = blocks_of(extent(a, a.parts.i), schedule.tile_q);
  const Dim tiles_e = mma ? Dim(1) : blocks_of(extent(a, a.parts.e), tiles.width);

  Writer out(1);
  join_stream(out, target);
  out.line("extern __shared__ __align__(16) unsigned char shared[];");
  out.line(
      fmt::format("const u32 tiles_q = {}, tiles_e = {};", dim_text(tiles_q, a.names), dim_text(tiles_e, a.names)));
  // Where later queries see more keys, their tiles come first, so that short tiles fill the end.
  const char* tile =
      grows_with_query(a) ? "(tiles_q - 1 - blockIdx.x / tiles_e % tiles_q)" : "(blockIdx.x / tiles_e % tiles_q)";
  out.line(fmt::format("const {0} first_query = ({0}){1} * {2};", a.index, tile, schedule.tile_q));
  out.line("const u32 batch = blockIdx.x / (tiles_e * tiles_q);");
  decode_batch(out, kernel, a.parts.batch, "batch");
  emit_range(out, a, schedule);
  const auto operand = [&](const char* name, const OperandPart& part, Lines lines) {
    emit_operand(out, kernel, name, part, tiles.element,
                 tile_access(kernel, part, tiles.element, mma ? lines : Lines::along_outer, target, schedule.vector));
  };
  operand("q", a.parts.q, Lines::along_depth);
  operand("k", a.parts.k, Lines::along_depth);
  operand("v", a.parts.v, Lines::along_outer);
  emit_softmax(out, a);
  emit_attention_result(out, a);
  const auto text = [&](int axis) { return dim_text(extent(a, axis), a.names); };
  const std::string limits = fmt::format("first_key, last_key, {}, {}, {}, {}", text(a.parts.i), text(a.parts.j),
                                         text(a.parts.d), text(a.parts.e));
  if (mma) {
    out.line(fmt::format("attend_mma<{}, {}, {}, {}, {}, {}>(", tile_type(tiles.element), schedule.tile_q,
                         schedule.tile_kv, tiles.depth, tiles.width, a.index));
    out.line(fmt::format("    shared, q, k, v, weights, out, first_query, {});", limits));
  } else {
    out.line(fmt::format("attend_simt<{}, {}, {}, {}, {}>(", a.real, schedule.tile_q, schedule.tile_kv, tiles.width,
                         a.index));
    out.line(fmt::format("    shared, q, k, v, weights, out, first_query, ({})(blockIdx.x % tiles_e) * {}, {});",
                         a.index, tiles.width, limits));
  }

  LaunchRule launch;
  launch.grid_x = extent_of_axes(kernel, a.parts.batch) * tiles_q * tiles_e;
  launch.block = mma ? schedule.tile_q * 2 : schedule.tile_q * 4;
  launch.shared_bytes = static_cast<int>(shared_bytes(schedule, tiles));
  return finish(kernel, out, launch, target, kAllRegisters);
}

}  // namespace tenon::codegen::cuda
