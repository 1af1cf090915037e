// Map kernels: a task is a chunk of the innermost axis in one or more rows.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "codegen/analysis/interior.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/llvm/classes.h"
#include "codegen/emit/llvm/interleave.h"
#include "codegen/emit/llvm/stream.h"

namespace tenon::codegen::simd {
namespace {

struct Tiling {
  std::vector<int> outer;  // axes
  int inner = -1;          // axis along the lanes
  int lanes = 1, unroll = 1;
  std::int64_t rows = 1;   // of a task
  std::int64_t chunk = 0;  // of the inner axis
};

std::vector<int> every_store(const Kernel& kernel) {
  std::vector<int> stores(kernel.stores.size());
  std::iota(stores.begin(), stores.end(), 0);
  return stores;
}

constexpr std::int64_t kLineBytes = 64;

// Whether one lies within a line of the other, whatever the point: neighbours of a stencil.
bool share_lines(const Kernel& kernel, const Access& a, const Access& b) {
  if (a.operand != b.operand) return false;
  const Index apart = a.offset - b.offset;
  if (!apart.is_constant() || !apart.constant().is_constant()) return false;
  return std::abs(apart.constant().constant()) * element_bytes(kernel, a) < kLineBytes;
}

// Vectors that take turns leave the hardware few loads at a time to go by. Each line is asked for once.
void fetch_ahead(Unit& unit, std::vector<Scope>& vectors) {
  constexpr std::int64_t kAhead = 2048;
  std::vector<const Access*> fetched;
  for (const Instr& instr : unit.kernel.body) {
    if (instr.kind != InstrKind::load) continue;
    const auto has_lines = [&](const Access* other) { return share_lines(unit.kernel, *other, instr.access); };
    if (std::any_of(fetched.begin(), fetched.end(), has_lines)) continue;
    fetched.push_back(&instr.access);
    const std::int64_t size = element_bytes(unit.kernel, instr.access), bytes = vectors[0].lanes * size;
    const auto step = static_cast<std::size_t>(std::max<std::int64_t>(1, kLineBytes / bytes));
    for (std::size_t i = 0; i < vectors.size(); i += step)
      emit_prefetch(unit, vectors[i], instr.access, Dim(kAhead / size), CacheLevel::first);
  }
}

void emit_turn(Unit& unit, std::vector<Scope>& vectors, const MapSchedule& schedule, bool around) {
  std::vector<InstrId> values;
  for (const Store& store : unit.kernel.stores) values.push_back(store.value);
  if (schedule.interleave && around) fetch_ahead(unit, vectors);
  if (schedule.interleave) evaluate_interleaved(unit, vectors, values);
  emit_stores(unit, vectors, every_store(unit.kernel), around);
}

// Of `begin` … `end` of a row what lies in the interior: nothing in a row that is none of it.
std::pair<Value*, Value*> inside_row(Unit& unit, const Scope& row, const Tiling& tiling, Value* begin, Value* end) {
  auto& b = unit.b;
  Value *from = begin, *to = end, *inside = b.getTrue();
  for (const AxisRange& range : interior_of(unit.kernel)) {
    Value* at = row.axes[static_cast<std::size_t>(range.axis)];
    for (const Dim& low : range.lows) {
      Value* limit = emit_dim(unit, low);
      if (range.axis == tiling.inner)
        from = maximum_of(unit, from, limit);
      else
        inside = b.CreateAnd(inside, b.CreateICmpSGE(at, limit));
    }
    for (const Dim& high : range.highs) {
      Value* limit = emit_dim(unit, high);
      if (range.axis == tiling.inner)
        to = minimum_of(unit, to, limit);
      else
        inside = b.CreateAnd(inside, b.CreateICmpSLT(at, limit));
    }
  }
  inside = b.CreateAnd(inside, b.CreateICmpSLT(from, to));
  return {b.CreateSelect(inside, from, begin), b.CreateSelect(inside, to, begin)};
}

// A row in three pieces: whole turns of the interior without guards, and what lies before and behind them in masked
// vectors.
void emit_cut_row(Unit& unit, Scope& scope, const Tiling& tiling, const MapSchedule& schedule, Value* begin,
                  Value* end) {
  auto& b = unit.b;
  const std::int64_t turn = std::int64_t{tiling.lanes} * tiling.unroll;
  const auto [from, to] = inside_row(unit, scope, tiling, begin, end);
  const Lanes lanes{tiling.inner, tiling.lanes, tiling.unroll, from, to};
  const auto turns = [&](Value* first, Value* last, bool around) {
    loop_in(unit, scope, first, last, constant(unit, turn), around ? "stream" : "interior",
            [&](Scope& inside, Value* base) {
              inside.inside = true;
              std::vector<Scope> vectors = vectors_from(unit, inside, tiling.inner, base, tiling.lanes, tiling.unroll);
              emit_turn(unit, vectors, schedule, around);
            });
  };
  Value *start = from, *stop = from;
  if (schedule.cache.streaming)
    if (const auto streamed = streamed_lanes(unit, scope, every_store(unit.kernel), lanes)) {
      turns(streamed->start, streamed->stop, true);
      start = streamed->start;
      stop = streamed->stop;
    }
  Value* whole = b.CreateMul(b.CreateSDiv(b.CreateSub(to, stop), constant(unit, turn)), constant(unit, turn));
  Value* behind = b.CreateAdd(stop, whole);
  turns(stop, behind, false);
  for_edges(unit, scope, {{tiling.inner, tiling.lanes, 1, begin, end}, start, behind},
            [&](std::vector<Scope>& vectors) { emit_turn(unit, vectors, schedule, false); });
}

void emit_row(Unit& unit, Scope& scope, const Tiling& tiling, const MapSchedule& schedule, Value* begin, Value* end) {
  if (schedule.interior) return emit_cut_row(unit, scope, tiling, schedule, begin, end);
  for_streamed_lanes(unit, scope, schedule.cache.streaming ? every_store(unit.kernel) : std::vector<int>{},
                     {tiling.inner, tiling.lanes, tiling.unroll, begin, end},
                     [&](std::vector<Scope>& vectors, bool around) { emit_turn(unit, vectors, schedule, around); });
}

Tiling tiling_of(const Kernel& kernel, const MapSchedule& schedule) {
  Tiling tiling;
  tiling.lanes = std::max(2, schedule.vector);
  tiling.unroll = std::max(1, schedule.unroll);
  tiling.inner = static_cast<int>(kernel.axes.size()) - 1;
  for (int axis = 0; axis < tiling.inner; ++axis) tiling.outer.push_back(axis);
  const std::int64_t turn = tiling.lanes * tiling.unroll;
  const std::int64_t grain = std::max<std::int64_t>(turn, schedule.grain / turn * turn);
  const Dim& extent = extent_of(kernel, tiling.inner);
  tiling.chunk = grain;
  if (extent.is_constant()) {
    tiling.rows = std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, extent.constant()));
    if (tiling.rows > 1) tiling.chunk = extent.constant();
  }
  tiling.chunk = std::max<std::int64_t>(1, tiling.chunk);
  return tiling;
}

}  // namespace

Source emit_map(Unit& unit) {
  const Kernel& kernel = unit.kernel;
  const auto& schedule = std::get<MapSchedule>(kernel.schedule);
  if (schedule.tile) return emit_map_tile(unit);
  auto& b = unit.b;
  Source source;
  const TaskRange range = begin_function(unit, kernel.name, kernel.operands.size());
  Scope root = root_scope(unit);
  if (kernel.axes.empty()) {
    for_tasks(unit, root, range, [&](Scope& task, Value*) {
      for (const Store& store : kernel.stores) emit_store(unit, task, store);
    });
    return source;
  }
  const Tiling tiling = tiling_of(kernel, schedule);
  const Dim rows = point_count(kernel, tiling.outer);
  const Dim chunks = ceil_div(extent_of(kernel, tiling.inner), tiling.chunk);
  source.launch.grid_x = ceil_div(rows, tiling.rows) * chunks;
  for_tasks(unit, root, range, [&](Scope& task, Value* number) {
    Value* chunk_count = emit_dim(unit, chunks);
    Value* block = chunks.is(1) ? number : b.CreateUDiv(number, chunk_count);
    Value* first = b.CreateMul(block, constant(unit, tiling.rows));
    Value* last = minimum_of(unit, b.CreateAdd(first, constant(unit, tiling.rows)), emit_dim(unit, rows));
    Value* begin =
        chunks.is(1) ? constant(unit, 0) : b.CreateMul(b.CreateURem(number, chunk_count), constant(unit, tiling.chunk));
    Value* end = minimum_of(unit, b.CreateAdd(begin, constant(unit, tiling.chunk)),
                            emit_dim(unit, extent_of(kernel, tiling.inner)));
    loop_in(unit, task, first, last, constant(unit, 1), "row", [&](Scope& row, Value* linear) {
      bind_point(unit, row, tiling.outer, linear);
      emit_row(unit, row, tiling, schedule, begin, end);
    });
  });
  return source;
}

}  // namespace tenon::codegen::simd
