// The rows (points of the kept axes) of a reduce kernel and who works on them: one row at a time with lanes along a
// reduced axis, or a group of columns with lanes along the innermost kept axis.
#pragma once

#include <functional>
#include <vector>

#include "codegen/emit/llvm/classes.h"

namespace tenon::codegen::simd {

struct RowPlan {
  std::vector<int> kept, reduced;
  bool columns = false;
  int lanes = 1;
  int vectors = 1;          ///< columns: vectors of a group; rows: accumulators of a reduction
  std::int64_t groups = 1;  ///< rows, or groups of columns, of one task
  bool streaming = false;   ///< stores of elements may go around the caches
  int splits = 1;           ///< parts of the split axis, each a task of its own
  int split_axis = -1;
};

RowPlan plan_rows(const Kernel& kernel);
/// Rows, or groups of columns.
Dim group_count(const Kernel& kernel, const RowPlan& plan);

/// The rows of group `group`, bound: one scope for a row, `vectors` or (masked) one for columns. `body` may be called
/// twice, for full and for partial groups.
void for_group(Unit& unit, Scope& scope, const RowPlan& plan, Value* group,
               const std::function<void(std::vector<Scope>&)>& body);

/// Nested loops over `axes`; body gets a scope inside each row. Where `part` bounds one of them, only over that part.
/// `sums`, which may be null, are accumulated by body.
struct Part {
  int axis = -1;
  Value* begin = nullptr;
  Value* end = nullptr;
};
void for_points(Unit& unit, std::vector<Scope*> rows, const std::vector<int>& axes, const Part& part,
                const std::function<void(std::vector<Scope>&)>& body, LongSums* sums = nullptr);

}  // namespace tenon::codegen::simd
