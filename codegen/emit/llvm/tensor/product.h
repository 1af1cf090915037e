// Matrix products of packed blocks: the micro-kernel, and packing through whatever computes an operand. Layout as in
// Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008.
#pragma once

#include "codegen/emit/llvm/classes.h"

namespace tenon::codegen::simd {

/// c[r][·] += sum over k of a[r, k] * b[k][·] for `rows` rows of `vectors` vectors. Strides in elements; b is packed
/// [k][vectors * lanes].
struct MicroKernel {
  Type* type = nullptr;  ///< float or double
  int lanes = 1, vectors = 1, rows = 1;
  int a_row = 0, a_depth = 0;  ///< strides of a
  int c_row = 0;               ///< stride of c
  int width() const { return lanes * vectors; }
};

/// void(ptr a, ptr b, ptr c, i64 depth, i1 first): with `first`, c is written, not added to.
llvm::Function* micro_kernel(Unit& unit, const MicroKernel& shape, const std::string& name);

/// A product of `height` rows: the micro-kernel from top to bottom. Rows up to the next multiple of shape.rows are read
/// and written too.
void multiply_rows(Unit& unit, Scope& scope, llvm::Function* micro, const MicroKernel& shape, Value* height, Value* a,
                   Value* b, Value* c, Value* depth, Value* first);

/// An axis and a range of it.
struct Span {
  int axis = -1;
  Value* begin = nullptr;
  Value* end = nullptr;
};

/// Evaluates `value` at the points of `row` and `lane` into to[(row - row.begin) * stride + (lane - lane.begin)].
/// Lanes up to the next whole vector are written too.
void pack(Unit& unit, Scope& scope, InstrId value, const Span& row, const Span& lane, int lanes, Type* type, Value* to,
          int stride);

/// A product summed over a long depth: blocks of the depth are added to each other in the product's own type, and every
/// few of them to sums in double, so that the error does not grow with the depth (docs/numerics.md).
struct LongProduct {
  int depth = 0;            ///< of a block
  Type* type = nullptr;     ///< of the product
  std::int64_t most = 0;    ///< the depth is no longer
  Value* blocks = nullptr;  ///< scratch: a double for every element, where needed

  static constexpr int kBlocks = 16;  ///< that are added in the product's type
  bool needed() const { return type->isFloatTy() && most > std::int64_t{kBlocks} * depth; }
};
constexpr std::int64_t kDoubleBytes = 8;

/// Where the product's sums lie, one behind the other: `count` of them, and up to `lanes` more are read and written.
struct Sums {
  Value* at = nullptr;
  Value* count = nullptr;
  int lanes = 1;
};
/// body(scope inside, depth, first) for each block of [begin, end), which has one at least. `first`: the block's
/// product replaces the sums, to which those of others are added. At the end the sums are those of all.
void for_depth(Unit& unit, Scope& scope, const LongProduct& product, Value* begin, Value* end, const Sums& sums,
               const std::function<void(Scope&, Value*, Value*)>& body);

/// The thread's scratch memory: `bytes` are available, aligned to 64.
Value* thread_scratch(Unit& unit, Value* bytes);
/// from + elements of `type`.
Value* advance(Unit& unit, Type* type, Value* from, Value* elements);

}  // namespace tenon::codegen::simd
