// See stream.h.
#include "codegen/emit/llvm/stream.h"

#include "codegen/analysis/vectorize.h"
#include "codegen/emit/llvm/classes.h"

namespace tenon::codegen::simd {
namespace {

bool may_stream(Unit& unit, const Scope& scope, const Store& store) {
  return is_contiguous(unit, scope, store.access) && store.access.guards.empty();
}

// Where the element of the first lane goes, and its bytes.
std::pair<Value*, std::int64_t> first_lane(Unit& unit, Scope& scope, const Store& store) {
  const Access& access = store.access;
  Value* offset = evaluate_affine(unit, scope, access.offset)->base;
  return {element_address(unit, access.operand, offset), element_bytes(unit.kernel, access)};
}

// Bytes from `address` up to the next multiple of `alignment`.
Value* bytes_to(Unit& unit, Value* address, std::int64_t alignment) {
  auto& b = unit.b;
  return b.CreateAnd(b.CreateNeg(b.CreatePtrToInt(address, b.getInt64Ty())), constant(unit, alignment - 1));
}

// How many elements come before the first whole line, and whether all streamed stores begin one there. A line of which
// a part goes around the caches and a part through them takes as long as hundreds of others.
struct Head {
  Value* count = nullptr;
  Value* aligned = nullptr;
  Value* long_enough = nullptr;  // null: whatever their number
  std::int64_t line = 1;         // elements, of the narrowest store
};

// Whether short rows may share lines: tiles end theirs at lines, and what is stored late does not wait for memory.
bool takes_short_rows(const Kernel& kernel) {
  if (const auto* map = std::get_if<MapSchedule>(&kernel.schedule)) return map->tile.has_value();
  const auto* reduce = std::get_if<ReduceSchedule>(&kernel.schedule);
  return reduce != nullptr && reduce->late_stores;
}

Head find_head(Unit& unit, Scope& scope, const std::vector<int>& stores, const Lanes& lanes) {
  auto& b = unit.b;
  Scope probe = child_of(scope, unit);
  bind_lanes(probe, lanes.axis, lanes.begin, lanes.lanes, nullptr);
  Head head;
  for (const int number : stores) {
    const Store& store = unit.kernel.stores[static_cast<std::size_t>(number)];
    if (!may_stream(unit, probe, store)) continue;
    const auto [address, size] = first_lane(unit, probe, store);
    const std::int64_t bytes = std::max<std::int64_t>(kLineBytes, lanes.lanes * size);
    if (!head.count) head.count = b.CreateUDiv(bytes_to(unit, address, bytes), constant(unit, size));
    Value* start = b.CreateGEP(b.getInt8Ty(), address, b.CreateMul(head.count, constant(unit, size)));
    Value* aligned = b.CreateICmpEQ(bytes_to(unit, start, bytes), constant(unit, 0));
    head.aligned = head.aligned ? b.CreateAnd(head.aligned, aligned) : aligned;
    head.line = std::max<std::int64_t>(head.line, kLineBytes / size);
    if (takes_short_rows(unit.kernel) || !rows_share_lines(unit.kernel, store.access, lanes.axis)) continue;
    Value* row = b.CreateMul(b.CreateSub(lanes.end, lanes.begin), constant(unit, size));
    Value* long_row = b.CreateICmpSGE(row, constant(unit, unit.target.streamed_row_bytes));
    head.long_enough = head.long_enough ? b.CreateAnd(head.long_enough, long_row) : long_row;
  }
  return head;
}

// More bytes than the last-level cache holds.
Value* exceeds_cache(Unit& unit) {
  Value* bytes = constant(unit, 0);
  for (const Operand& operand : unit.kernel.operands)
    bytes = unit.b.CreateAdd(bytes, emit_dim(unit, element_count(operand.shape) * Dim(size_of(operand.dtype))));
  return unit.b.CreateICmpSGT(bytes, constant(unit, unit.target.l3_bytes));
}

}  // namespace

Value* may_stream_from(Unit& unit, Scope& corner, const std::vector<int>& stores, int across) {
  auto& b = unit.b;
  Value* all = exceeds_cache(unit);
  for (const int number : stores) {
    const Store& store = unit.kernel.stores[static_cast<std::size_t>(number)];
    if (!may_stream(unit, corner, store)) continue;
    const auto row = store.access.offset.coefficient(across);
    if (!row || !divisible(unit, *row, corner.lanes)) return b.getFalse();
    const auto [address, size] = first_lane(unit, corner, store);
    all = b.CreateAnd(all, b.CreateICmpEQ(bytes_to(unit, address, corner.lanes * size), constant(unit, 0)));
  }
  return all;
}

Value* past_line(Unit& unit, Scope& scope, const std::vector<int>& stores, int axis, Value* at) {
  auto& b = unit.b;
  Scope probe = child_of(scope, unit);
  bind_lanes(probe, axis, at, 2, nullptr);
  for (const int number : stores) {
    const Store& store = unit.kernel.stores[static_cast<std::size_t>(number)];
    if (!may_stream(unit, probe, store)) continue;
    const auto [address, size] = first_lane(unit, probe, store);
    Value* bytes = b.CreateAnd(b.CreatePtrToInt(address, b.getInt64Ty()), constant(unit, kLineBytes - 1));
    return b.CreateUDiv(bytes, constant(unit, size));
  }
  return constant(unit, 0);
}

void emit_stores(Unit& unit, std::vector<Scope>& scopes, const std::vector<int>& stores, bool streaming) {
  for (Scope& scope : scopes)
    for (const int store : stores) evaluate(unit, scope, unit.kernel.stores[static_cast<std::size_t>(store)].value);
  for (Scope& scope : scopes)
    for (const int number : stores) {
      const Store& store = unit.kernel.stores[static_cast<std::size_t>(number)];
      emit_store(unit, scope, store, {streaming && may_stream(unit, scope, store)});
    }
}

std::optional<Streamed> streamed_lanes(Unit& unit, Scope& scope, const std::vector<int>& stores, const Lanes& lanes) {
  auto& b = unit.b;
  const Head head = find_head(unit, scope, stores, lanes);
  if (!head.count) return std::nullopt;
  const std::int64_t step = std::max(std::int64_t{lanes.lanes} * lanes.unroll, head.line);
  Value* start = b.CreateAdd(lanes.begin, head.count);
  Value* streamed = b.CreateAnd(b.CreateAnd(head.aligned, b.CreateICmpSLT(start, lanes.end)), exceeds_cache(unit));
  if (head.long_enough) streamed = b.CreateAnd(streamed, head.long_enough);
  Value* turns = b.CreateUDiv(b.CreateSub(lanes.end, start), constant(unit, step));
  Value* stop = b.CreateAdd(start, b.CreateMul(turns, constant(unit, step)));
  return Streamed{lanes, b.CreateSelect(streamed, start, lanes.begin), b.CreateSelect(streamed, stop, lanes.begin)};
}

void for_edges(Unit& unit, Scope& scope, const Streamed& streamed, const std::function<void(std::vector<Scope>&)>& body,
               const LongSums* sums) {
  auto& b = unit.b;
  const Lanes& lanes = streamed.lanes;
  loop_in(unit, scope, constant(unit, 0), constant(unit, 2), constant(unit, 1), "edge", [&](Scope& edges, Value* edge) {
    Value* is_first = b.CreateICmpEQ(edge, constant(unit, 0));
    Value* begin = b.CreateSelect(is_first, lanes.begin, streamed.stop);
    Value* end = b.CreateSelect(is_first, streamed.start, lanes.end);
    loop_in_blocks(unit, edges, begin, end, lanes.lanes, "masked", sums, [&](Scope& inside, Value* base) {
      Value* mask = first_lanes(unit, b.CreateSub(end, base), lanes.lanes);
      std::vector<Scope> one{child_of(inside, unit)};
      bind_lanes(one[0], lanes.axis, base, lanes.lanes, mask);
      body(one);
    });
    edges.home = b.GetInsertBlock();
  });
}

void for_streamed_lanes(Unit& unit, Scope& scope, const std::vector<int>& stores, const Lanes& lanes,
                        const std::function<void(std::vector<Scope>&, bool)>& body, const LongSums* sums) {
  const auto masked = [&](std::vector<Scope>& vectors) { body(vectors, false); };
  const auto streamed = streamed_lanes(unit, scope, stores, lanes);
  if (!streamed)
    return for_lanes(unit, scope, lanes.axis, lanes.begin, lanes.end, lanes.lanes, lanes.unroll, masked, sums);
  loop_in_blocks(unit, scope, streamed->start, streamed->stop, std::int64_t{lanes.lanes} * lanes.unroll, "stream", sums,
                 [&](Scope& inside, Value* base) {
                   std::vector<Scope> vectors = vectors_from(unit, inside, lanes.axis, base, lanes.lanes, lanes.unroll);
                   body(vectors, true);
                 });
  for_edges(unit, scope, *streamed, masked, sums);
}

}  // namespace tenon::codegen::simd
