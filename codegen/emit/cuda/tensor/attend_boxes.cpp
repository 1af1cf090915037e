// See attend_boxes.h.
#include "codegen/emit/cuda/tensor/attend_boxes.h"

#include <fmt/format.h>

#include "codegen/analysis/box.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/tensor/tensor.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/kernel/uses.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {
namespace {

constexpr int kLine = 128;         // bytes
constexpr int kPanel = kLine / 2;  // elements of 16 bits in it
constexpr int kAtOnce = 4;         // numbers of pages under way: the thread has few registers

// What the text of a tile says of it.
struct Boxes {
  const BoxAccess& access;
  std::string line, limit;  // the axis of rows, and its extent
  int rows = 0, count = 1;  // of a box; boxes in a tile, one below the other
  bool whole = false;       // all rows of each tile are there
  int map = 0;
  int last_map = -1;  // of the last page where it has fewer rows; -1: no such
  Dim last = 0;       // its first row
};

// Bytes of a line of values of f8: as many keys, of a tile of them.
int line_of_values(int keys) { return keys % kLine == 0 ? kLine : kLine / 2; }

void open_load(Writer& out, const AttentionText& a, const std::string& name, const std::string& row) {
  out.open(fmt::format("const auto load_{} = [&](unsigned char* to, arrival* full, u32 batch, {} {}) {{", name, a.index,
                       row));
  decode_batch(out, a.kernel, a.parts.batch, "batch");
}

void emit_boxes(Writer& out, const AttentionText& a, const BoxedTile& tile, const Boxes& boxes) {
  open_load(out, a, tile.name, boxes.line);
  const int panel = kLine / static_cast<int>(size_of(a.tiles.element.dtype));
  out.unrolled("panel", (tile.width + panel - 1) / panel);
  std::string text =
      fmt::format("copy_box(to + panel * {}, map{}, full, panel * {}", tile.rows * kLine, boxes.map, panel);
  for (std::size_t i = 1; i < boxes.access.axes.size(); ++i)
    text += ", " + box_coordinate(a.kernel, boxes.access.axes[i]);
  out.line(text + ");");
  out.close();
  out.close("};");
}

// Of values that lie along the keys: a panel has a line for each column.
void emit_turned(Writer& out, const AttentionText& a, const BoxedTile& tile, const BoxAccess& access, int map) {
  const std::string& key = axis_name(a, a.parts.j);
  open_load(out, a, tile.name, key);
  const int line = line_of_values(tile.rows);
  out.unrolled("panel", tile.rows / line);
  std::string text = fmt::format("copy_box(to + panel * {}, map{}, full, (int)({} + panel * {}), 0", tile.width * line,
                                 map, key, line);
  for (std::size_t i = 2; i < access.axes.size(); ++i) text += ", " + box_coordinate(a.kernel, access.axes[i]);
  out.line(text + ");");
  out.close();
  out.close("};");
}

// "int pages[2];", each read from the table.
void emit_page_numbers(Writer& out, const AttentionText& a, const Boxes& boxes, int count) {
  const InstrId page = boxes.access.page->value;
  const bool guarded = boxes.count > 1 && !boxes.whole;
  out.line(fmt::format("int pages[{}];", count));
  out.unrolled("at", count);
  out.line(fmt::format("const {} {} = first + at * {};", a.index, boxes.line, boxes.rows));
  if (guarded) out.line("pages[at] = -1;  // of no key: outside of the operand there is 0");
  out.open_if(guarded ? fmt::format("{} < {}", boxes.line, boxes.limit) : "");
  define(out, a.kernel, needed(a.kernel, {page}), a.names);
  out.line(fmt::format("pages[at] = (int){};", value_name(a.kernel, page)));
  out.close_if(guarded ? boxes.limit : "");
  out.close();
}

// A page's box of a panel.
void emit_copy(Writer& out, const AttentionText& a, const BoxedTile& tile, const Boxes& boxes) {
  const int rows = boxes.access.page->rows;
  const std::string row = rows == 0 ? "(int)first" : rows > tile.rows ? fmt::format("(int)(first % {})", rows) : "0";
  std::string batch;
  for (std::size_t i = 2; i + 1 < boxes.access.axes.size(); ++i)
    batch += ", " + box_coordinate(a.kernel, boxes.access.axes[i]);
  const auto copy = [&](int map) {
    return fmt::format("copy_box(to + panel * {} + at * {}, map{}, full, panel * {}, {}{}, pages[at]);",
                       tile.rows * kLine, boxes.rows * kLine, map, kPanel, row, batch);
  };
  if (boxes.last_map < 0) return out.line(copy(boxes.map));
  out.open(fmt::format("if (first + at * {} < {}) {{", boxes.rows, parenthesized(dim_text(boxes.last, a.names))));
  out.line(copy(boxes.map));
  out.close("} else {");
  out.line(copy(boxes.last_map));
  out.close();
}

// Several numbers are asked for before the first box waits for its own.
void emit_pages(Writer& out, const AttentionText& a, const BoxedTile& tile, const Boxes& boxes) {
  open_load(out, a, tile.name, "first");
  int count = kAtOnce;
  while (boxes.count % count != 0) --count;
  const bool in_turns = count < boxes.count;
  if (in_turns) {
    out.line("#pragma unroll 1");
    out.open(fmt::format("for (int turn = 0; turn < {}; ++turn, first += {}, to += {}) {{", boxes.count / count,
                         count * boxes.rows, count * boxes.rows * kLine));
  }
  emit_page_numbers(out, a, boxes, count);
  out.unrolled("at", count);
  out.unrolled("panel", (tile.width + kPanel - 1) / kPanel);
  emit_copy(out, a, tile, boxes);
  out.close();
  out.close();
  if (in_turns) out.close();
  out.close("};");
}

}  // namespace

bool emit_load(Writer& out, const AttentionText& a, const BoxedTile& tile, LaunchRule& launch) {
  std::string why_not;
  const auto access = paged_box_access(a.kernel, tile.part, a.parts.batch, why_not);
  TENON_CHECK(access, why_not);
  if (access->axes[0].front() == a.parts.j) {
    emit_turned(out, a, tile, *access, static_cast<int>(launch.tensor_maps.size()));
    TensorMap map = tensor_map(a.kernel, *access, tile.width);
    map.box[0] = map.swizzle_bytes = line_of_values(tile.rows);
    launch.tensor_maps.push_back(std::move(map));
    return false;
  }
  const int axis = access->axes[1].front();
  const Dim& limit = extent(a, axis);
  const auto divisible = [&](int rows) { return limit.bounds(a.kernel.symbols).divisor % rows == 0; };
  Boxes boxes{.access = *access,
              .line = axis_name(a, axis),
              .limit = dim_text(limit, a.names),
              .rows = box_rows(access->page, tile.rows),
              .whole = divisible(tile.rows),
              .map = static_cast<int>(launch.tensor_maps.size())};
  boxes.count = tile.rows / boxes.rows;
  launch.tensor_maps.push_back(tensor_map(a.kernel, *access, boxes.rows));
  if (!access->page) {
    emit_boxes(out, a, tile, boxes);
    return false;
  }
  // Weights behind the last key are 0, and so are values, which may be anything in the rest of its page: a map of its
  // own ends there.
  const bool summed = axis == tile.part.depth;
  if (const int rows = access->page->rows; summed && rows > 0 && !divisible(rows)) {
    boxes.last = limit.floor_div(rows) * Dim(rows);
    boxes.last_map = boxes.map + 1;
    TensorMap last = launch.tensor_maps.back();
    last.extents[1] = limit - boxes.last;
    launch.tensor_maps.push_back(std::move(last));
  }
  emit_pages(out, a, tile, boxes);
  return true;
}

void emit_score_boxes(Writer& out, const AttentionText& a, const BoxedScores& scores, int keys, LaunchRule& launch) {
  constexpr int kRows = 64;  // of a warpgroup
  const int line = kLine / scores.bytes;
  open_load(out, a, "s", fmt::format("{}, {} {}", axis_name(a, a.parts.i), a.index, axis_name(a, a.parts.j)));
  out.unrolled("panel", (keys + line - 1) / line);
  std::string text = fmt::format("copy_box(to + panel * {}, map{}, full, (int)({} + panel * {})", kRows * kLine,
                                 launch.tensor_maps.size(), axis_name(a, a.parts.j), line);
  for (std::size_t i = 1; i < scores.box.axes.size(); ++i) text += ", " + box_coordinate(a.kernel, scores.box.axes[i]);
  out.line(text + ");");
  out.close();
  out.close("};");
  launch.tensor_maps.push_back(tensor_map(a.kernel, scores.box, kRows));
}

}  // namespace tenon::codegen::cuda
