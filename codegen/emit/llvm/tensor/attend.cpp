// Attend kernels: a task is a block of queries, which lie along the lanes. Its scores against all keys that it sees are
// kept in the thread's scratch, never in memory shared with others: 128 bytes a key on AVX-512. Three passes over the
// tiles of keys that are visible (key_tiles.h): scores and their maximum, weights and their sum, the mix with the
// values. With the true maximum known before any weight is computed, nothing is rescaled and the body's own shift,
// casts and divisions are what runs.
#include <algorithm>
#include <numeric>

#include "codegen/analysis/key_bounds.h"
#include "codegen/emit/llvm/reduce/long_sums.h"
#include "codegen/emit/llvm/tensor/key_tiles.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen::simd {
namespace {

constexpr int kRowPadding = 16;
constexpr int kValueColumns = 64;  // of a packed block of values, at most

struct Block {
  AttendParts parts;
  Type* type = nullptr;
  int lanes = 1, vectors = 1;  // queries of a block: lanes * vectors
  int keys = 0, depth = 0;     // of a packed block
  int columns = 0;  // of one of values: whole micro-kernels, which add to all rows that they have, and vectors
  MicroKernel score, mix;
  llvm::Function* score_micro = nullptr;
  llvm::Function* mix_micro = nullptr;
  Value *q = nullptr, *packed = nullptr, *scores = nullptr, *out = nullptr, *tiles = nullptr;  // scratch
  LongProduct mixed;

  int queries() const { return lanes * vectors; }
};

Block make_block(Unit& unit) {
  Block block;
  block.parts = attend_parts(unit.kernel);
  const auto& schedule = std::get<AttendSchedule>(unit.kernel.schedule);
  block.type = compute_type_of(unit, unit.kernel.instr(block.parts.q.value).dtype);
  block.lanes = static_cast<int>(8 * unit.target.vector_bytes / static_cast<int>(block.type->getScalarSizeInBits()));
  block.vectors = std::clamp(schedule.tile_q / block.lanes, 1, 2);
  block.keys = std::max(16, schedule.tile_kv);
  block.depth = 256;
  block.score = {block.type, block.lanes, block.vectors, 8, block.depth + kRowPadding, 1, block.queries()};
  block.mix = {block.type, block.lanes, block.vectors, 8, 1, kValueColumns + kRowPadding, block.queries()};
  if (unit.target.vector_bytes < 64) block.score.rows = block.mix.rows = 6;
  const int whole = std::lcm(block.mix.rows, block.lanes);
  block.columns = kValueColumns / whole * whole;
  return block;
}

std::int64_t element_bytes(const Block& block) { return block.type->getScalarSizeInBits() / 8; }
llvm::Align alignment(const Block& block) { return llvm::Align(static_cast<std::uint64_t>(element_bytes(block))); }

// Scratch: the list of tiles, queries [d][queries], a packed block of keys or values, scores [j][queries], the mix
// [e][queries]. Rows are rounded up to whole micro-kernels.
void allocate(Unit& unit, Block& block) {
  auto& b = unit.b;
  const auto rows_of = [&](int axis) {
    return b.CreateMul(b.CreateAdd(emit_dim(unit, extent_of(unit.kernel, axis)), constant(unit, 16)),
                       constant(unit, block.queries()));
  };
  Value* q = rows_of(block.parts.d);
  Value* packed = constant(unit, (block.keys + 16) * std::int64_t{block.depth + kRowPadding});
  Value* scores = rows_of(block.parts.j);
  Value* out = b.CreateAdd(rows_of(block.parts.e), constant(unit, kValueColumns * block.queries()));
  Value* all = b.CreateAdd(b.CreateAdd(q, packed), b.CreateAdd(scores, out));
  block.mixed = {block.keys, block.type, extent_of(unit.kernel, block.parts.j).bounds(unit.kernel.symbols).max};
  Value* list = key_tile_bytes(unit, block.keys);
  Value* bytes = b.CreateAdd(list, b.CreateMul(all, constant(unit, element_bytes(block))));
  Value* blocks = b.CreateMul(out, constant(unit, block.mixed.needed() ? kDoubleBytes : 0));
  block.tiles = thread_scratch(unit, b.CreateAdd(bytes, blocks));
  block.mixed.blocks = advance(unit, b.getInt8Ty(), block.tiles, bytes);
  block.q = advance(unit, b.getInt8Ty(), block.tiles, list);
  block.packed = advance(unit, block.type, block.q, q);
  block.scores = advance(unit, block.type, block.packed, packed);
  block.out = advance(unit, block.type, block.scores, scores);
}

Value* element_row(Unit& unit, const Block& block, Value* base, Value* row) {
  return advance(unit, block.type, base, unit.b.CreateMul(row, constant(unit, block.queries())));
}

// ---- passes over the keys -----------------------------------------------------------------------------------------

// One scope for each vector of queries.
using Rows = std::vector<Scope>;

Rows bind_queries(Unit& unit, Scope& task, const Block& block, Value* i0, Value* i1) {
  Rows rows;
  for (int v = 0; v < block.vectors; ++v) {
    rows.push_back(child_of(task, unit));
    Value* base = unit.b.CreateAdd(i0, constant(unit, v * block.lanes));
    bind_lanes(rows.back(), block.parts.i, base, block.lanes,
               first_lanes(unit, unit.b.CreateSub(i1, base), block.lanes));
    rows.back().holds_results = true;
  }
  return rows;
}

void come_home(Unit& unit, Rows& rows) {
  for (Scope& row : rows) row.home = unit.b.GetInsertBlock();
}

// For each key of a tile: body(vector, its scope, where its scores stand).
using KeyBody = std::function<void(std::size_t, Scope&, Value*)>;
void for_keys(Unit& unit, Rows& rows, const Block& block, const Span& keys, const KeyBody& body) {
  emit_loop(unit, keys.begin, keys.end, constant(unit, 1), "key", [&](Value* j) {
    Value* line = element_row(unit, block, block.scores, j);
    for (std::size_t v = 0; v < rows.size(); ++v) {
      Scope inside = child_of(rows[v], unit);
      bind(inside, block.parts.j, j);
      body(v, inside, advance(unit, block.type, line, constant(unit, static_cast<std::int64_t>(v) * block.lanes)));
    }
  });
}

// For each tile of keys: body(tile).
void for_tiles(Unit& unit, Rows& rows, const KeyTiles& tiles, const std::function<void(const KeyTile&)>& body) {
  come_home(unit, rows);
  emit_loop(unit, tiles.begin, tiles.end, constant(unit, tiles.size), "tile",
            [&](Value* place) { body(tile_at(unit, tiles, place)); });
  come_home(unit, rows);
}

Value* load_row(Unit& unit, const Block& block, Value* at) {
  return unit.b.CreateAlignedLoad(vector_of(block.type, block.lanes), at, alignment(block));
}
void store_row(Unit& unit, const Block& block, Value* value, Value* at) {
  unit.b.CreateAlignedStore(splat(unit, value, block.lanes), at, alignment(block));
}

// A reduction over the keys, one accumulator for each vector.
struct KeyReduction {
  InstrId id = -1;
  std::vector<Accumulator> accumulators;
  LongSums sums;
};

KeyReduction start_reduction(Unit& unit, const Block& block, InstrId id) {
  KeyReduction reduction{id, {}, {unit, extent_of(unit.kernel, block.parts.j).bounds(unit.kernel.symbols).max, true}};
  if (id < 0) return reduction;
  for (int v = 0; v < block.vectors; ++v) {
    reduction.accumulators.push_back(make_accumulator(unit, unit.kernel.instr(id), block.lanes));
    reduction.sums.add(unit.kernel.instr(id), {reduction.accumulators.back()});
  }
  return reduction;
}

void reduce_key(Unit& unit, const KeyReduction& reduction, std::size_t v, Scope& scope) {
  if (reduction.id < 0) return;
  const Instr& instr = unit.kernel.instr(reduction.id);
  const Accumulator& accumulator = reduction.accumulators[v];
  const Partial element{evaluate_lanes(unit, scope, instr.args[0]), nullptr};
  write(unit, accumulator, accumulate(unit, instr, read(unit, accumulator), element));
}

void finish_reduction(Unit& unit, const KeyReduction& reduction, Rows& rows) {
  if (reduction.id < 0) return;
  const Instr& instr = unit.kernel.instr(reduction.id);
  for (std::size_t v = 0; v < rows.size(); ++v)
    rows[v].values[reduction.id] =
        narrowed(unit, instr, reduction.sums.collect(instr, {reduction.accumulators[v]})).value;
}

// The products q k' of all keys, tile by tile, into the scores.
void emit_products(Unit& unit, Scope& task, const Block& block, const KeyTiles& tiles) {
  auto& b = unit.b;
  loop_in(unit, task, tiles.begin, tiles.end, constant(unit, tiles.size), "keys", [&](Scope& inside, Value* place) {
    const Span some = tile_at(unit, tiles, place).keys;
    Value* depth = emit_dim(unit, extent_of(unit.kernel, block.parts.d));
    Value* stop = maximum_of(unit, depth, constant(unit, 1));  // an empty sum is written as 0
    loop_in(unit, inside, constant(unit, 0), stop, constant(unit, block.depth), "depth", [&](Scope& part, Value* d) {
      const Span span{block.parts.d, d, minimum_of(unit, b.CreateAdd(d, constant(unit, block.depth)), depth)};
      pack(unit, part, block.parts.k.value, some, span, block.lanes, block.type, block.packed, block.score.a_row);
      multiply_rows(unit, part, block.score_micro, block.score, b.CreateSub(some.end, some.begin), block.packed,
                    element_row(unit, block, block.q, d), element_row(unit, block, block.scores, some.begin),
                    b.CreateSub(span.end, span.begin), b.CreateICmpEQ(d, constant(unit, 0)));
    });
  });
}

// The scores as the body computes them, in place of the products, and their maximum. Where nothing hides a key of the
// tile, nothing is masked.
void emit_scores(Unit& unit, Rows& rows, const Block& block, const KeyTiles& tiles) {
  const AttendParts& parts = block.parts;
  const KeyReduction maximum = start_reduction(unit, block, parts.maximum);
  const auto scores_from = [&](InstrId score) {
    return [&, score](std::size_t v, Scope& scope, Value* at) {
      scope.values[parts.scores] = load_row(unit, block, at);
      scope.values[parts.score] = evaluate(unit, scope, score);
      reduce_key(unit, maximum, v, scope);
      store_row(unit, block, scope.values[parts.score], at);
    };
  };
  for_tiles(unit, rows, tiles, [&](const KeyTile& tile) {
    if (!tile.open) return for_keys(unit, rows, block, tile.keys, scores_from(parts.score));
    const InstrId open = key_masks(unit.kernel).open;
    emit_if(unit, tile.open, [&] { for_keys(unit, rows, block, tile.keys, scores_from(open)); });
    emit_if(unit, unit.b.CreateNot(tile.open),
            [&] { for_keys(unit, rows, block, tile.keys, scores_from(parts.score)); });
  });
  finish_reduction(unit, maximum, rows);
}

// Weights and their sum, then what the values are mixed with: each left in place of the scores.
void emit_weights(Unit& unit, Rows& rows, const Block& block, const KeyTiles& tiles) {
  const AttendParts& parts = block.parts;
  KeyReduction sum = start_reduction(unit, block, parts.sum);
  for_tiles(unit, rows, tiles, [&](const KeyTile& tile) {
    for_keys(unit, rows, block, tile.keys, [&](std::size_t v, Scope& scope, Value* at) {
      scope.values[parts.score] = load_row(unit, block, at);
      store_row(unit, block, evaluate(unit, scope, parts.weight), at);
      reduce_key(unit, sum, v, scope);
    });
    sum.sums.after_run(unit.b.CreateSub(tile.keys.end, tile.keys.begin));
  });
  finish_reduction(unit, sum, rows);
  const InstrId mixed = unit.kernel.instr(parts.mix).args[0];
  if (mixed == parts.weight) return;
  for_tiles(unit, rows, tiles, [&](const KeyTile& tile) {
    for_keys(unit, rows, block, tile.keys, [&](std::size_t, Scope& scope, Value* at) {
      scope.values[parts.weight] = load_row(unit, block, at);
      store_row(unit, block, evaluate(unit, scope, mixed), at);
    });
  });
}

// The mix of the values, [e][queries].
void emit_mix(Unit& unit, Scope& task, const Block& block, const KeyTiles& tiles) {
  auto& b = unit.b;
  Value* width = emit_dim(unit, extent_of(unit.kernel, block.parts.e));
  Value* stop = maximum_of(unit, tiles.end, b.CreateAdd(tiles.begin, constant(unit, 1)));
  const Sums sums{block.out, b.CreateMul(width, constant(unit, block.queries())), block.lanes};
  for_depth(unit, task, block.mixed, tiles.begin, stop, sums, [&](Scope& inside, Value* place, Value* first) {
    const Span some = tile_at(unit, tiles, place).keys;
    loop_in(
        unit, inside, constant(unit, 0), width, constant(unit, block.columns), "columns", [&](Scope& part, Value* e) {
          const Span columns{block.parts.e, e, minimum_of(unit, b.CreateAdd(e, constant(unit, block.columns)), width)};
          pack(unit, part, block.parts.v.value, some, columns, block.lanes, block.type, block.packed,
               block.mix.a_depth);
          multiply_rows(unit, part, block.mix_micro, block.mix, b.CreateSub(columns.end, columns.begin), block.packed,
                        element_row(unit, block, block.scores, some.begin), element_row(unit, block, block.out, e),
                        b.CreateSub(some.end, some.begin), first);
        });
  });
}

void emit_epilogue(Unit& unit, Rows& rows, const Block& block) {
  come_home(unit, rows);
  Value* width = emit_dim(unit, extent_of(unit.kernel, block.parts.e));
  emit_loop(unit, constant(unit, 0), width, constant(unit, 1), "epilogue", [&](Value* e) {
    Value* line = element_row(unit, block, block.out, e);
    for (std::size_t v = 0; v < rows.size(); ++v) {
      Scope inside = child_of(rows[v], unit);
      bind(inside, block.parts.e, e);
      Value* at = advance(unit, block.type, line, constant(unit, static_cast<std::int64_t>(v) * block.lanes));
      inside.holds_results = true;
      inside.values[block.parts.mix] = load_row(unit, block, at);
      for (const Store& store : unit.kernel.stores) emit_store(unit, inside, store);
    }
  });
}

void emit_block(Unit& unit, Scope& task, const Block& block, Value* i0) {
  auto& b = unit.b;
  Value* i1 = minimum_of(unit, b.CreateAdd(i0, constant(unit, block.queries())),
                         emit_dim(unit, extent_of(unit.kernel, block.parts.i)));
  const KeyTiles tiles = find_key_tiles(unit, task, {block.parts.i, i0, i1}, block.keys, block.tiles);
  const Span depth{block.parts.d, constant(unit, 0), emit_dim(unit, extent_of(unit.kernel, block.parts.d))};
  pack(unit, task, block.parts.q.value, depth, {block.parts.i, i0, i1}, block.lanes, block.type, block.q,
       block.queries());
  emit_products(unit, task, block, tiles);
  Rows rows = bind_queries(unit, task, block, i0, i1);
  emit_scores(unit, rows, block, tiles);
  emit_weights(unit, rows, block, tiles);
  task.home = b.GetInsertBlock();
  emit_mix(unit, task, block, tiles);
  emit_epilogue(unit, rows, block);
  task.home = b.GetInsertBlock();
}

}  // namespace

Source emit_attend(Unit& unit) {
  const Kernel& kernel = unit.kernel;
  Block block = make_block(unit);
  const Dim blocks = ceil_div(extent_of(kernel, block.parts.i), block.queries());
  Source source;
  source.launch.grid_x = point_count(kernel, block.parts.batch) * blocks;
  const TaskRange range = begin_function(unit, kernel.name, kernel.operands.size());
  block.score_micro = micro_kernel(unit, block.score, kernel.name + "_score");
  block.mix_micro = micro_kernel(unit, block.mix, kernel.name + "_mix");
  allocate(unit, block);
  Scope root = root_scope(unit);
  for_tasks(unit, root, range, [&](Scope& task, Value* number) {
    auto& b = unit.b;
    Value* count = emit_dim(unit, blocks);
    bind_point(unit, task, block.parts.batch, b.CreateUDiv(number, count));
    emit_block(unit, task, block, b.CreateMul(b.CreateURem(number, count), constant(unit, block.queries())));
  });
  return source;
}

}  // namespace tenon::codegen::simd
