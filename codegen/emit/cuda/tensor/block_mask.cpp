// See block_mask.h.
#include "codegen/emit/cuda/tensor/block_mask.h"

#include <fmt/format.h>

#include "codegen/emit/cuda/tensor/tensor.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/kernel/uses.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {
namespace {

std::string span_name(InstrId id) { return fmt::format("of_v{}", id); }

// "const auto at_of_v4 = [&](int j) -> int { … }; const span of_v4 = span_of(j0, j1, at_of_v4);": of `function`, from
// `first` up to, not with, `end`.
void emit_span(Writer& out, const AttentionText& a, InstrId id, int axis, const std::string& function,
               const std::string& first, const std::string& end) {
  const char* type = size_of(a.kernel.instr(id).dtype) > 4 ? "i64" : "int";
  const std::string value = fmt::format("return ({})({});", type, value_name(a.kernel, id));
  const std::string name = "at_" + span_name(id);
  out.open(fmt::format("const auto {} = [&]({} {}) -> {} {{", name, a.index, axis_name(a, axis), type));
  define(out, a.kernel, needed(a.kernel, {id}), a.names);
  out.line(value);
  out.close("};");
  const std::string span = is_steady(a.kernel.instr(id))
                               ? fmt::format("span_between({0}({1}), {0}(({2})({3} - 1)))", name, first, a.index, end)
                               : fmt::format("{}({}, {}, {})", function, first, end, name);
  out.line(fmt::format("const span {} = {};", span_name(id), span));
}

std::string verdict_text(const std::vector<TileTest>& tests, int node) {
  const TileTest& test = tests[static_cast<std::size_t>(node)];
  const auto child = [&](int number) { return verdict_text(tests, number); };
  switch (test.kind) {
    case TileTest::Kind::unknown: return "unknown_verdict()";
    case TileTest::Kind::truth: return fmt::format("truth({})", span_name(test.a));
    case TileTest::Kind::compare:
      return fmt::format("{}({}, {})", ir::name_of(test.op), span_name(test.a), span_name(test.b));
    case TileTest::Kind::both: return fmt::format("both({}, {})", child(test.left), child(test.right));
    case TileTest::Kind::either: return fmt::format("either({}, {})", child(test.left), child(test.right));
    case TileTest::Kind::inverted: return fmt::format("inverted({})", child(test.left));
  }
  return {};
}

}  // namespace

void emit_see_tiles(Writer& out, const AttentionText& a, const std::vector<TileTest>& tests, int tile_kv) {
  TENON_CHECK(!tests.empty(), "an attend kernel whose tiles are tested has tests");
  const std::vector<InstrId> values = tested_values(tests);
  const auto limit = [&](int axis) { return parenthesized(dim_text(extent(a, axis), a.names)); };
  out.open(fmt::format(
      "const auto see_tiles = [&](u32 batch, {0} first, int rows, {0} j, {0} tiles, {0} number) -> seen_tiles {{",
      a.index));
  decode_batch(out, a.kernel, a.parts.batch, "batch");
  out.line(fmt::format("const {0} end = min(first + rows, ({0}){1});", a.index, limit(a.parts.i)));
  for (const InstrId id : values)
    if (!varies(a.kernel, id, a.parts.j)) emit_span(out, a, id, a.parts.i, "span_of_warp", "first", "end");
  out.open(fmt::format("const auto test = [&]({} tile) -> verdict {{", a.index));
  out.line(
      fmt::format("const {0} j0 = j + tile * {1}, j1 = min(j0 + {1}, ({0}){2});", a.index, tile_kv, limit(a.parts.j)));
  for (const InstrId id : values)
    if (varies(a.kernel, id, a.parts.j)) emit_span(out, a, id, a.parts.j, "span_of", "j0", "j1");
  out.line(fmt::format("return {};", verdict_text(tests, static_cast<int>(tests.size()) - 1)));
  out.close("};");
  out.line("return test_tiles(tiles, number, test);");
  out.close("};");
}

}  // namespace tenon::codegen::cuda
