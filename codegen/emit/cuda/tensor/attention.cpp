// See attention.h.
#include "codegen/emit/cuda/tensor/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/draws.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/kernel/uses.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {
namespace {

void emit_function(Writer& out, const AttentionText& a, const std::string& name, const std::string& given,
                   const Region& region, const std::string& result) {
  out.open(fmt::format("const auto {} = [&]({}) -> {} {{", name, given, a.real));
  define(out, a.kernel, region, a.names);
  out.line(fmt::format("return {};", result));
  out.close("};");
}

std::string query(const AttentionText& a) { return fmt::format("{} {}", a.index, axis_name(a, a.parts.i)); }

// The blocks of the random numbers of keys 4 * four to 4 * four + 3.
void emit_blocks(Writer& out, const AttentionText& a, const Region& drawn) {
  Names names = a.names;
  names.axes[static_cast<std::size_t>(a.parts.j)] = "(4 * four)";
  std::vector<InstrId> values;
  std::string blocks;
  for (const InstrId id : drawn) {
    const Instr& instr = a.kernel.instr(id);
    const std::vector<int> of_index = instr.index.values();
    values.insert(values.end(), of_index.begin(), of_index.end());
    blocks += fmt::format("{}philox({}, {}, ({})({}))", blocks.empty() ? "" : ", ", keys_name(instr.args[0]),
                          instr.stream, block_type(a.kernel, instr),
                          random_index(a.kernel, block_of_four(a.kernel, instr, a.parts.j), names));
  }
  define(out, a.kernel, needed(a.kernel, values), names);
  out.line(fmt::format("return {{{{{}}}}};", blocks));
}

void check_weights(const AttentionText& a) {
  for (InstrId id : a.parts.weight_region) {
    const Instr& instr = a.kernel.instr(id);
    const bool varies = (instr.depends >> a.parts.j & 1) != 0;
    TENON_CHECK(!varies || instr.kind == InstrKind::map || instr.kind == InstrKind::round,
                fmt::format("attend: v{} depends on the key beside its score", id));
  }
}

}  // namespace

AttentionText attention_text(const Kernel& kernel, const Target& target) {
  AttendParts parts = attend_parts(kernel);
  const bool wgmma = std::get<AttendSchedule>(kernel.schedule).loop == MainLoop::wgmma;
  const AttendTiles tiles = wgmma ? warpgroup_tiles(kernel, parts, target) : attend_tiles(kernel, parts, target);
  AttentionText text{kernel,
                     std::move(parts),
                     key_masks(kernel),
                     tiles,
                     names_of(kernel),
                     index_type(kernel),
                     tiles.element.dtype == DType::f64 ? "double" : "float"};
  check_weights(text);
  return text;
}

const std::string& axis_name(const AttentionText& a, int axis) { return a.names.axes[static_cast<std::size_t>(axis)]; }
const Dim& extent(const AttentionText& a, int axis) { return a.kernel.axes[static_cast<std::size_t>(axis)].extent; }

std::string parameter(const AttentionText& a, InstrId value) {
  return value < 0 ? a.real : fmt::format("{} v{}", a.real, value);
}

void emit_shift(Writer& out, const AttentionText& a) {
  emit_function(out, a, "shift", fmt::format("{}, {}", query(a), parameter(a, a.parts.maximum)), a.parts.shift_region,
                a.parts.shift < 0 ? "0" : value_name(a.kernel, a.parts.shift));
}

void emit_weight(Writer& out, const AttentionText& a) {
  emit_function(out, a, "weight",
                fmt::format("{}, {}, {}", query(a), parameter(a, a.parts.score), parameter(a, a.parts.shift)),
                a.parts.weight_region, value_name(a.kernel, a.parts.weight));
}

KeyFunction key_function(const std::string& name, const std::string& given, const Region& region) {
  return {name, given, region, {}, -1};
}

KeyFunction drawing_function(const AttentionText& a, const std::string& name, const std::string& given,
                             const Region& region) {
  KeyFunction function{name, given, region, drawn_by_fours(a.kernel, region, a.parts.j), -1};
  std::erase_if(function.region, [&](InstrId id) { return contains(function.drawn, id); });
  return function;
}

void emit_keys(Writer& out, AttentionText& a) {
  std::vector<InstrId>& seeds = a.names.keyed;
  for (const Region* region : {&a.parts.score_region, &a.parts.factor_region})
    for (const InstrId id : *region) {
      const Instr& instr = a.kernel.instr(id);
      if (instr.kind != InstrKind::random || a.kernel.instr(instr.args[0]).depends != 0) continue;
      if (!contains(seeds, instr.args[0])) seeds.push_back(instr.args[0]);
    }
  define(out, a.kernel, needed(a.kernel, seeds), a.names);
  for (const InstrId seed : seeds)
    out.line(fmt::format("const philox_keys {} = {};", keys_name(seed), value_name(a.kernel, seed)));
}

namespace {

void open_ahead(Writer& out, const AttentionText& a, const KeyFunction& function, const std::string& given) {
  const Instr& load = a.kernel.instr(function.read);
  const DType stored = stored_dtype(a.kernel, load.access);
  const std::string head = fmt::format("[&]({}, {} x{}) -> {} {{", given, storage_type(stored), function.read, a.real);
  if (function.boxed) {
    out.open(fmt::format("const auto {} = by_boxes({}{{}}, {}", function.name, storage_type(stored), head));
  } else {
    out.open(fmt::format("const auto {} = by_pairs([&]({}, {} {}) -> {} {{", function.name, query(a), a.index,
                         axis_name(a, a.parts.j), pack_type(stored, 2)));
    const Lanes pair{.axis = a.parts.j, .vector = 2};
    out.line(fmt::format("return {};", vector_load(a.kernel, function.read, pair, a.names)));
    out.close("}, " + head);
  }
  out.line(fmt::format("const {} v{} = {};", value_type(load.dtype), function.read,
                       decoded(fmt::format("x{}", function.read), stored)),
           comment(load));
}

}  // namespace

void open_key_function(Writer& out, const AttentionText& a, const KeyFunction& function) {
  const std::string given = fmt::format("{}, {} {}, {}", query(a), a.index, axis_name(a, a.parts.j), function.given);
  const std::size_t count = function.drawn.size();
  if (function.read >= 0) return open_ahead(out, a, function, given);
  if (count == 0) return out.open(fmt::format("const auto {} = [&]({}) -> {} {{", function.name, given, a.real));
  out.open(fmt::format("const auto {} = by_fours([&]({}, {} four) -> pack<philox_block, {}> {{", function.name,
                       query(a), a.index, count));
  emit_blocks(out, a, function.drawn);
  out.close(fmt::format("}}, [&]({}, const pack<int, {}>& drawn) -> {} {{", given, count, a.real));
  for (std::size_t n = 0; n < count; ++n)
    out.line(fmt::format("const int v{} = drawn[{}];", function.drawn[n], n),
             comment(a.kernel.instr(function.drawn[n])));
}

void close_key_function(Writer& out, const KeyFunction& function, const std::string& result) {
  out.line(fmt::format("return {};", result));
  out.close(function.drawn.empty() && function.read < 0 ? "};" : "});");
}

void emit_key_function(Writer& out, const AttentionText& a, const KeyFunction& function, const std::string& result) {
  open_key_function(out, a, function);
  define(out, a.kernel, function.region, a.names);
  close_key_function(out, function, result);
}

std::string factored(const AttentionText& a) {
  std::string text = "w";
  for (const Factor& factor : a.parts.key_factors) {
    const std::string value = value_name(a.kernel, factor.value);
    if (factor.op != ir::Op::where) {
      text = fmt::format("{} {} {}", parenthesized(text), factor.op == ir::Op::div ? "/" : "*", value);
    } else {
      text = factor.kept ? fmt::format("({} ? {} : 0)", value, text) : fmt::format("({} ? 0 : {})", value, text);
    }
  }
  const DType real = a.tiles.element.dtype == DType::f64 ? DType::f64 : DType::f32;
  const bool as_tiles = a.parts.weight_dtype == a.tiles.element.dtype;  // the tile rounds to the same dtype
  if (as_tiles) return text;
  if (a.parts.weight_scale == 1) return converted(text, real, a.parts.weight_dtype);
  const std::string scale = literal(ir::Scalar(a.parts.weight_scale), real);
  return fmt::format(
      "{} / {}",
      parenthesized(converted(fmt::format("{} * {}", parenthesized(text), scale), real, a.parts.weight_dtype)), scale);
}

void emit_attention_result(Writer& out, const AttentionText& a) {
  const AttendParts& p = a.parts;
  Points points{.lanes = {.axis = p.e, .vector = epilogue_vector(a.kernel, p.e, 8)},
                .instrs = p.epilogue,
                .stores = all_stores(a.kernel),
                .registers = {.held = {p.mix}}};
  points.instrs.insert(std::upper_bound(points.instrs.begin(), points.instrs.end(), p.mix), p.mix);
  for (const Factor& factor : p.factors) {
    const std::string value = value_name(a.kernel, factor.value);
    if (factor.op == ir::Op::div && a.kernel.instr(p.mix).narrow) {
      points.registers.before = "narrow_div(" + points.registers.before;
      points.registers.behind += fmt::format(", {})", value);
    } else if (factor.op != ir::Op::where) {
      points.registers.behind += fmt::format(" {} {}", factor.op == ir::Op::div ? "/" : "*", value);
    } else {
      points.registers.before = fmt::format("({} ? {}", value, factor.kept ? "" : "0 : ") + points.registers.before;
      points.registers.behind += factor.kept ? " : 0)" : ")";
    }
  }
  out.open(
      fmt::format("const auto out = make_result<{0}>([&]({1} {2}, {1} {3}, {4}, {5}, const pack<{6}, {0}>& x{7}) {{",
                  points.lanes.vector, a.index, axis_name(a, p.i), axis_name(a, p.e), parameter(a, p.maximum),
                  parameter(a, p.sum), a.real, p.mix));
  emit_points(out, a.kernel, points);
  out.close("});");
}

void emit_bound_values(Writer& out, const AttentionText& a) {
  std::vector<InstrId> values;
  for (const KeyBound& bound : a.masks.bounds)
    if (bound.value >= 0) values.push_back(bound.value);
  if (!values.empty()) define(out, a.kernel, needed(a.kernel, values), a.names);
}

std::string bounded(const AttentionText& a, const KeyBound& bound, bool some, const std::string& limit,
                    const std::string& first, const std::string& last) {
  // The query for which the bound reaches furthest, or least far.
  const std::string& query = ((bound.slope > 0) == bound.upper) == some ? last : first;
  const std::string reach = bound.slope == 0   ? ""
                            : bound.slope == 1 ? query + " + "
                                               : fmt::format("{} * {} + ", query, bound.slope);
  const auto offset = [&](const Dim& dim) { return parenthesized(dim_text(dim, a.names)); };
  if (bound.value < 0)
    return fmt::format("{0} = {1}({0}, ({2})({3}{4}));", limit, bound.upper ? "min" : "max", a.index, reach,
                       offset(bound.upper ? bound.offset + 1 : bound.offset));
  const std::string text = fmt::format("{}{} {} near_keys({})", reach, offset(bound.offset), bound.negated ? "-" : "+",
                                       value_name(a.kernel, bound.value));
  if (bound.upper) return fmt::format("{0} = ends_by({0}, {1});", limit, text);
  return fmt::format("{0} = begins_at({0}, {1}, ({2}){3});", limit, text, a.index, offset(extent(a, a.parts.j)));
}

bool grows_with_query(const AttentionText& a) {
  return std::any_of(a.masks.bounds.begin(), a.masks.bounds.end(),
                     [](const KeyBound& b) { return b.upper && b.slope > 0; });
}

}  // namespace tenon::codegen::cuda
