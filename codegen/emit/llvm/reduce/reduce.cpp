// Reduce kernels: for each row a sweep over the reduced axes per round, elements being read again from the caches.
// Few long rows are cut into parts that a second function combines in order, so that the result does not depend on the
// number of threads.
#include <limits>

#include "codegen/emit/llvm/reduce/long_sums.h"
#include "codegen/emit/llvm/reduce/sweep.h"

namespace tenon::codegen::simd {
namespace {

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
  LongSums sums(unit, std::numeric_limits<std::int64_t>::max(), false);  // each part is a block
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r)
    for (const Accumulator& accumulator : accumulators[r]) sums.add(unit.kernel.instr(sweep.reduces[r]), {accumulator});
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
    sums.end_block();
  });
  for (Scope& row : rows) row.home = unit.b.GetInsertBlock();
  Partials partials(sweep.reduces.size());
  for (std::size_t r = 0; r < sweep.reduces.size(); ++r) {
    const Instr& reduce = unit.kernel.instr(sweep.reduces[r]);
    for (const Accumulator& accumulator : accumulators[r])
      partials[r].push_back(narrowed(unit, reduce, sums.collect(reduce, {accumulator})));
  }
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
  source.finish.grid_x = groups;

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

// ---- late stores --------------------------------------------------------------------------------------------------

// Of a row, as variables: what the sweep that stores its elements needs of the sweeps before, when it comes late.
std::vector<std::pair<InstrId, llvm::AllocaInst*>> result_variables(Unit& unit, const Rounds& rounds) {
  std::vector<std::pair<InstrId, llvm::AllocaInst*>> results;
  for (const Sweep& sweep : rounds.sweeps)
    for (const InstrId reduce : sweep.reduces) {
      Type* type = compute_type_of(unit, unit.kernel.instr(reduce).dtype);
      results.push_back({reduce, variable(unit, type, "result")});
      unit.b.CreateStore(llvm::Constant::getNullValue(type), results.back().second);  // ahead of the first row
    }
  return results;
}

// One turn more than there are rows: in each the sweeps over a row, if there is one, and the stores of the row before
// it.
void emit_rows_with_late_stores(Unit& unit, Scope& root, const RowPlan& plan, const Rounds& rounds, TaskRange range,
                                const std::vector<KeptValue>& kept) {
  auto& b = unit.b;
  Value* first = b.CreateMul(range.begin, constant(unit, plan.groups));
  Value* last = minimum_of(unit, b.CreateMul(range.end, constant(unit, plan.groups)),
                           emit_dim(unit, group_count(unit.kernel, plan)));
  const auto results = result_variables(unit, rounds);
  Value* turns = b.CreateAdd(last, constant(unit, 1));
  loop_in(unit, root, first, turns, constant(unit, 1), "row", [&](Scope& inside, Value* number) {
    Value* any = b.CreateICmpSGT(number, first);
    Scope before = child_of(inside, unit);
    bind_point(unit, before, plan.kept, b.CreateSelect(any, b.CreateSub(number, constant(unit, 1)), first));
    before.holds_results = true;
    for (const auto& [reduce, at] : results) before.values[reduce] = b.CreateLoad(at->getAllocatedType(), at);
    LateStores late(unit, plan, rounds, before, any, kept);
    late.begin();
    inside.home = b.GetInsertBlock();
    if_in(unit, inside, b.CreateICmpSLT(number, last), [&](Scope& now) {
      std::vector<Scope> rows{child_of(now, unit)};
      bind_point(unit, rows[0], plan.kept, number);
      rows[0].holds_results = true;
      for (std::size_t sweep = 0; sweep + 1 < rounds.sweeps.size(); ++sweep)
        bind_results(rounds.sweeps[sweep], rows, emit_sweep(unit, plan, rounds, sweep, rows, {}, kept, &late));
      store_rows(unit, rounds, rows);
      for (const auto& [reduce, at] : results) b.CreateStore(rows[0].values.at(reduce), at);
    });
    late.end();
  });
}

}  // namespace

Source emit_reduce(Unit& unit) {
  const Kernel& kernel = unit.kernel;
  const auto& schedule = std::get<ReduceSchedule>(kernel.schedule);
  const Rounds rounds = rounds_of(kernel, shared_of(schedule));
  const RowPlan plan = plan_rows(kernel);
  if (plan.splits > 1) return emit_split(unit, plan, rounds);
  Source source;
  source.launch.grid_x = ceil_div(group_count(kernel, plan), plan.groups);
  const TaskRange range = begin_function(unit, kernel.name, kernel.operands.size());
  const std::vector<KeptValue> kept = reserve_kept(unit, rounds, plan.reduced, plan.lanes);
  Scope root = root_scope(unit);
  if (schedule.late_stores) {
    emit_rows_with_late_stores(unit, root, plan, rounds, range, kept);
    return source;
  }
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
