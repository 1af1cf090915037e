// Reduce kernels: for each row a sweep over the reduced axes per round, elements being read again from the caches.
// Few long rows are cut into parts that a second function combines in order, so that the result does not depend on the
// number of threads.
#include "codegen/emit/llvm/accumulate.h"
#include "codegen/emit/llvm/kept.h"
#include "codegen/emit/llvm/online.h"
#include "codegen/emit/llvm/ops.h"
#include "codegen/emit/llvm/rows.h"
#include "codegen/emit/llvm/stream.h"
#include "codegen/rounds.h"

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

void accumulate_element(Unit& unit, Scope& scope, const Instr& reduce, const Accumulator& accumulator, bool masked) {
  Partial element{evaluate_lanes(unit, scope, reduce.args[0]), nullptr};
  if (masked && scope.mask)
    element.value = unit.b.CreateSelect(scope.mask, element.value, identity_of(unit, reduce, scope.lanes).value);
  if (carries_index(reduce)) element.index = element_number(unit, scope, reduce);
  write(unit, accumulator, accumulate(unit, reduce, read(unit, accumulator), element));
}

// Whether reduction number r is the maximum of an online sum, which is not accumulated here.
bool is_online(const Sweep& sweep, std::size_t r) { return sweep.online && sweep.online->maximum == sweep.reduces[r]; }

// What one sweep does at each of `scopes`; accumulators[r][s] belongs to reduction r and scope s.
void emit_elements(Unit& unit, const Sweep& sweep, std::vector<Scope>& scopes,
                   const std::vector<std::vector<Accumulator>>& accumulators, bool masked, bool streaming = false) {
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (std::size_t s = 0; s < scopes.size() && !is_online(sweep, r); ++s)
      accumulate_element(unit, scopes[s], unit.kernel.instr(sweep.reduces[r]), accumulators[r][s], masked);
  emit_stores(unit, scopes, sweep.stores, streaming);
}

std::vector<Scope*> pointers_to(std::vector<Scope>& scopes) {
  std::vector<Scope*> pointers;
  for (Scope& scope : scopes) pointers.push_back(&scope);
  return pointers;
}

// Partials of one sweep: [reduction][row].
using Partials = std::vector<std::vector<Partial>>;

Partials sweep_columns(Unit& unit, const RowPlan& plan, const Sweep& sweep, std::vector<Scope>& rows,
                       const Part& part) {
  std::vector<std::vector<Accumulator>> accumulators(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (std::size_t s = 0; s < rows.size(); ++s)
      accumulators[r].push_back(make_accumulator(unit, unit.kernel.instr(sweep.reduces[r]), plan.lanes));
  for_points(unit, pointers_to(rows), plan.reduced, part,
             [&](std::vector<Scope>& scopes) { emit_elements(unit, sweep, scopes, accumulators, false); });
  Partials partials(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (const Accumulator& accumulator : accumulators[r]) partials[r].push_back(read(unit, accumulator));
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
      if (distance && !distance->is(0)) emit_prefetch(unit, scope, access, *distance);
  }
}

// Accumulators of a reduction: more where little is computed of each element, so that few of them are waited for.
int vectors_of(const Kernel& kernel, const RowPlan& plan, const Sweep& sweep) {
  constexpr int kLittle = 4;  // issue slots
  int cost = 0;
  for (const InstrId id : sweep.instrs) {
    const Instr& instr = kernel.instr(id);
    cost += instr.kind == InstrKind::map ? ir::info(instr.op).cost : instr.kind == InstrKind::random ? kLittle + 1 : 0;
  }
  return cost <= kLittle && !sweep.online ? 2 * plan.vectors : plan.vectors;
}

Partials sweep_row(Unit& unit, const RowPlan& plan, const Rounds& rounds, std::size_t number, std::vector<Scope>& rows,
                   const Part& part, const std::vector<KeptValue>& kept) {
  const Sweep& sweep = rounds.sweeps[number];
  const int vectors = vectors_of(unit.kernel, plan, sweep);
  std::vector<std::vector<Accumulator>> accumulators(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (int i = 0; i < vectors; ++i)
      accumulators[r].push_back(make_accumulator(unit, unit.kernel.instr(sweep.reduces[r]), plan.lanes));
  std::optional<OnlineSum> online;
  if (sweep.online) online = make_online(unit, *sweep.online, plan.lanes);
  const int inner = plan.reduced.back();
  const std::vector<int> outer(plan.reduced.begin(), plan.reduced.end() - 1);
  for_points(unit, pointers_to(rows), outer, part, [&](std::vector<Scope>& scopes) {
    const bool is_part = inner == part.axis;
    Lanes lanes{inner, plan.lanes, vectors, constant(unit, 0), emit_dim(unit, extent_of(unit.kernel, inner))};
    if (is_part) std::tie(lanes.begin, lanes.end) = std::tie(part.begin, part.end);
    for_streamed_lanes(unit, scopes[0], plan.streaming ? sweep.stores : std::vector<int>{}, lanes,
                       [&](std::vector<Scope>& turn, bool streaming) {
                         prefetch(unit, plan, rounds, number, turn);
                         bind_kept(unit, number, kept, turn);
                         emit_elements(unit, sweep, turn, accumulators, true, streaming);
                         keep(unit, number, kept, turn);
                         if (online) add_online(unit, *online, turn);
                       });
  });
  Partials partials;
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r) {
    const Instr& reduce = unit.kernel.instr(sweep.reduces[r]);
    Partial all = read(unit, accumulators[r][0]);
    for (int i = 1; i < vectors; ++i)
      all = merge(unit, reduce, all, read(unit, accumulators[r][static_cast<std::size_t>(i)]));
    partials.push_back({is_online(sweep, r) ? online_maximum(unit, *online) : fold_lanes(unit, reduce, all)});
  }
  if (online) rows[0].values[sweep.online->sum] = online_sum(unit, *online).value;
  return partials;
}

Partials emit_sweep(Unit& unit, const RowPlan& plan, const Rounds& rounds, std::size_t number, std::vector<Scope>& rows,
                    const Part& part, const std::vector<KeptValue>& kept) {
  return plan.columns ? sweep_columns(unit, plan, rounds.sweeps[number], rows, part)
                      : sweep_row(unit, plan, rounds, number, rows, part, kept);
}

void bind_results(const Sweep& sweep, std::vector<Scope>& rows, const Partials& partials) {
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (std::size_t s = 0; s < rows.size(); ++s) rows[s].values[sweep.reduces[r]] = result_of(partials[r][s]);
}

void store_rows(Unit& unit, const Rounds& rounds, std::vector<Scope>& rows) {
  for (Scope& row : rows) {
    for (const int store : rounds.row_stores) {
      row.home = unit.b.GetInsertBlock();
      emit_store(unit, row, unit.kernel.stores[static_cast<std::size_t>(store)]);
    }
  }
}

// ---- splitting ----------------------------------------------------------------------------------------------------

// Where partial `slot` of part `part` of the row lies in scratch: rows are consecutive, so that lanes are.
Value* scratch_address(Unit& unit, Scope& row, const RowPlan& plan, std::size_t slot, Value* part, Type* type) {
  auto& b = unit.b;
  std::vector<Index> coordinates;
  Shape shape;
  for (const int axis : plan.kept) {
    coordinates.push_back(Index::axis(axis));
    shape.push_back(extent_of(unit.kernel, axis));
  }
  Value* rows = emit_dim(unit, point_count(unit.kernel, plan.kept));
  Value* number = evaluate_affine(unit, row, linearize(coordinates, shape))->base;
  Value* base =
      b.CreateMul(b.CreateMul(rows, constant(unit, plan.splits)), constant(unit, static_cast<std::int64_t>(8 * slot)));
  Value* start = b.CreateGEP(b.getInt8Ty(), unit.operands.back(), base);
  return b.CreateGEP(type, start, b.CreateAdd(b.CreateMul(part, rows), number));
}

void save(Unit& unit, Scope& row, const RowPlan& plan, std::size_t slot, Value* part, Value* value) {
  auto& b = unit.b;
  if (value->getType()->getScalarType()->isIntegerTy(1))
    value = b.CreateZExt(value, vector_of(b.getInt8Ty(), lanes_of(value)));
  Value* address = scratch_address(unit, row, plan, slot, part, value->getType()->getScalarType());
  if (row.mask && lanes_of(value) > 1) {
    b.CreateMaskedStore(value, address, llvm::Align(1), row.mask);
  } else {
    b.CreateAlignedStore(value, address, llvm::Align(1));
  }
}

Value* restore(Unit& unit, Scope& row, const RowPlan& plan, std::size_t slot, Value* part, Type* type) {
  auto& b = unit.b;
  Type* element = type->getScalarType();
  const bool is_bool = element->isIntegerTy(1);
  if (is_bool) element = b.getInt8Ty();
  Type* stored = vector_of(element, row.lanes);
  Value* address = scratch_address(unit, row, plan, slot, part, element);
  Value* value = row.mask ? static_cast<Value*>(b.CreateMaskedLoad(stored, address, llvm::Align(1), row.mask,
                                                                   llvm::Constant::getNullValue(stored)))
                          : b.CreateAlignedLoad(stored, address, llvm::Align(1));
  return is_bool ? b.CreateICmpNE(value, constant_like(value, 0)) : value;
}

void save_partials(Unit& unit, const RowPlan& plan, std::vector<Scope>& rows, Value* part, const Partials& partials) {
  std::size_t slot = 0;
  for (const std::vector<Partial>& of_rows : partials) {
    for (std::size_t s = 0; s < rows.size(); ++s) {
      save(unit, rows[s], plan, slot, part, of_rows[s].value);
      if (of_rows[s].index) save(unit, rows[s], plan, slot + 1, part, of_rows[s].index);
    }
    slot += 2;
  }
}

// Merges the parts of each reduction in order.
Partials combine_parts(Unit& unit, const RowPlan& plan, const Sweep& sweep, std::vector<Scope>& rows) {
  std::vector<std::vector<Accumulator>> accumulators(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (Scope& row : rows)
      accumulators[r].push_back(make_accumulator(unit, unit.kernel.instr(sweep.reduces[r]), row.lanes));
  for (Scope& row : rows) row.home = unit.b.GetInsertBlock();
  emit_loop(unit, constant(unit, 0), constant(unit, plan.splits), constant(unit, 1), "part", [&](Value* part) {
    for (std::size_t r = 0; r < sweep.reduces.size(); ++r) {
      const Instr& reduce = unit.kernel.instr(sweep.reduces[r]);
      for (std::size_t s = 0; s < rows.size(); ++s) {
        const Partial so_far = read(unit, accumulators[r][s]);
        Scope inside = child_of(rows[s], unit);
        Partial next{restore(unit, inside, plan, 2 * r, part, so_far.value->getType()), nullptr};
        if (so_far.index) next.index = restore(unit, inside, plan, 2 * r + 1, part, so_far.index->getType());
        write(unit, accumulators[r][s], merge(unit, reduce, so_far, next));
      }
    }
  });
  for (Scope& row : rows) row.home = unit.b.GetInsertBlock();
  Partials partials(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (const Accumulator& accumulator : accumulators[r]) partials[r].push_back(read(unit, accumulator));
  return partials;
}

// Part `number` of the split axis, in whole vectors.
Part part_of(Unit& unit, const RowPlan& plan, Value* number) {
  auto& b = unit.b;
  Value* extent = emit_dim(unit, extent_of(unit.kernel, plan.split_axis));
  Value* size = ceil_div(unit, ceil_div(unit, extent, plan.splits), plan.lanes);
  size = b.CreateMul(size, constant(unit, plan.lanes));
  Value* begin = minimum_of(unit, b.CreateMul(number, size), extent);
  return {plan.split_axis, begin, minimum_of(unit, b.CreateAdd(begin, size), extent)};
}

void for_group_block(Unit& unit, Scope& task, const RowPlan& plan, Value* block,
                     const std::function<void(std::vector<Scope>&)>& body) {
  auto& b = unit.b;
  Value* first = b.CreateMul(block, constant(unit, plan.groups));
  Value* last =
      minimum_of(unit, b.CreateAdd(first, constant(unit, plan.groups)), emit_dim(unit, group_count(unit.kernel, plan)));
  loop_in(unit, task, first, last, constant(unit, 1), "row",
          [&](Scope& inside, Value* group) { for_group(unit, inside, plan, group, body); });
}

Source emit_split(Unit& unit, const RowPlan& plan, const Rounds& rounds) {
  const Kernel& kernel = unit.kernel;
  const Sweep& sweep = rounds.sweeps[0];
  Source source;
  const Dim groups = group_count(kernel, plan);
  source.launch.grid_x = groups * Dim(plan.splits);
  source.scratch_bytes =
      point_count(kernel, plan.kept) * Dim(static_cast<std::int64_t>(16 * sweep.reduces.size()) * plan.splits);
  source.finish_entry = kernel.name + "_finish";
  source.finish_grid = groups;

  const TaskRange range = begin_function(unit, kernel.name, kernel.operands.size() + 1);
  Scope root = root_scope(unit);
  for_tasks(unit, root, range, [&](Scope& task, Value* number) {
    Value* count = emit_dim(unit, groups);  // neighbours in memory are neighbours in time
    Value* part = unit.b.CreateUDiv(number, count);
    const Part bounds = part_of(unit, plan, part);
    for_group_block(unit, task, plan, unit.b.CreateURem(number, count), [&](std::vector<Scope>& rows) {
      save_partials(unit, plan, rows, part, emit_sweep(unit, plan, rounds, 0, rows, bounds, {}));
    });
  });
  end_function(unit);

  const TaskRange finish = begin_function(unit, source.finish_entry, kernel.operands.size() + 1);
  Scope finish_root = root_scope(unit);
  for_tasks(unit, finish_root, finish, [&](Scope& task, Value* number) {
    for_group_block(unit, task, plan, number, [&](std::vector<Scope>& rows) {
      bind_results(sweep, rows, combine_parts(unit, plan, sweep, rows));
      store_rows(unit, rounds, rows);
    });
  });
  return source;
}

}  // namespace

Source emit_reduce(Unit& unit) {
  const Kernel& kernel = unit.kernel;
  const Rounds rounds = rounds_of(kernel, std::get<ReduceSchedule>(kernel.schedule).online);
  const bool may_split = rounds.sweeps.size() == 1 && rounds.sweeps[0].stores.empty() && !rounds.sweeps[0].online;
  const RowPlan plan = plan_rows(kernel, may_split);
  if (plan.splits > 1) return emit_split(unit, plan, rounds);
  Source source;
  source.launch.grid_x = ceil_div(group_count(kernel, plan), plan.groups);
  const TaskRange range = begin_function(unit, kernel.name, kernel.operands.size());
  const std::vector<KeptValue> kept = reserve_kept(unit, rounds, plan.reduced, plan.lanes);
  Scope root = root_scope(unit);
  for_tasks(unit, root, range, [&](Scope& task, Value* number) {
    for_group_block(unit, task, plan, number, [&](std::vector<Scope>& rows) {
      for (std::size_t sweep = 0; sweep < rounds.sweeps.size(); ++sweep)
        bind_results(rounds.sweeps[sweep], rows, emit_sweep(unit, plan, rounds, sweep, rows, {}, kept));
      store_rows(unit, rounds, rows);
    });
  });
  return source;
}

}  // namespace tenon::codegen::simd
