// Map kernels some of whose loads are contiguous along another axis than the innermost one, along which the lanes of
// stores lie. A task goes along some rows of what is read, as many as tile_columns, a register of elements at a time:
// these are turned (square.h) on their way into scratch memory, and leave it along the lanes.
//
// Results go around the caches, line by line. Where their rows do not begin at lines, those of a task end where a line
// does, and not all in the same column: the columns ahead of a task's own are read once more for it.
#include <algorithm>
#include <numeric>

#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/llvm/classes.h"
#include "codegen/emit/llvm/ops/ops.h"
#include "codegen/emit/llvm/square.h"
#include "codegen/emit/llvm/stream.h"

namespace tenon::codegen::simd {
namespace {

constexpr int kAheadBytes = 256;  // of each line of memory that is read

// A transposed load's elements between memory and lanes, as stored.
struct Turned {
  InstrId load;
  DType dtype;
  Value* memory = nullptr;
  int pitch = 0;
};

struct Tile {
  int along = -1, inner = -1;  // axes: along which the transposed loads are contiguous, and of the lanes
  int lanes = 1;
  int vectors = 1;  // next to each other along `inner`: a line of the narrowest result
  int rows = 1;     // turned at a time
  int columns = 0;  // of a task
  int before = 0;   // columns ahead of them that are read as well
  bool streaming = false;
  std::vector<int> outer;
  std::vector<Turned> loads;
  std::vector<int> stores;
};

// A range of both axes of the tile.
struct Range {
  Value *row = nullptr, *row_end = nullptr, *column = nullptr, *column_end = nullptr;
};

// Whether rows of results that begin where a line does all do.
bool rows_are_lines(const Unit& unit, int along) {
  const auto& stores = unit.kernel.stores;
  return std::all_of(stores.begin(), stores.end(), [&](const Store& store) {
    const auto row = store.access.offset.coefficient(along);
    return row && divisible(unit, *row, static_cast<int>(kLineBytes / element_bytes(unit.kernel, store.access)));
  });
}

Tile tile_of(const Unit& unit, const MapSchedule& schedule) {
  const Kernel& kernel = unit.kernel;
  Tile tile;
  tile.along = schedule.tile->axis;
  tile.inner = static_cast<int>(kernel.axes.size()) - 1;
  tile.lanes = schedule.vector;
  tile.columns = schedule.tile->columns;
  tile.streaming = schedule.cache.streaming;
  for (int axis = 0; axis < tile.inner; ++axis)
    if (axis != tile.along) tile.outer.push_back(axis);
  tile.stores.resize(kernel.stores.size());
  std::iota(tile.stores.begin(), tile.stores.end(), 0);
  std::int64_t narrowest = kLineBytes;
  for (const Store& store : kernel.stores) narrowest = std::min(narrowest, element_bytes(kernel, store.access));
  const int line = static_cast<int>(kLineBytes / narrowest);
  tile.vectors = std::clamp(line / tile.lanes, 1, 2);
  if (tile.streaming && !rows_are_lines(unit, tile.along)) tile.before = line;
  for (const InstrId load : transposed_along(kernel, tile.along).loads) {
    const DType dtype = kernel.operands[static_cast<std::size_t>(kernel.instr(load).access.operand)].dtype;
    tile.loads.push_back({load, dtype});
    tile.rows = std::max(tile.rows, square_side(unit, dtype));
  }
  return tile;
}

void reserve(Unit& unit, Tile& tile) {
  const auto bytes_of = [&](const Turned& turned) { return tile.rows * turned.pitch * size_of(turned.dtype); };
  std::int64_t bytes = 0;
  for (Turned& turned : tile.loads) {
    // One square more than is filled: rows a power of two apart would share their places in the cache.
    const int side = square_side(unit, turned.dtype);
    turned.pitch = ((tile.before + tile.columns + side - 1) / side + 1) * side;
    bytes += bytes_of(turned);
  }
  Value* memory = thread_scratch(unit, constant(unit, bytes));
  for (Turned& turned : tile.loads) {
    turned.memory = memory;
    memory = advance(unit, unit.b.getInt8Ty(), memory, constant(unit, bytes_of(turned)));
  }
}

// Where row `row` of what is turned begins.
Value* row_of(Unit& unit, const Turned& turned, Value* row) {
  return advance(unit, storage_type_of(unit, turned.dtype), turned.memory,
                 unit.b.CreateMul(row, constant(unit, turned.pitch)));
}

void turn_loads(Unit& unit, Scope& scope, const Tile& tile, const Range& range) {
  for (const Turned& turned : tile.loads)
    turn_block(unit, scope, unit.kernel.instr(turned.load).access,
               {.rows = {tile.along, range.row, range.row_end},
                .columns = {tile.inner, range.column, range.column_end},
                .to = turned.memory,
                .pitch = turned.pitch,
                .ahead = static_cast<int>(kAheadBytes / size_of(turned.dtype))});
}

// The stores of vectors in row `p` of what is turned, whose first column is `from`.
void emit_points(Unit& unit, const Tile& tile, Value* p, Value* from, std::vector<Scope>& points, bool around) {
  auto& b = unit.b;
  for (Scope& point : points)
    for (const Turned& turned : tile.loads) {
      Value* column = b.CreateSub(point.axes[static_cast<std::size_t>(tile.inner)], from);
      Type* element = storage_type_of(unit, turned.dtype);
      Value* address = advance(unit, element, row_of(unit, turned, p), column);
      const llvm::Align alignment(static_cast<std::uint64_t>(size_of(turned.dtype)));
      point.values[turned.load] =
          widen(unit, b.CreateAlignedLoad(vector_of(element, point.lanes), address, alignment), turned.dtype);
    }
  emit_stores(unit, points, tile.stores, around);
}

// Rows of a tile whose vectors of results are aligned all together.
void write_aligned(Unit& unit, Scope& scope, const Tile& tile, const Range& range, Value* rows) {
  auto& b = unit.b;
  loop_in(unit, scope, constant(unit, 0), rows, constant(unit, 1), "aligned", [&](Scope& row, Value* p) {
    bind(row, tile.along, b.CreateAdd(range.row, p));
    loop_in(unit, row, range.column, range.column_end, constant(unit, tile.lanes * tile.vectors), "line",
            [&](Scope& inside, Value* column) {
              std::vector<Scope> points;
              for (int v = 0; v < tile.vectors; ++v) {
                points.push_back(child_of(inside, unit));
                bind_lanes(points.back(), tile.inner, b.CreateNSWAdd(column, constant(unit, v * tile.lanes)),
                           tile.lanes, nullptr);
              }
              emit_points(unit, tile, p, range.column, points, true);
            });
  });
}

void write_rows(Unit& unit, Scope& scope, const Tile& tile, const Range& range, Value* from, Value* first,
                Value* rows) {
  auto& b = unit.b;
  Value* extent = emit_dim(unit, extent_of(unit.kernel, tile.inner));
  loop_in(unit, scope, first, rows, constant(unit, 1), "p", [&](Scope& row, Value* p) {
    bind(row, tile.along, b.CreateAdd(range.row, p));
    Value *begin = range.column, *end = range.column_end;
    if (tile.before > 0) {
      const auto at_line = [&](Value* column) {
        Value* start = b.CreateSub(column, past_line(unit, row, tile.stores, tile.inner, column));
        return b.CreateSelect(b.CreateICmpSLT(start, constant(unit, 0)), constant(unit, 0), start);
      };
      begin = at_line(begin);
      end = b.CreateSelect(b.CreateICmpEQ(end, extent), end, at_line(end));
    }
    for_streamed_lanes(
        unit, row, tile.streaming ? tile.stores : std::vector<int>{},
        {tile.inner, tile.lanes, tile.vectors, begin, end},
        [&](std::vector<Scope>& points, bool around) { emit_points(unit, tile, p, from, points, around); });
  });
}

// At most tile.rows rows of a task.
void emit_rows(Unit& unit, Scope& scope, const Tile& tile, const Range& range) {
  auto& b = unit.b;
  Value* zero = constant(unit, 0);
  Value* from = b.CreateSub(range.column, constant(unit, tile.before));
  from = b.CreateSelect(b.CreateICmpSLT(from, zero), zero, from);
  turn_loads(unit, scope, tile, {range.row, range.row_end, from, range.column_end});
  Value* rows = b.CreateSub(range.row_end, range.row);
  Value* aligned = zero;
  if (tile.streaming && tile.before == 0) {
    Scope corner = child_of(scope, unit);
    bind(corner, tile.along, range.row);
    bind_lanes(corner, tile.inner, range.column, tile.lanes, nullptr);
    Value* rest = b.CreateURem(b.CreateSub(range.column_end, range.column), constant(unit, tile.lanes * tile.vectors));
    Value* all = b.CreateAnd(may_stream_from(unit, corner, tile.stores, tile.along), b.CreateICmpEQ(rest, zero));
    aligned = b.CreateSelect(all, rows, zero);
    write_aligned(unit, scope, tile, range, aligned);
  }
  write_rows(unit, scope, tile, range, from, aligned, rows);
}

}  // namespace

Source emit_map_tile(Unit& unit) {
  const Kernel& kernel = unit.kernel;
  const auto& schedule = std::get<MapSchedule>(kernel.schedule);
  auto& b = unit.b;
  Tile tile = tile_of(unit, schedule);
  const Dim blocks = ceil_div(extent_of(kernel, tile.along), schedule.tile->rows);
  const Dim chunks = ceil_div(extent_of(kernel, tile.inner), tile.columns);
  Source source;
  source.launch.grid_x = point_count(kernel, tile.outer) * blocks * chunks;
  const TaskRange range = begin_function(unit, kernel.name, kernel.operands.size());
  Scope root = root_scope(unit);
  reserve(unit, tile);
  for_tasks(unit, root, range, [&](Scope& task, Value* number) {
    const auto part = [&](Value* index, int size, int axis) {
      Value* begin = b.CreateMul(index, constant(unit, size));
      return std::pair{
          begin, minimum_of(unit, b.CreateAdd(begin, constant(unit, size)), emit_dim(unit, extent_of(kernel, axis)))};
    };
    Value *chunk_count = emit_dim(unit, chunks), *block_count = emit_dim(unit, blocks);
    const auto [row, row_end] = part(b.CreateURem(number, block_count), schedule.tile->rows, tile.along);
    Value* chunk = b.CreateUDiv(number, block_count);
    const auto [column, column_end] = part(b.CreateURem(chunk, chunk_count), tile.columns, tile.inner);
    bind_point(unit, task, tile.outer, b.CreateUDiv(chunk, chunk_count));
    Value *from = column, *to = column_end, *last = row_end;
    loop_in(unit, task, row, last, constant(unit, tile.rows), "row", [&](Scope& inside, Value* at) {
      Value* end = minimum_of(unit, b.CreateAdd(at, constant(unit, tile.rows)), last);
      emit_rows(unit, inside, tile, {at, end, from, to});
    });
  });
  return source;
}

}  // namespace tenon::codegen::simd
