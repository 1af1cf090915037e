// See rows.h.
#include "codegen/emit/llvm/reduce/rows.h"

#include "codegen/emit/llvm/reduce/long_sums.h"

namespace tenon::codegen::simd {
namespace {

// The longest reduced axis: what a few long rows are cut along.
int longest(const Kernel& kernel, const std::vector<int>& axes) {
  int best = axes.back();
  for (const int axis : axes)
    if (extent_of(kernel, axis).bounds(kernel.symbols).max > extent_of(kernel, best).bounds(kernel.symbols).max)
      best = axis;
  return best;
}

}  // namespace

RowPlan plan_rows(const Kernel& kernel) {
  const auto& schedule = std::get<ReduceSchedule>(kernel.schedule);
  RowPlan plan;
  for (int axis = 0; axis < static_cast<int>(kernel.axes.size()); ++axis)
    (kernel.axes[static_cast<std::size_t>(axis)].reduced ? plan.reduced : plan.kept).push_back(axis);
  plan.lanes = std::max(2, schedule.vector);
  plan.columns = !plan.kept.empty() && (schedule.team.mapping == RowMapping::column || plan.reduced.empty());
  plan.streaming = schedule.cache.streaming;
  plan.vectors = schedule.in_flight;
  plan.groups = std::max<std::int64_t>(1, schedule.grain);
  if (plan.columns) plan.groups = std::max<std::int64_t>(1, plan.groups / (plan.lanes * plan.vectors));
  if (parts_of(schedule) > 1) {
    plan.splits = parts_of(schedule);
    plan.split_axis = longest(kernel, plan.reduced);
    plan.groups = 1;
  }
  return plan;
}

Dim group_count(const Kernel& kernel, const RowPlan& plan) {
  if (!plan.columns) return point_count(kernel, plan.kept);
  std::vector<int> outer(plan.kept.begin(), plan.kept.end() - 1);
  return point_count(kernel, outer) * ceil_div(extent_of(kernel, plan.kept.back()), plan.lanes * plan.vectors);
}

void for_group(Unit& unit, Scope& scope, const RowPlan& plan, Value* group,
               const std::function<void(std::vector<Scope>&)>& body) {
  auto& b = unit.b;
  if (!plan.columns) {
    std::vector<Scope> rows{child_of(scope, unit)};
    bind_point(unit, rows[0], plan.kept, group);
    rows[0].holds_results = true;
    body(rows);
    scope.home = b.GetInsertBlock();
    return;
  }
  const int inner = plan.kept.back();
  const std::vector<int> outer(plan.kept.begin(), plan.kept.end() - 1);
  const int width = plan.lanes * plan.vectors;
  Value* blocks = emit_dim(unit, ceil_div(extent_of(unit.kernel, inner), width));
  bind_point(unit, scope, outer, b.CreateUDiv(group, blocks));
  Value* begin = b.CreateMul(b.CreateURem(group, blocks), constant(unit, width));
  Value* end =
      minimum_of(unit, b.CreateAdd(begin, constant(unit, width)), emit_dim(unit, extent_of(unit.kernel, inner)));
  for_lanes(unit, scope, inner, begin, end, plan.lanes, plan.vectors, [&](std::vector<Scope>& rows) {
    for (Scope& row : rows) row.holds_results = true;
    body(rows);
  });
}

void for_points(Unit& unit, std::vector<Scope*> rows, const std::vector<int>& axes, const Part& part,
                const std::function<void(std::vector<Scope>&)>& body, LongSums* sums) {
  if (axes.empty()) {
    std::vector<Scope> scopes;
    for (Scope* row : rows) scopes.push_back(child_of(*row, unit));
    body(scopes);
  } else {
    const int axis = axes[0];
    const bool is_part = axis == part.axis;
    Value* begin = is_part ? part.begin : constant(unit, 0);
    Value* end = is_part ? part.end : emit_dim(unit, extent_of(unit.kernel, axis));
    const std::vector<int> rest(axes.begin() + 1, axes.end());
    const std::string& name = unit.kernel.axes[static_cast<std::size_t>(axis)].name;
    const auto turn = [&](Value* i) {
      std::vector<Scope> inside;
      for (Scope* row : rows) {
        inside.push_back(child_of(*row, unit));
        bind(inside.back(), axis, i);
      }
      std::vector<Scope*> pointers;
      for (Scope& scope : inside) pointers.push_back(&scope);
      for_points(unit, pointers, rest, part, body, sums);
    };
    if (sums && rest.empty()) {
      sums->loop(begin, end, 1, name, turn);
      sums->after_run(unit.b.CreateSub(end, begin));
    } else {
      emit_loop(unit, begin, end, constant(unit, 1), name, turn);
    }
  }
  for (Scope* row : rows) row->home = unit.b.GetInsertBlock();
}

}  // namespace tenon::codegen::simd
