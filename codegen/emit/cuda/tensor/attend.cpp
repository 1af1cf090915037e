// Attend kernels: a block for each tile of queries. What is generated are the operands' loads, the score function, the
// weights, the range of keys that masks leave, and the epilogue; the loop stands in the prelude (attend.cuh).
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/key_bounds.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/tensor/tensor.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {
namespace {

struct Emission {
  const Kernel& kernel;
  AttendParts parts;
  std::vector<KeyBound> bounds;
  AttendTiles tiles;
  Names names;
  std::string index;  // the type of offsets
  std::string real;   // of scores, weights and sums
};

const std::string& axis_name(const Emission& e, int axis) { return e.names.axes[static_cast<std::size_t>(axis)]; }
const Dim& extent(const Emission& e, int axis) { return e.kernel.axes[static_cast<std::size_t>(axis)].extent; }

// "float v12", or a type alone where there is no such value.
std::string parameter(const Emission& e, InstrId value) {
  return value < 0 ? e.real : fmt::format("{} v{}", e.real, value);
}

// "[&](int i, int j, float v7) { …; return v15; }" as a definition of `name`.
void emit_function(Writer& out, const Emission& e, const std::string& name, const std::string& given,
                   const Region& region, const std::string& result) {
  out.open(fmt::format("const auto {} = [&]({}) -> {} {{", name, given, e.real));
  define(out, e.kernel, region, e.names);
  out.line(fmt::format("return {};", result));
  out.close("};");
}

// The weight w times what varies along the row, rounded as the second contraction's operand is.
std::string factored(const Emission& e) {
  std::string text = "w";
  for (const Factor& factor : e.parts.key_factors) {
    const std::string value = value_name(e.kernel, factor.value);
    if (factor.op != ir::Op::where) {
      text = fmt::format("{} {} {}", parenthesized(text), factor.op == ir::Op::div ? "/" : "*", value);
    } else {
      text = factor.kept ? fmt::format("({} ? {} : 0)", value, text) : fmt::format("({} ? 0 : {})", value, text);
    }
  }
  const DType real = e.tiles.element.dtype == DType::f64 ? DType::f64 : DType::f32;
  const bool as_tiles = e.parts.weight_dtype == e.tiles.element.dtype;  // the tile rounds to the same dtype
  return as_tiles ? text : converted(text, real, e.parts.weight_dtype);
}

void emit_softmax(Writer& out, const Emission& e) {
  const AttendParts& p = e.parts;
  const std::string i = fmt::format("{} {}", e.index, axis_name(e, p.i));
  const std::string j = fmt::format("{} {}", e.index, axis_name(e, p.j));
  emit_function(out, e, "score", fmt::format("{}, {}, {}", i, j, parameter(e, p.scores)), p.score_region,
                value_name(e.kernel, p.score));
  emit_function(out, e, "shift", fmt::format("{}, {}", i, parameter(e, p.maximum)), p.shift_region,
                p.shift < 0 ? "0" : value_name(e.kernel, p.shift));
  emit_function(out, e, "weight", fmt::format("{}, {}, {}", i, parameter(e, p.score), parameter(e, p.shift)),
                p.weight_region, value_name(e.kernel, p.weight));
  emit_function(out, e, "factor", fmt::format("{}, {}, {} w", i, j, e.real), p.factor_region, factored(e));
  out.line(fmt::format("const auto weights = make_softmax<{}, {}, {}>(score, shift, weight, factor);", p.maximum >= 0,
                       p.shift >= 0, !p.key_factors.empty()));
}

// "const auto out = make_result<8>([&](int i, int e, float v11, float v14, const pack<float, 8>& x16) { … });"
void emit_result(Writer& out, const Emission& e) {
  const AttendParts& p = e.parts;
  Points points{.lanes = {.axis = p.e, .vector = epilogue_vector(e.kernel, p.e, 8)},
                .instrs = p.epilogue,
                .stores = all_stores(e.kernel),
                .registers = {.held = {p.mix}}};
  points.instrs.insert(std::upper_bound(points.instrs.begin(), points.instrs.end(), p.mix), p.mix);
  for (const Factor& factor : p.factors) {
    const std::string value = value_name(e.kernel, factor.value);
    if (factor.op != ir::Op::where) {
      points.registers.behind += fmt::format(" {} {}", factor.op == ir::Op::div ? "/" : "*", value);
    } else {
      points.registers.before = fmt::format("({} ? {}", value, factor.kept ? "" : "0 : ") + points.registers.before;
      points.registers.behind += factor.kept ? " : 0)" : ")";
    }
  }
  out.open(
      fmt::format("const auto out = make_result<{0}>([&]({1} {2}, {1} {3}, {4}, {5}, const pack<{6}, {0}>& x{7}) {{",
                  points.lanes.vector, e.index, axis_name(e, p.i), axis_name(e, p.e), parameter(e, p.maximum),
                  parameter(e, p.sum), e.real, p.mix));
  emit_points(out, e.kernel, points);
  out.close("});");
}

// "first_key" and "last_key": the keys that some query of the tile sees, from a multiple of the tile on.
void emit_range(Writer& out, const Emission& e, const AttendSchedule& schedule) {
  out.line(fmt::format("{} first_key = 0, last_key = {};", e.index, dim_text(extent(e, e.parts.j), e.names)));
  if (e.bounds.empty()) return;
  out.line(fmt::format("const {0} last_query = min(first_query + {1}, ({0}){2}) - 1;", e.index, schedule.tile_q,
                       parenthesized(dim_text(extent(e, e.parts.i), e.names))));
  bool lower = false;
  for (const KeyBound& bound : e.bounds) {
    // The query of the tile for which the bound reaches furthest.
    const char* query = (bound.slope > 0) == bound.upper ? "last_query" : "first_query";
    const Dim offset = bound.upper ? bound.offset + 1 : bound.offset;
    std::string at = bound.slope == 0   ? ""
                     : bound.slope == 1 ? fmt::format("{} + ", query)
                                        : fmt::format("{} * {} + ", query, bound.slope);
    at += parenthesized(dim_text(offset, e.names));
    const char* name = bound.upper ? "last_key" : "first_key";
    out.line(fmt::format("{} = {}({}, ({})({}));", name, bound.upper ? "min" : "max", name, e.index, at));
    lower = lower || !bound.upper;
  }
  if (lower) out.line(fmt::format("first_key -= first_key % {};", schedule.tile_kv));
}

bool grows_with_query(const std::vector<KeyBound>& bounds) {
  return std::any_of(bounds.begin(), bounds.end(), [](const KeyBound& b) { return b.upper && b.slope > 0; });
}

void check_weights(const Emission& e) {
  for (InstrId id : e.parts.weight_region) {
    const Instr& instr = e.kernel.instr(id);
    const bool varies = (instr.depends >> e.parts.j & 1) != 0;
    TENON_CHECK(!varies || instr.kind == InstrKind::map || instr.kind == InstrKind::round,
                fmt::format("attend: v{} depends on the key beside its score", id));
  }
}

}  // namespace

Source emit_attend(const Kernel& kernel, const Target& target) {
  const auto& schedule = std::get<AttendSchedule>(kernel.schedule);
  AttendParts parts = attend_parts(kernel);
  const AttendTiles tiles = attend_tiles(kernel, parts, target);
  const Emission e{kernel,
                   std::move(parts),
                   key_bounds(kernel),
                   tiles,
                   names_of(kernel),
                   index_type(kernel),
                   tiles.element.dtype == DType::f64 ? "double" : "float"};
  check_weights(e);
  const bool mma = tiles.element.tensor_cores;
  const Dim tiles_q = blocks_of(extent(e, e.parts.i), schedule.tile_q);
  const Dim tiles_e = mma ? Dim(1) : blocks_of(extent(e, e.parts.e), tiles.width);

  Writer out(1);
  join_stream(out, target);
  out.line("extern __shared__ __align__(16) unsigned char shared[];");
  out.line(
      fmt::format("const u32 tiles_q = {}, tiles_e = {};", dim_text(tiles_q, e.names), dim_text(tiles_e, e.names)));
  // Where later queries see more keys, their tiles come first, so that short tiles fill the end.
  const char* tile = grows_with_query(e.bounds) ? "(tiles_q - 1 - blockIdx.x / tiles_e % tiles_q)"
                                                : "(blockIdx.x / tiles_e % tiles_q)";
  out.line(fmt::format("const {0} first_query = ({0}){1} * {2};", e.index, tile, schedule.tile_q));
  out.line("const u32 batch = blockIdx.x / (tiles_e * tiles_q);");
  decode_batch(out, kernel, e.parts.batch, "batch");
  emit_range(out, e, schedule);
  const auto operand = [&](const char* name, const OperandPart& part, Lines lines) {
    emit_operand(out, kernel, name, part, tiles.element,
                 tile_access(kernel, part, tiles.element, mma ? lines : Lines::along_outer, target, schedule.vector));
  };
  operand("q", e.parts.q, Lines::along_depth);
  operand("k", e.parts.k, Lines::along_depth);
  operand("v", e.parts.v, Lines::along_outer);
  emit_softmax(out, e);
  emit_result(out, e);
  const auto text = [&](int axis) { return dim_text(extent(e, axis), e.names); };
  const std::string limits = fmt::format("first_key, last_key, {}, {}, {}, {}", text(e.parts.i), text(e.parts.j),
                                         text(e.parts.d), text(e.parts.e));
  if (mma) {
    out.line(fmt::format("attend_mma<{}, {}, {}, {}, {}, {}>(", tile_type(tiles.element), schedule.tile_q,
                         schedule.tile_kv, tiles.depth, tiles.width, e.index));
    out.line(fmt::format("    shared, q, k, v, weights, out, first_query, {});", limits));
  } else {
    out.line(fmt::format("attend_simt<{}, {}, {}, {}, {}>(", e.real, schedule.tile_q, schedule.tile_kv, tiles.width,
                         e.index));
    out.line(fmt::format("    shared, q, k, v, weights, out, first_query, ({})(blockIdx.x % tiles_e) * {}, {});",
                         e.index, tiles.width, limits));
  }

  LaunchRule launch;
  launch.grid_x = extent_of_axes(kernel, e.parts.batch) * tiles_q * tiles_e;
  launch.block = mma ? schedule.tile_q * 2 : schedule.tile_q * 4;
  launch.shared_bytes = static_cast<int>(shared_bytes(schedule, tiles));
  return finish(kernel, out, launch, target, kAllRegisters);
}

}  // namespace tenon::codegen::cuda
