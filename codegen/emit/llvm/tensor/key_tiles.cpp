// See key_tiles.h.
#include "codegen/emit/llvm/tensor/key_tiles.h"

#include "codegen/analysis/key_bounds.h"
#include "codegen/analysis/tile_tests.h"
#include "codegen/emit/llvm/ops/ops.h"
#include "codegen/lower/parts.h"
#include "ir/graph/check.h"

namespace tenon::codegen::simd {
namespace {

// ---- bounds -------------------------------------------------------------------------------------------------------

// What the bound says for query `i`.
Value* limit_at(Unit& unit, Scope& task, const KeyBound& bound, Value* i) {
  auto& b = unit.b;
  Value* limit = b.CreateAdd(b.CreateMul(i, constant(unit, bound.slope)), emit_dim(unit, bound.offset));
  if (bound.value < 0) return limit;
  constexpr std::int64_t kFar = std::int64_t{1} << 62;  // no key lies so far; sums stay in 64 bits
  Value* value = b.CreateSExt(evaluate(unit, task, bound.value), b.getInt64Ty());
  value = maximum_of(unit, constant(unit, -kFar), minimum_of(unit, constant(unit, kFar), value));
  return b.CreateAdd(limit, bound.negated ? b.CreateNeg(value) : value);
}

// The keys that some query sees, or those that all of them see.
Span bounded_keys(Unit& unit, Scope& task, const std::vector<KeyBound>& bounds, const Span& queries, int axis,
                  bool by_all) {
  auto& b = unit.b;
  Span keys{axis, constant(unit, 0), emit_dim(unit, extent_of(unit.kernel, axis))};
  Value* last = b.CreateSub(queries.end, constant(unit, 1));
  for (const KeyBound& bound : bounds) {
    const bool of_last = ((bound.slope > 0) == bound.upper) != by_all;
    Value* limit = limit_at(unit, task, bound, of_last ? last : queries.begin);
    if (bound.upper) {
      keys.end = minimum_of(unit, keys.end, b.CreateAdd(limit, constant(unit, 1)));
    } else {
      keys.begin = maximum_of(unit, keys.begin, limit);
    }
  }
  return keys;
}

// ---- tests of tiles -----------------------------------------------------------------------------------------------

// The least and the greatest of a value, as i64.
struct Ends {
  Value *low = nullptr, *high = nullptr;
};
using EndsOf = std::map<InstrId, Ends>;

bool varies(const Unit& unit, InstrId id, int axis) { return (unit.kernel.instr(id).depends >> axis & 1) != 0; }

Ends between(Unit& unit, Value* a, Value* b) { return {minimum_of(unit, a, b), maximum_of(unit, a, b)}; }

// Of `id` at the points of `along`, of which there is one at least.
Ends ends_of(Unit& unit, Scope& scope, InstrId id, const Span& along) {
  auto& b = unit.b;
  const Instr& instr = unit.kernel.instr(id);
  const auto at = [&](Value* x) {
    Scope point = child_of(scope, unit);
    bind(point, along.axis, x);
    return emit_cast(unit, evaluate(unit, point, id), instr.dtype, DType::i64);
  };
  if (!varies(unit, id, along.axis)) {
    Value* value = emit_cast(unit, evaluate(unit, scope, id), instr.dtype, DType::i64);
    return {value, value};
  }
  if (is_steady(instr)) return between(unit, at(along.begin), at(b.CreateSub(along.end, constant(unit, 1))));
  const DType counted = size_of(instr.dtype) > 4 ? DType::i64 : DType::i32;
  Type* element = compute_type_of(unit, counted);
  const int lanes = native_lanes(unit.target);
  const unsigned bits = element->getIntegerBitWidth();
  Type* vector = vector_of(element, lanes);
  llvm::AllocaInst *low = variable(unit, vector, "low"), *high = variable(unit, vector, "high");
  b.CreateStore(llvm::ConstantInt::get(vector, llvm::APInt::getSignedMaxValue(bits)), low);
  b.CreateStore(llvm::ConstantInt::get(vector, llvm::APInt::getSignedMinValue(bits)), high);
  loop_in(unit, scope, along.begin, along.end, constant(unit, lanes), "ends", [&](Scope& inside, Value* x) {
    Value* mask = first_lanes(unit, b.CreateSub(along.end, x), lanes);
    bind_lanes(inside, along.axis, x, lanes, mask);
    Value* its = emit_cast(unit, evaluate_lanes(unit, inside, id), instr.dtype, counted);
    const auto add = [&](llvm::AllocaInst* to, Value* (*of)(Unit&, Value*, Value*)) {
      Value* before = b.CreateLoad(vector, to);
      b.CreateStore(b.CreateSelect(mask, of(unit, its, before), before), to);
    };
    add(low, minimum_of);
    add(high, maximum_of);
  });
  const auto wide = [&](Value* end) { return emit_cast(unit, end, counted, DType::i64); };
  return {wide(b.CreateIntMinReduce(b.CreateLoad(vector, low), true)),
          wide(b.CreateIntMaxReduce(b.CreateLoad(vector, high), true))};
}

// Whether a condition holds for some pair of a query and a key, and whether for all. "Some" may be wrong, "all" is not.
struct Verdict {
  Value *some = nullptr, *all = nullptr;
};

Verdict inverted(Unit& unit, const Verdict& verdict) {
  return {unit.b.CreateNot(verdict.all), unit.b.CreateNot(verdict.some)};
}

Verdict compared(Unit& unit, ir::Op op, const Ends& a, const Ends& b) {
  auto& builder = unit.b;
  const auto less = [&](Value* left, Value* right) { return builder.CreateICmpSLT(left, right); };
  const auto at_most = [&](Value* left, Value* right) { return builder.CreateICmpSLE(left, right); };
  if (op == ir::Op::less) return {less(a.low, b.high), less(a.high, b.low)};
  if (op == ir::Op::less_equal) return {at_most(a.low, b.high), at_most(a.high, b.low)};
  if (op == ir::Op::greater) return compared(unit, ir::Op::less, b, a);
  if (op == ir::Op::greater_equal) return compared(unit, ir::Op::less_equal, b, a);
  if (op == ir::Op::not_equal) return inverted(unit, compared(unit, ir::Op::equal, a, b));
  TENON_CHECK(op == ir::Op::equal, "tiles are told apart by comparisons");
  return {builder.CreateAnd(at_most(a.low, b.high), at_most(b.low, a.high)),
          builder.CreateAnd(at_most(a.high, b.low), at_most(b.high, a.low))};
}

Verdict verdict_of(Unit& unit, const std::vector<TileTest>& tests, int node, const EndsOf& ends) {
  auto& b = unit.b;
  const TileTest& test = tests[static_cast<std::size_t>(node)];
  const auto child = [&](int number) { return verdict_of(unit, tests, number, ends); };
  switch (test.kind) {
    case TileTest::Kind::unknown: return {b.getTrue(), b.getFalse()};
    case TileTest::Kind::truth: {
      const Ends& its = ends.at(test.a);
      return {b.CreateICmpNE(its.high, constant(unit, 0)), b.CreateICmpNE(its.low, constant(unit, 0))};
    }
    case TileTest::Kind::compare: return compared(unit, test.op, ends.at(test.a), ends.at(test.b));
    case TileTest::Kind::both: {
      const Verdict left = child(test.left), right = child(test.right);
      return {b.CreateAnd(left.some, right.some), b.CreateAnd(left.all, right.all)};
    }
    case TileTest::Kind::either: {
      const Verdict left = child(test.left), right = child(test.right);
      return {b.CreateOr(left.some, right.some), b.CreateOr(left.all, right.all)};
    }
    case TileTest::Kind::inverted: return inverted(unit, child(test.left));
  }
  return {};
}

Value* is_open(Unit& unit, const KeyTiles& tiles, const Span& keys) {
  return unit.b.CreateAnd(unit.b.CreateICmpSGE(keys.begin, tiles.open.begin),
                          unit.b.CreateICmpSLE(keys.end, tiles.open.end));
}

Span tile_from(Unit& unit, const KeyTiles& tiles, Value* first) {
  Value* next = unit.b.CreateAdd(first, constant(unit, tiles.size));
  return {tiles.keys.axis, first, minimum_of(unit, next, tiles.keys.end)};
}

// Writes the list; how many tiles it has. Where no tile is visible it has one all the same, so that rows get what the
// body makes of a row of -inf.
Value* list_tiles(Unit& unit, Scope& task, const Span& queries, const std::vector<TileTest>& tests,
                  const KeyTiles& tiles) {
  auto& b = unit.b;
  const int j = tiles.keys.axis;
  const std::vector<InstrId> values = tested_values(tests);
  EndsOf of_queries;
  for (const InstrId id : values)
    if (!varies(unit, id, j)) of_queries[id] = ends_of(unit, task, id, queries);
  llvm::AllocaInst* count = variable(unit, b.getInt64Ty(), "tiles");
  b.CreateStore(constant(unit, 0), count);
  const auto put = [&](Value* entry) {
    Value* at = advance(unit, b.getInt64Ty(), tiles.list, b.CreateLoad(b.getInt64Ty(), count));
    b.CreateAlignedStore(entry, at, llvm::Align(8));
  };
  const auto entry_of = [&](Value* first) { return b.CreateShl(first, 1); };
  put(entry_of(tiles.keys.begin));
  loop_in(unit, task, tiles.keys.begin, tiles.keys.end, constant(unit, tiles.size), "tests",
          [&](Scope& inside, Value* first) {
            const Span keys = tile_from(unit, tiles, first);
            EndsOf ends = of_queries;
            for (const InstrId id : values)
              if (varies(unit, id, j)) ends[id] = ends_of(unit, inside, id, keys);
            const Verdict verdict = verdict_of(unit, tests, static_cast<int>(tests.size()) - 1, ends);
            Value* open = tiles.may_open ? b.CreateAnd(verdict.all, is_open(unit, tiles, keys)) : b.getFalse();
            put(b.CreateOr(entry_of(first), b.CreateZExt(open, b.getInt64Ty())));
            Value* before = b.CreateLoad(b.getInt64Ty(), count);
            b.CreateStore(b.CreateAdd(before, b.CreateZExt(verdict.some, b.getInt64Ty())), count);
          });
  return maximum_of(unit, constant(unit, 1), b.CreateLoad(b.getInt64Ty(), count));
}

}  // namespace

KeyTiles find_key_tiles(Unit& unit, Scope& task, const Span& queries, int size, Value* list) {
  auto& b = unit.b;
  const bool block_mask = std::get<AttendSchedule>(unit.kernel.schedule).block_mask;
  const int j = attend_parts(unit.kernel).j;
  const KeyMasks masks = key_masks(unit.kernel);
  KeyTiles tiles;
  tiles.size = size;
  tiles.keys = bounded_keys(unit, task, masks.bounds, queries, j, false);
  tiles.open = bounded_keys(unit, task, masks.bounds, queries, j, true);
  tiles.may_open = masks.exact && (block_mask || masks.others.empty()) && masks.open != unit.kernel.attention.score;
  if (!masks.bounds.empty()) {  // all keys where none is seen, so that rows get what the body makes of a row of -inf
    Value* none = b.CreateICmpSLE(tiles.keys.end, tiles.keys.begin);
    tiles.keys.begin = b.CreateSelect(none, constant(unit, 0), tiles.keys.begin);
    tiles.keys.end = b.CreateSelect(none, emit_dim(unit, extent_of(unit.kernel, j)), tiles.keys.end);
  }
  tiles.begin = tiles.keys.begin;
  tiles.end = tiles.keys.end;
  if (block_mask) {
    tiles.list = list;
    tiles.begin = constant(unit, 0);
    tiles.end =
        b.CreateMul(list_tiles(unit, task, queries, tile_tests(unit.kernel, masks), tiles), constant(unit, size));
  }
  return tiles;
}

// An entry for each tile, and one that is written before it is known whether it counts.
Value* key_tile_bytes(Unit& unit, int size) {
  auto& b = unit.b;
  if (!std::get<AttendSchedule>(unit.kernel.schedule).block_mask) return constant(unit, 0);
  Value* keys = emit_dim(unit, extent_of(unit.kernel, attend_parts(unit.kernel).j));
  Value* entries = b.CreateAdd(ceil_div(unit, keys, size), constant(unit, 1));
  return b.CreateMul(ceil_div(unit, entries, 8), constant(unit, 64));
}

KeyTile tile_at(Unit& unit, const KeyTiles& tiles, Value* place) {
  auto& b = unit.b;
  if (tiles.list == nullptr) {
    const Span keys = tile_from(unit, tiles, place);
    return {keys, tiles.may_open ? is_open(unit, tiles, keys) : nullptr};
  }
  Value* number = b.CreateUDiv(place, constant(unit, tiles.size));
  Value* entry = b.CreateAlignedLoad(b.getInt64Ty(), advance(unit, b.getInt64Ty(), tiles.list, number), llvm::Align(8));
  return {tile_from(unit, tiles, b.CreateAShr(entry, 1)),
          tiles.may_open ? b.CreateTrunc(entry, b.getInt1Ty()) : nullptr};
}

}  // namespace tenon::codegen::simd
