// Loops over tasks, points and lanes.
#include "codegen/emit/llvm/classes.h"
#include "codegen/emit/llvm/reduce/long_sums.h"

namespace tenon::codegen::simd {

const Dim& extent_of(const Kernel& kernel, int axis) { return kernel.axes[static_cast<std::size_t>(axis)].extent; }

void bind_point(Unit& unit, Scope& scope, const std::vector<int>& axes, Value* linear) {
  auto& b = unit.b;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const Dim& extent = extent_of(unit.kernel, axes[i]);
    if (extent.is(1)) {
      bind(scope, axes[i], constant(unit, 0));
    } else if (i == 0) {
      bind(scope, axes[i], linear);
    } else {
      Value* size = emit_dim(unit, extent);
      bind(scope, axes[i], b.CreateURem(linear, size));
      linear = b.CreateUDiv(linear, size);
    }
  }
}

Dim point_count(const Kernel& kernel, const std::vector<int>& axes) {
  Dim count(1);
  for (const int axis : axes) count = count * extent_of(kernel, axis);
  return count;
}

Dim ceil_div(const Dim& dim, std::int64_t divisor) { return (dim + Dim(divisor - 1)).floor_div(divisor); }

void for_tasks(Unit& unit, Scope& root, TaskRange range, const std::function<void(Scope&, Value*)>& body) {
  loop_in(unit, root, range.begin, range.end, constant(unit, 1), "task", body);
}

bool divisible(const Unit& unit, const Dim& extent, int lanes) {
  return extent.bounds(unit.kernel.symbols).divisor % lanes == 0;
}

std::vector<Scope> vectors_from(Unit& unit, Scope& scope, int axis, Value* base, int lanes, int count, Value* mask) {
  std::vector<Scope> scopes;
  for (int i = 0; i < count; ++i) {
    scopes.push_back(child_of(scope, unit));
    Value* start = i == 0 ? base : unit.b.CreateNSWAdd(base, constant(unit, i * lanes));
    bind_lanes(scopes.back(), axis, start, lanes, mask);
  }
  return scopes;
}

void loop_in_blocks(Unit& unit, Scope& scope, Value* begin, Value* end, std::int64_t step, const std::string& name,
                    const LongSums* sums, const std::function<void(Scope&, Value*)>& body) {
  if (!sums) return loop_in(unit, scope, begin, end, constant(unit, step), name, body);
  sums->loop(begin, end, step, name, [&](Value* i) {
    Scope inside = child_of(scope, unit);
    body(inside, i);
  });
  scope.home = unit.b.GetInsertBlock();
}

void for_lanes(Unit& unit, Scope& scope, int axis, Value* begin, Value* end, int lanes, int unroll,
               const std::function<void(std::vector<Scope>&)>& body, const LongSums* sums) {
  auto& b = unit.b;
  Value* count = b.CreateNSWSub(end, begin);
  Value* at = begin;
  for (const int vectors : {unroll, 1}) {
    Value* whole = b.CreateMul(b.CreateSDiv(count, constant(unit, vectors * lanes)), constant(unit, vectors * lanes));
    Value* stop = b.CreateNSWAdd(begin, whole);
    const bool few = unroll > 1 && vectors == 1;  // fewer than a turn has
    loop_in_blocks(unit, scope, at, stop, std::int64_t{vectors} * lanes, vectors > 1 ? "unrolled" : "vector",
                   few ? nullptr : sums, [&](Scope& inside, Value* base) {
                     std::vector<Scope> scopes = vectors_from(unit, inside, axis, base, lanes, vectors);
                     body(scopes);
                   });
    at = stop;
    if (unroll == 1) break;
  }
  if (divisible(unit, extent_of(unit.kernel, axis), lanes)) return;
  if_in(unit, scope, b.CreateICmpSLT(at, end), [&](Scope& inside) {
    Value* mask = first_lanes(unit, b.CreateSub(end, at), lanes);
    std::vector<Scope> scopes = vectors_from(unit, inside, axis, at, lanes, 1, mask);
    body(scopes);
  });
}

}  // namespace tenon::codegen::simd
