// Map kernels some of whose loads are contiguous along another axis than the innermost one, along which the lanes of
// stores lie: squares of lanes x lanes elements are loaded in vectors along that axis and transposed in registers. A
// task has a tile of schedule.tile_rows x tile_columns elements, so that some lines of each page are read together; the
// tiles go on along the rows of what is read, since reads are what waits: single lines may be written anywhere.
#include <numeric>

#include "codegen/emit/llvm/classes.h"
#include "codegen/emit/llvm/product.h"
#include "codegen/emit/llvm/stream.h"
#include "codegen/transpose.h"

namespace tenon::codegen::simd {
namespace {

constexpr int kLineBytes = 64;

struct Tile {
  int along = -1, inner = -1;  // axes: of the transposed loads' vectors, and of the stores'
  int lanes = 1;
  int ahead = 0;    // elements along `along` that are prefetched: those of the next tile
  int vectors = 1;  // next to each other along `inner`, so that a row of them is a line of the narrowest result
  std::vector<int> outer;
  std::vector<InstrId> loads;
  std::vector<int> stores;
  int step() const { return lanes * vectors; }
};

// A range of both axes of the tile.
struct Range {
  Value *row = nullptr, *row_end = nullptr, *column = nullptr, *column_end = nullptr;
};

Tile tile_of(const Kernel& kernel, const MapSchedule& schedule) {
  Tile tile;
  tile.along = schedule.tile_axis;
  tile.inner = static_cast<int>(kernel.axes.size()) - 1;
  tile.lanes = schedule.vector;
  tile.ahead = schedule.tile_rows;
  for (int axis = 0; axis < tile.inner; ++axis)
    if (axis != tile.along) tile.outer.push_back(axis);
  tile.loads = transposed_along(kernel, tile.along).loads;
  tile.stores.resize(kernel.stores.size());
  std::iota(tile.stores.begin(), tile.stores.end(), 0);
  for (const Operand& operand : kernel.operands)
    if (operand.written)
      tile.vectors = std::max(tile.vectors, static_cast<int>(kLineBytes / (tile.lanes * size_of(operand.dtype))));
  tile.vectors = std::min(tile.vectors, 2);  // more would not stay in registers
  return tile;
}

// Element l of row i becomes element i of row l: for each bit of the numbers, rows that differ in it swap elements.
std::vector<Value*> transpose(Unit& unit, std::vector<Value*> rows) {
  const int n = static_cast<int>(rows.size());
  for (int bit = 1; bit < n; bit *= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < n; ++lane) {
      low.push_back((lane & bit) == 0 ? lane : n + lane - bit);
      high.push_back((lane & bit) == 0 ? lane + bit : n + lane);
    }
    for (int i = 0; i < n; ++i) {
      if ((i & bit) != 0) continue;
      Value*& a = rows[static_cast<std::size_t>(i)];
      Value*& b = rows[static_cast<std::size_t>(i + bit)];
      Value* first = unit.b.CreateShuffleVector(a, b, low);
      b = unit.b.CreateShuffleVector(a, b, high);
      a = first;
    }
  }
  return rows;
}

Value* offset_by(Unit& unit, Value* base, int offset) {
  return offset == 0 ? base : unit.b.CreateNSWAdd(base, constant(unit, offset));
}

// `mask`, in all lanes only where i < end.
Value* where_less(Unit& unit, Value* mask, Value* i, Value* end, int lanes) {
  return unit.b.CreateAnd(mask, splat(unit, unit.b.CreateICmpSLT(i, end), lanes));
}

// The square of `load` at `at`, transposed: element p is the vector along the innermost axis in row at.row + p.
std::vector<Value*> load_square(Unit& unit, Scope& scope, const Tile& tile, InstrId load, const Range& at,
                                bool masked) {
  Value* rows = masked ? first_lanes(unit, unit.b.CreateSub(at.row_end, at.row), tile.lanes) : nullptr;
  const Access& access = unit.kernel.instr(load).access;
  std::vector<Value*> vectors;
  for (int q = 0; q < tile.lanes; ++q) {
    Scope line = child_of(scope, unit);
    Value* column = offset_by(unit, at.column, q);
    bind(line, tile.inner, column);
    bind_lanes(line, tile.along, at.row, tile.lanes,
               masked ? where_less(unit, rows, column, at.column_end, tile.lanes) : nullptr);
    vectors.push_back(emit_load(unit, line, access));
    // The same row of memory in the next tile: too little is read of it at once to be prefetched by itself.
    emit_prefetch(unit, line, access, *access.offset.coefficient(tile.along) * Dim(tile.ahead));
  }
  return transpose(unit, std::move(vectors));
}

// A transposed square waits in memory of the thread for the loop over its rows: a body is written once, not for each.
llvm::AllocaInst* keep_square(Unit& unit, const std::vector<Value*>& rows) {
  llvm::AllocaInst* memory = variable(unit, llvm::ArrayType::get(rows[0]->getType(), rows.size()), "square");
  for (std::size_t p = 0; p < rows.size(); ++p)
    unit.b.CreateStore(rows[p],
                       advance(unit, rows[p]->getType(), memory, constant(unit, static_cast<std::int64_t>(p))));
  return memory;
}

// The points of lanes rows and step() columns from (at.row, at.column).
void emit_square(Unit& unit, Scope& scope, const Tile& tile, const Range& at, bool masked, bool streaming) {
  auto& b = unit.b;
  std::vector<std::vector<llvm::AllocaInst*>> squares;  // [vector][load]
  std::vector<Scope> columns;
  for (int v = 0; v < tile.vectors; ++v) {
    Range part = at;
    part.column = offset_by(unit, at.column, v * tile.lanes);
    squares.emplace_back();
    for (const InstrId load : tile.loads)
      squares.back().push_back(keep_square(unit, load_square(unit, scope, tile, load, part, masked)));
    columns.push_back(child_of(scope, unit));
    bind_lanes(columns.back(), tile.inner, part.column, tile.lanes,
               masked ? first_lanes(unit, b.CreateSub(at.column_end, part.column), tile.lanes) : nullptr);
  }
  Value* rows = constant(unit, tile.lanes);
  if (masked) rows = minimum_of(unit, rows, b.CreateSub(at.row_end, at.row));
  emit_loop(unit, constant(unit, 0), rows, constant(unit, 1), "p", [&](Value* p) {
    std::vector<Scope> points;
    for (std::size_t v = 0; v < columns.size(); ++v) {
      points.push_back(child_of(columns[v], unit));
      bind(points.back(), tile.along, b.CreateNSWAdd(at.row, p));
      for (std::size_t load = 0; load < tile.loads.size(); ++load) {
        Type* row = squares[v][load]->getAllocatedType()->getArrayElementType();
        points.back().values[tile.loads[load]] = b.CreateLoad(row, advance(unit, row, squares[v][load], p));
      }
    }
    emit_stores(unit, points, tile.stores, streaming);
  });
  scope.home = b.GetInsertBlock();
}

// Squares column by column of squares, so that each row of a result is written line by line.
void for_squares(Unit& unit, Scope& scope, const Tile& tile, const Range& range, bool masked, bool streaming) {
  loop_in(unit, scope, range.column, range.column_end, constant(unit, tile.step()), "column",
          [&](Scope& outside, Value* column) {
            loop_in(unit, outside, range.row, range.row_end, constant(unit, tile.lanes), "row",
                    [&](Scope& inside, Value* row) {
                      emit_square(unit, inside, tile, {row, range.row_end, column, range.column_end}, masked,
                                  streaming);
                    });
          });
}

// Whole squares of the tile around the caches where the results allow it, else through them; then what is left of it
// below and beside those.
void emit_tile(Unit& unit, Scope& scope, const Tile& tile, const Range& range, bool streaming) {
  auto& b = unit.b;
  const auto whole = [&](Value* begin, Value* end, int step) {
    Value* steps = b.CreateSDiv(b.CreateSub(end, begin), constant(unit, step));
    return b.CreateAdd(begin, b.CreateMul(steps, constant(unit, step)));
  };
  Value* rows = whole(range.row, range.row_end, tile.lanes);
  Value* columns = whole(range.column, range.column_end, tile.step());
  Value* streamed = range.column;
  if (streaming) {
    Scope corner = child_of(scope, unit);
    bind(corner, tile.along, range.row);
    bind_lanes(corner, tile.inner, range.column, tile.lanes, nullptr);
    streamed = b.CreateSelect(may_stream_from(unit, corner, tile.stores, tile.along), columns, range.column);
    for_squares(unit, scope, tile, {range.row, rows, range.column, streamed}, false, true);
  }
  for_squares(unit, scope, tile, {range.row, rows, streamed, columns}, false, false);
  if (divisible(unit, extent_of(unit.kernel, tile.along), tile.lanes) &&
      divisible(unit, extent_of(unit.kernel, tile.inner), tile.step()))
    return;
  loop_in(unit, scope, constant(unit, 0), constant(unit, 2), constant(unit, 1), "edge", [&](Scope& edges, Value* edge) {
    Value* below = b.CreateICmpEQ(edge, constant(unit, 0));
    const Range rest{b.CreateSelect(below, rows, range.row), b.CreateSelect(below, range.row_end, rows),
                     b.CreateSelect(below, range.column, columns), range.column_end};
    for_squares(unit, edges, tile, rest, true, false);
    edges.home = b.GetInsertBlock();
  });
}

}  // namespace

Source emit_map_tile(Unit& unit) {
  const Kernel& kernel = unit.kernel;
  const auto& schedule = std::get<MapSchedule>(kernel.schedule);
  auto& b = unit.b;
  const Tile tile = tile_of(kernel, schedule);
  const Dim blocks = ceil_div(extent_of(kernel, tile.along), schedule.tile_rows);
  const Dim chunks = ceil_div(extent_of(kernel, tile.inner), schedule.tile_columns);
  Source source;
  source.launch.grid_x = point_count(kernel, tile.outer) * blocks * chunks;
  const TaskRange range = begin_function(unit, kernel.name, kernel.operands.size());
  Scope root = root_scope(unit);
  for_tasks(unit, root, range, [&](Scope& task, Value* number) {
    const auto part = [&](Value* index, int size, int axis) {
      Value* begin = b.CreateMul(index, constant(unit, size));
      return std::pair{
          begin, minimum_of(unit, b.CreateAdd(begin, constant(unit, size)), emit_dim(unit, extent_of(kernel, axis)))};
    };
    Value *chunk_count = emit_dim(unit, chunks), *block_count = emit_dim(unit, blocks);
    const auto [row, row_end] = part(b.CreateURem(number, block_count), schedule.tile_rows, tile.along);
    Value* chunk = b.CreateUDiv(number, block_count);
    const auto [column, column_end] = part(b.CreateURem(chunk, chunk_count), schedule.tile_columns, tile.inner);
    bind_point(unit, task, tile.outer, b.CreateUDiv(chunk, chunk_count));
    emit_tile(unit, task, tile, {row, row_end, column, column_end}, schedule.streaming);
  });
  return source;
}

}  // namespace tenon::codegen::simd
