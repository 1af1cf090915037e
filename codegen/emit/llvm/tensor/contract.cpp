// Contract kernels: a task is a tile of the result. For each block of the depth both operands are packed, through
// whatever computes them, and multiplied into a tile of f32 (f64) sums; then the epilogue runs over the tile.
#include "codegen/analysis/product_bounds.h"
#include "codegen/emit/llvm/tensor/product.h"
#include "codegen/lower/parts.h"
#include "codegen/schedule/rules.h"

namespace tenon::codegen::simd {
namespace {

// Elements between rows of a packed operand beyond its depth: keeps rows off the same cache sets, and leaves room for
// the last vector.
constexpr int kRowPadding = 16;

struct Tiling {
  ContractParts parts;
  ContractSchedule schedule;
  MicroKernel micro;
  int depth = 0;                                   // of a block
  Value *a = nullptr, *b = nullptr, *c = nullptr;  // scratch
  std::int64_t sums = 0;                           // elements of c
  LongProduct product;
};

std::int64_t element_bytes(const Tiling& tiling) { return tiling.micro.type->getScalarSizeInBits() / 8; }

Tiling make_tiling(Unit& unit) {
  Tiling tiling;
  tiling.parts = contract_parts(unit.kernel);
  tiling.schedule = std::get<ContractSchedule>(unit.kernel.schedule);
  MicroKernel& micro = tiling.micro;
  micro.type = compute_type_of(unit, unit.kernel.instr(tiling.parts.a.value).dtype);
  micro.lanes = static_cast<int>(8 * unit.target.vector_bytes / static_cast<int>(micro.type->getScalarSizeInBits()));
  micro.vectors = 2;
  micro.rows = tiling.schedule.micro_m;
  tiling.depth = tiling.schedule.tile_k;
  micro.a_row = tiling.depth + kRowPadding;
  micro.a_depth = 1;
  micro.c_row = tiling.schedule.tile_n;
  return tiling;
}

// Scratch: rows of a, one panel of b, the tile of sums; rows rounded up to whole micro-kernels.
void allocate(Unit& unit, Tiling& tiling) {
  const MicroKernel& micro = tiling.micro;
  const std::int64_t rows = (tiling.schedule.tile_m + micro.rows - 1) / micro.rows * micro.rows;
  const std::int64_t a = rows * micro.a_row, b = std::int64_t{tiling.depth} * micro.width();
  const std::int64_t c = rows * micro.c_row;
  tiling.sums = c;
  tiling.product = {tiling.depth, micro.type, extent_of(unit.kernel, tiling.parts.k).bounds(unit.kernel.symbols).max};
  const std::int64_t elements = a + b + c + kRowPadding, own = elements * element_bytes(tiling);
  const std::int64_t blocks = tiling.product.needed() ? (c + kRowPadding) * kDoubleBytes : 0;
  tiling.a = thread_scratch(unit, constant(unit, own + blocks));
  tiling.product.blocks = advance(unit, micro.type, tiling.a, constant(unit, elements));
  tiling.b = advance(unit, micro.type, tiling.a, constant(unit, a));
  tiling.c = advance(unit, micro.type, tiling.b, constant(unit, b));
}

// One block of the depth: pack, multiply.
void emit_block(Unit& unit, Scope& scope, const Tiling& tiling, llvm::Function* micro, const Span& m, const Span& n,
                const Span& k, Value* first) {
  auto& b = unit.b;
  const MicroKernel& shape = tiling.micro;
  const ContractParts& parts = tiling.parts;
  Value* depth = b.CreateSub(k.end, k.begin);
  pack(unit, scope, parts.a.value, m, k, shape.lanes, shape.type, tiling.a, shape.a_row);
  loop_in(unit, scope, n.begin, n.end, constant(unit, shape.width()), "panel", [&](Scope& panel, Value* column) {
    Value* offset = b.CreateSub(column, n.begin);
    const Span columns{n.axis, column, minimum_of(unit, b.CreateAdd(column, constant(unit, shape.width())), n.end)};
    pack(unit, panel, parts.b.value, k, columns, shape.lanes, shape.type, tiling.b, shape.width());
    multiply_rows(unit, panel, micro, shape, b.CreateSub(m.end, m.begin), tiling.a, tiling.b,
                  advance(unit, shape.type, tiling.c, offset), depth, first);
  });
}

void emit_epilogue(Unit& unit, Scope& scope, const Tiling& tiling, const Span& m, const Span& n) {
  auto& b = unit.b;
  const MicroKernel& shape = tiling.micro;
  loop_in(unit, scope, m.begin, m.end, constant(unit, 1), "epilogue", [&](Scope& row, Value* i) {
    bind(row, m.axis, i);
    Value* line =
        advance(unit, shape.type, tiling.c, b.CreateMul(b.CreateSub(i, m.begin), constant(unit, shape.c_row)));
    for_lanes(unit, row, n.axis, n.begin, n.end, shape.lanes, 1, [&](std::vector<Scope>& scopes) {
      Scope& lanes = scopes[0];
      lanes.holds_results = true;
      Value* at = advance(unit, shape.type, line, b.CreateSub(lanes.axes[static_cast<std::size_t>(n.axis)], n.begin));
      lanes.values[tiling.parts.contract] = b.CreateAlignedLoad(
          vector_of(shape.type, shape.lanes), at, llvm::Align(static_cast<std::uint64_t>(element_bytes(tiling))));
      for (const Store& store : unit.kernel.stores) emit_store(unit, lanes, store);
    });
  });
}

// The least that a bound's sum can be in a tile, at depth 0.
Value* least_of(Unit& unit, const PositionBound& bound, const Span& m, const Span& n) {
  auto& b = unit.b;
  Value* sum = emit_dim(unit, bound.constant);
  for (const Span* span : {&m, &n}) {
    const std::int64_t slope = bound.slopes[static_cast<std::size_t>(span->axis)];
    if (slope == 0) continue;
    Value* at = slope > 0 ? span->begin : b.CreateNSWSub(span->end, constant(unit, 1));
    sum = b.CreateNSWAdd(sum, b.CreateNSWMul(at, constant(unit, slope)));
  }
  return sum;
}

struct Bounded {
  Value *begin = nullptr, *end = nullptr;
};

// The depth that masks leave of a tile, in whole vectors: where the depth is a multiple of these, packing handles no
// other. begin is no more than end.
Bounded bounded_depth(Unit& unit, const Tiling& tiling, const Span& m, const Span& n, Value* depth) {
  auto& b = unit.b;
  const ProductBounds bounds = product_bounds(unit.kernel, tiling.parts);
  Value *begin = constant(unit, 0), *end = depth;
  for (const PositionBound& bound : bounds.depth) {
    Value* least = least_of(unit, bound, m, n);
    if (bound.slopes[static_cast<std::size_t>(tiling.parts.k)] > 0) {
      end = minimum_of(unit, end, b.CreateNSWSub(constant(unit, 1), least));
    } else {
      begin = maximum_of(unit, begin, least);
    }
  }
  if (!bounds.depth.empty()) {
    Value* widest = constant(unit, -kWidestVector);
    begin = b.CreateAnd(begin, widest);
    end = minimum_of(unit, b.CreateAnd(b.CreateNSWAdd(end, constant(unit, kWidestVector - 1)), widest), depth);
  }
  for (const PositionBound& bound : bounds.result)
    end = b.CreateSelect(b.CreateICmpSGT(least_of(unit, bound, m, n), constant(unit, 0)), begin, end);
  return {begin, maximum_of(unit, begin, end)};
}

}  // namespace

Source emit_contract(Unit& unit) {
  const Kernel& kernel = unit.kernel;
  Tiling tiling = make_tiling(unit);
  const ContractParts& parts = tiling.parts;
  const Dim row_tiles = ceil_div(extent_of(kernel, parts.m), tiling.schedule.tile_m);
  const Dim column_tiles = ceil_div(extent_of(kernel, parts.n), tiling.schedule.tile_n);
  Source source;
  source.launch.grid_x = point_count(kernel, parts.batch) * row_tiles * column_tiles;

  auto& b = unit.b;
  const TaskRange range = begin_function(unit, kernel.name, kernel.operands.size());
  llvm::Function* micro = micro_kernel(unit, tiling.micro, kernel.name + "_micro");
  allocate(unit, tiling);
  Scope root = root_scope(unit);
  const auto span_of = [&](int axis, Value* tile, int size) {
    Value* begin = b.CreateMul(tile, constant(unit, size));
    return Span{axis, begin,
                minimum_of(unit, b.CreateAdd(begin, constant(unit, size)), emit_dim(unit, extent_of(kernel, axis)))};
  };
  for_tasks(unit, root, range, [&](Scope& task, Value* number) {
    Value* columns = emit_dim(unit, column_tiles);
    Value* rows = emit_dim(unit, row_tiles);
    const Span n = span_of(parts.n, b.CreateURem(number, columns), tiling.schedule.tile_n);
    Value* rest = b.CreateUDiv(number, columns);
    const Span m = span_of(parts.m, b.CreateURem(rest, rows), tiling.schedule.tile_m);
    bind_point(unit, task, parts.batch, b.CreateUDiv(rest, rows));
    // At least one block, so that an empty sum is written as 0.
    Value* depth = emit_dim(unit, extent_of(kernel, parts.k));
    Value* end = b.CreateSelect(b.CreateICmpSLT(depth, constant(unit, 1)), constant(unit, 1), depth);
    Value* begin = constant(unit, 0);
    if (tiling.schedule.bounded) {
      const Bounded left = bounded_depth(unit, tiling, m, n, depth);
      begin = left.begin, depth = left.end;
      end = maximum_of(unit, depth, b.CreateNSWAdd(begin, constant(unit, 1)));
    }
    const Sums sums{tiling.c, constant(unit, tiling.sums), tiling.micro.lanes};
    for_depth(unit, task, tiling.product, begin, end, sums, [&](Scope& block, Value* k, Value* first) {
      const Span depths{parts.k, k, minimum_of(unit, b.CreateAdd(k, constant(unit, tiling.depth)), depth)};
      emit_block(unit, block, tiling, micro, m, n, depths, first);
    });
    emit_epilogue(unit, task, tiling, m, n);
  });
  return source;
}

}  // namespace tenon::codegen::simd
