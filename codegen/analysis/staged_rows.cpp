// See staged_rows.h.
#include "codegen/analysis/staged_rows.h"

#include <algorithm>

#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr int kVectorBytes = 16;

const Operand& operand_of(const Kernel& kernel, int operand) {
  return kernel.operands[static_cast<std::size_t>(operand)];
}

// Whether a sweep behind the one that makes store number `store` loads an element of `operand`.
bool is_read_later(const Kernel& kernel, const Rounds& rounds, int operand, int store) {
  bool later = false;
  for (const Sweep& sweep : rounds.sweeps) {
    const auto reads = [&](InstrId id) {
      const Instr& instr = kernel.instr(id);
      return instr.kind == InstrKind::load && instr.access.operand == operand;
    };
    if (later && std::any_of(sweep.instrs.begin(), sweep.instrs.end(), reads)) return true;
    later = later || std::find(sweep.stores.begin(), sweep.stores.end(), store) != sweep.stores.end();
  }
  return false;
}

// The row-major number of an element in its row.
Index element_of_row(const Kernel& kernel) {
  Index number(0);
  Dim stride(1);
  for (std::size_t axis = kernel.axes.size(); axis-- > 0 && kernel.axes[axis].reduced;) {
    number = number + Index::axis(static_cast<int>(axis)) * stride;
    stride = stride * kernel.axes[axis].extent;
  }
  return number;
}

}  // namespace

bool is_staged(const Kernel& kernel, const Access& access) {
  const int vector = static_cast<int>(kVectorBytes / element_bytes(kernel, access));
  return flat_width(access, vector, kernel) == vector;
}

std::vector<StagedRun> staged_runs(const Kernel& kernel) {
  std::vector<StagedRun> runs;
  for (const Instr& instr : kernel.body) {
    if (instr.kind != InstrKind::load || !is_staged(kernel, instr.access)) continue;
    const int operand = instr.access.operand;
    if (std::none_of(runs.begin(), runs.end(), [&](const StagedRun& run) { return run.loaded == operand; }))
      runs.push_back({operand, -1, operand_of(kernel, operand).dtype});
  }
  const Rounds rounds = rounds_of(kernel);
  for (std::size_t i = 0; i < kernel.stores.size(); ++i) {
    const Access& access = kernel.stores[i].access;
    if (!is_staged(kernel, access)) continue;
    const DType dtype = operand_of(kernel, access.operand).dtype;
    const auto place = std::find_if(runs.begin(), runs.end(), [&](const StagedRun& run) {
      return run.stored < 0 && run.dtype == dtype && !is_read_later(kernel, rounds, run.loaded, static_cast<int>(i));
    });
    if (place != runs.end())
      place->stored = access.operand;
    else
      runs.push_back({-1, access.operand, dtype});
  }
  return runs;
}

std::int64_t staged_element_bytes(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const StagedRun& run : staged_runs(kernel)) bytes += size_of(run.dtype);
  return bytes;
}

int rows_of_block(const ReduceSchedule& schedule) { return schedule.team.threads / team_size(schedule); }

std::int64_t staged_bytes(const Kernel& kernel, const ReduceSchedule& schedule) {
  return rows_of_block(schedule) * shape_of(kernel).length * staged_element_bytes(kernel);
}

Kernel with_staged_rows(const Kernel& kernel) {
  Kernel staged = kernel;
  const Index element = element_of_row(kernel);
  const auto redirect = [&](Access& access) {
    if (!is_staged(kernel, access)) return;
    Operand row = operand_of(kernel, access.operand);
    row.name = staged_name(kernel, access.operand);
    access = {static_cast<int>(staged.operands.size()), element, {}};
    staged.operands.push_back(std::move(row));
  };
  for (Instr& instr : staged.body)
    if (instr.kind == InstrKind::load) redirect(instr.access);
  for (Store& store : staged.stores) redirect(store.access);
  return staged;
}

std::string staged_name(const Kernel& kernel, int operand) { return "row_" + operand_of(kernel, operand).name; }

}  // namespace tenon::codegen
