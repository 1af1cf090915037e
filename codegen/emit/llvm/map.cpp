// Map kernels: a task is a chunk of the innermost axis in one or more rows. Stores that exceed the caches go around
// them: then the first vector is masked so that the rest are aligned.
#include "codegen/emit/llvm/classes.h"

namespace tenon::codegen::simd {
namespace {

struct Tiling {
  std::vector<int> outer;  // axes
  int inner = -1;          // axis along the lanes
  int lanes = 1, unroll = 1;
  std::int64_t rows = 1;   // of a task
  std::int64_t chunk = 0;  // of the inner axis
};

void store_all(Unit& unit, std::vector<Scope>& scopes, bool streaming) {
  for (Scope& scope : scopes)
    for (const Store& store : unit.kernel.stores) evaluate(unit, scope, store.value);
  for (Scope& scope : scopes)
    for (const Store& store : unit.kernel.stores)
      emit_store(unit, scope, store,
                 {streaming && is_contiguous(unit, scope, store.access) && store.access.guards.empty()});
}

// Bytes from `address` up to the next multiple of `alignment`.
Value* bytes_to(Unit& unit, Value* address, std::int64_t alignment) {
  auto& b = unit.b;
  return b.CreateAnd(b.CreateNeg(b.CreatePtrToInt(address, b.getInt64Ty())), constant(unit, alignment - 1));
}

// How many elements come before the first aligned vector, and whether all streamed stores are aligned from there on.
struct Head {
  Value* count = nullptr;
  Value* aligned = nullptr;
};

Head find_head(Unit& unit, Scope& scope, const Tiling& tiling, Value* begin) {
  auto& b = unit.b;
  Scope probe = child_of(scope, unit);
  bind_lanes(probe, tiling.inner, begin, tiling.lanes, nullptr);
  Head head;
  for (const Store& store : unit.kernel.stores) {
    if (!is_contiguous(unit, probe, store.access) || !store.access.guards.empty()) continue;
    const std::int64_t size = size_of(unit.kernel.operands[static_cast<std::size_t>(store.access.operand)].dtype);
    Value* address =
        element_address(unit, store.access.operand, evaluate_affine(unit, probe, store.access.offset)->base);
    if (!head.count) head.count = b.CreateUDiv(bytes_to(unit, address, tiling.lanes * size), constant(unit, size));
    Value* start = b.CreateGEP(b.getInt8Ty(), address, b.CreateMul(head.count, constant(unit, size)));
    Value* aligned = b.CreateICmpEQ(bytes_to(unit, start, tiling.lanes * size), constant(unit, 0));
    head.aligned = head.aligned ? b.CreateAnd(head.aligned, aligned) : aligned;
  }
  return head;
}

// More bytes than the last-level cache holds: what is written would be gone before it is read.
Value* exceeds_cache(Unit& unit) {
  Value* bytes = constant(unit, 0);
  for (const Operand& operand : unit.kernel.operands)
    bytes = unit.b.CreateAdd(bytes, emit_dim(unit, element_count(operand.shape) * Dim(size_of(operand.dtype))));
  return unit.b.CreateICmpSGT(bytes, constant(unit, unit.target.l3_bytes));
}

// The vectors of [begin, end), the last one masked.
void emit_masked(Unit& unit, Scope& scope, const Tiling& tiling, Value* begin, Value* end) {
  loop_in(unit, scope, begin, end, constant(unit, tiling.lanes), "masked", [&](Scope& inside, Value* base) {
    Value* mask = first_lanes(unit, unit.b.CreateSub(end, base), tiling.lanes);
    std::vector<Scope> one{child_of(inside, unit)};
    bind_lanes(one[0], tiling.inner, base, tiling.lanes, mask);
    store_all(unit, one, false);
  });
}

void emit_vectors(Unit& unit, Scope& scope, const Tiling& tiling, Value* begin, Value* end) {
  const int step = tiling.lanes * tiling.unroll;
  loop_in(unit, scope, begin, end, constant(unit, step), "stream", [&](Scope& body, Value* base) {
    std::vector<Scope> scopes;
    for (int i = 0; i < tiling.unroll; ++i) {
      scopes.push_back(child_of(body, unit));
      Value* start = unit.b.CreateNSWAdd(base, constant(unit, i * tiling.lanes));
      bind_lanes(scopes.back(), tiling.inner, start, tiling.lanes, nullptr);
    }
    store_all(unit, scopes, true);
  });
}

// The aligned middle of [begin, end) around the caches, what is before and after it masked; all of it masked when the
// outputs are not aligned to each other or fit the cache.
void emit_streamed(Unit& unit, Scope& scope, const Tiling& tiling, const Head& head, Value* begin, Value* end) {
  auto& b = unit.b;
  const std::int64_t step = tiling.lanes * tiling.unroll;
  Value* start = b.CreateAdd(begin, head.count);
  Value* streamed = b.CreateAnd(b.CreateAnd(head.aligned, b.CreateICmpSLT(start, end)), exceeds_cache(unit));
  Value* turns = b.CreateUDiv(b.CreateSub(end, start), constant(unit, step));
  Value* stop = b.CreateAdd(start, b.CreateMul(turns, constant(unit, step)));
  start = b.CreateSelect(streamed, start, begin);
  stop = b.CreateSelect(streamed, stop, begin);
  emit_vectors(unit, scope, tiling, start, stop);
  loop_in(
      unit, scope, constant(unit, 0), constant(unit, 2), constant(unit, 1), "edge", [&](Scope& inside, Value* edge) {
        Value* is_first = b.CreateICmpEQ(edge, constant(unit, 0));
        emit_masked(unit, inside, tiling, b.CreateSelect(is_first, begin, stop), b.CreateSelect(is_first, start, end));
        inside.home = b.GetInsertBlock();
      });
}

void emit_row(Unit& unit, Scope& scope, const Tiling& tiling, bool streaming, Value* begin, Value* end) {
  const Head head = streaming ? find_head(unit, scope, tiling, begin) : Head{};
  if (head.count) return emit_streamed(unit, scope, tiling, head, begin, end);
  for_lanes(unit, scope, tiling.inner, begin, end, tiling.lanes, tiling.unroll,
            [&](std::vector<Scope>& scopes) { store_all(unit, scopes, false); });
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
      emit_row(unit, row, tiling, schedule.streaming, begin, end);
    });
  });
  return source;
}

}  // namespace tenon::codegen::simd
