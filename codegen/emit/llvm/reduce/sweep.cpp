// See sweep.h.
#include "codegen/emit/llvm/reduce/sweep.h"

#include <algorithm>
#include <limits>

#include "codegen/emit/llvm/reduce/long_sums.h"
#include "codegen/emit/llvm/reduce/online.h"
#include "codegen/emit/llvm/stream.h"

namespace tenon::codegen::simd {
namespace {

// The number of the element among those of its row.
Value* element_number(Unit& unit, Scope& scope, const Instr& reduce) {
  std::vector<Index> coordinates;
  Shape shape;
  for (const int axis : reduce.axes) {
    coordinates.push_back(Index::axis(axis));
    shape.push_back(extent_of(unit.kernel, axis));
  }
  return splat(unit, evaluate_index(unit, scope, linearize(coordinates, shape)), scope.lanes);
}

// `in_order`: elements come by their number. Where they do not, of equal extremes it is the number that counts.
void accumulate_element(Unit& unit, Scope& scope, const Instr& reduce, const Accumulator& accumulator, bool masked,
                        bool in_order) {
  Partial element{evaluate_lanes(unit, scope, reduce.args[0]), nullptr};
  if (masked && scope.mask)
    element.value = unit.b.CreateSelect(scope.mask, element.value, identity_of(unit, reduce, scope.lanes).value);
  if (carries_index(reduce)) element.index = element_number(unit, scope, reduce);
  const auto combine = in_order ? accumulate : merge;
  write(unit, accumulator, combine(unit, reduce, read(unit, accumulator), element));
}

// Whether reduction number r is the maximum of an online sum, which is not accumulated here.
bool is_online(const Sweep& sweep, std::size_t r) { return sweep.online && sweep.online->maximum == sweep.reduces[r]; }

// What one sweep does at each of `scopes`; accumulators[r][s] belongs to reduction r and scope s.
void emit_elements(Unit& unit, const Sweep& sweep, std::vector<Scope>& scopes,
                   const std::vector<std::vector<Accumulator>>& accumulators, bool masked, bool in_order,
                   bool streaming = false) {
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (std::size_t s = 0; s < scopes.size() && !is_online(sweep, r); ++s)
      accumulate_element(unit, scopes[s], unit.kernel.instr(sweep.reduces[r]), accumulators[r][s], masked, in_order);
  emit_stores(unit, scopes, sweep.stores, streaming);
}

std::vector<Scope*> pointers_to(std::vector<Scope>& scopes) {
  std::vector<Scope*> pointers;
  for (Scope& scope : scopes) pointers.push_back(&scope);
  return pointers;
}

// Additions to one accumulator of a sweep, at most.
std::int64_t most_turns(Unit& unit, const RowPlan& plan, int vectors) {
  const auto most = [&](const Dim& dim) { return std::max<std::int64_t>(1, dim.bounds(unit.kernel.symbols).max); };
  const std::vector<int> outer(plan.reduced.begin(), plan.reduced.end() - 1);
  const std::int64_t inner = most(extent_of(unit.kernel, plan.reduced.back()));
  const std::int64_t runs = most(point_count(unit.kernel, outer));
  const std::int64_t run = plan.columns ? inner : inner / (std::int64_t{plan.lanes} * vectors) + !outer.empty();
  return run > std::numeric_limits<std::int64_t>::max() / runs ? run : run * runs;
}

Partials sweep_columns(Unit& unit, const RowPlan& plan, const Sweep& sweep, std::vector<Scope>& rows,
                       const Part& part) {
  const std::int64_t turns = plan.reduced.empty() ? 0 : most_turns(unit, plan, 1);
  LongSums sums(unit, turns, plan.reduced.size() > 1);
  std::vector<std::vector<Accumulator>> accumulators(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (std::size_t s = 0; s < rows.size(); ++s) {
      const Instr& reduce = unit.kernel.instr(sweep.reduces[r]);
      accumulators[r].push_back(make_accumulator(unit, reduce, plan.lanes));
      sums.add(reduce, {accumulators[r].back()});
    }
  for_points(
      unit, pointers_to(rows), plan.reduced, part,
      [&](std::vector<Scope>& scopes) { emit_elements(unit, sweep, scopes, accumulators, false, true); }, &sums);
  Partials partials(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r) {
    const Instr& reduce = unit.kernel.instr(sweep.reduces[r]);
    for (const Accumulator& accumulator : accumulators[r])
      partials[r].push_back(narrowed(unit, reduce, sums.collect(reduce, {accumulator})));
  }
  return partials;
}

// What will be read, in time: two pages on where rows are read once, for hardware stops at the end of a page; the next
// row's elements while a row is read again from the caches, for memory is idle then.
void prefetch(Unit& unit, const RowPlan& plan, const Rounds& rounds, std::size_t number, std::vector<Scope>& vectors) {
  constexpr std::int64_t kAhead = 8192;
  const bool once = rounds.sweeps.size() == 1;
  if (!once && (number != 1 || plan.kept.empty())) return;
  for (const InstrId id : rounds.sweeps[0].instrs) {
    if (unit.kernel.instr(id).kind != InstrKind::load) continue;
    const Access& access = unit.kernel.instr(id).access;
    const std::int64_t size = size_of(unit.kernel.operands[static_cast<std::size_t>(access.operand)].dtype);
    const auto distance = once ? std::optional(Dim(kAhead / size)) : access.offset.coefficient(plan.kept.back());
    for (Scope& scope : vectors)
      if (distance && !distance->is(0)) emit_prefetch(unit, scope, access, *distance, CacheLevel::first);
  }
}

// Accumulators of a reduction: more where little is computed of each element, so that few of them are waited for.
int vectors_of(const Kernel& kernel, const RowPlan& plan, const Sweep& sweep) {
  constexpr int kLittle = 4;  // issue slots
  return element_cost(kernel, sweep) <= kLittle && !sweep.online ? 2 * plan.vectors : plan.vectors;
}

Partials sweep_row(Unit& unit, const RowPlan& plan, const Rounds& rounds, std::size_t number, std::vector<Scope>& rows,
                   const Part& part, const std::vector<KeptValue>& kept, LateStores* late) {
  const Sweep& sweep = rounds.sweeps[number];
  // What is kept of the row before is stored late in turns of plan.vectors, which a longer turn would run ahead of.
  const bool keeps =
      std::any_of(kept.begin(), kept.end(), [&](const KeptValue& each) { return each.what.sweep == number; });
  const int vectors = keeps ? plan.vectors : vectors_of(unit.kernel, plan, sweep);
  LongSums sums(unit, most_turns(unit, plan, vectors), plan.reduced.size() > 1);
  std::vector<std::vector<Accumulator>> accumulators(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r) {
    const Instr& reduce = unit.kernel.instr(sweep.reduces[r]);
    for (int i = 0; i < vectors; ++i) accumulators[r].push_back(make_accumulator(unit, reduce, plan.lanes));
    sums.add(reduce, accumulators[r]);
  }
  std::optional<OnlineSum> online;
  if (sweep.online) {
    online = make_online(unit, *sweep.online, plan.lanes);
    online->blocks = sums.add(unit.kernel.instr(sweep.online->sum), {online->sum});
  }
  const bool in_order = !plan.streaming || sweep.stores.empty();  // else the ends of a row come last
  const int inner = plan.reduced.back();
  const std::vector<int> outer(plan.reduced.begin(), plan.reduced.end() - 1);
  for_points(unit, pointers_to(rows), outer, part, [&](std::vector<Scope>& scopes) {
    const bool is_part = inner == part.axis;
    Lanes lanes{inner, plan.lanes, vectors, constant(unit, 0), emit_dim(unit, extent_of(unit.kernel, inner))};
    if (is_part) std::tie(lanes.begin, lanes.end) = std::tie(part.begin, part.end);
    const auto take = [&](std::vector<Scope>& turn, bool streaming) {
      if (!late) prefetch(unit, plan, rounds, number, turn);
      bind_kept(unit, number, kept, turn);
      emit_elements(unit, sweep, turn, accumulators, true, in_order, streaming);
      keep(unit, number, kept, turn);
      if (online) add_online(unit, *online, turn);
    };
    if (late) {
      late->beside(scopes[0], number, lanes, [&](std::vector<Scope>& turn) { take(turn, false); }, &sums);
    } else {
      for_streamed_lanes(unit, scopes[0], plan.streaming ? sweep.stores : std::vector<int>{}, lanes, take, &sums);
    }
    if (outer.empty()) return;
    Value* whole = unit.b.CreateSDiv(unit.b.CreateSub(lanes.end, lanes.begin), constant(unit, plan.lanes * vectors));
    sums.after_run(unit.b.CreateAdd(whole, constant(unit, vectors)));
  });
  Partials partials;
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r) {
    const Instr& reduce = unit.kernel.instr(sweep.reduces[r]);
    if (is_online(sweep, r)) {
      partials.push_back({online_maximum(unit, *online)});
      continue;
    }
    partials.push_back({narrowed(unit, reduce, fold_lanes(unit, reduce, sums.collect(reduce, accumulators[r])))});
  }
  if (online) rows[0].values[sweep.online->sum] = online_sum(unit, *online, sums).value;
  return partials;
}

}  // namespace

Partials emit_sweep(Unit& unit, const RowPlan& plan, const Rounds& rounds, std::size_t number, std::vector<Scope>& rows,
                    const Part& part, const std::vector<KeptValue>& kept, LateStores* late) {
  return plan.columns ? sweep_columns(unit, plan, rounds.sweeps[number], rows, part)
                      : sweep_row(unit, plan, rounds, number, rows, part, kept, late);
}

}  // namespace tenon::codegen::simd
