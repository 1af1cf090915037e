// Reduce kernels: a team of threads walks each row once a round. The schedule says who the team is; everything else
// (which sweeps there are, what each evaluates) follows from the body.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/expression.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/rounds.h"
#include "codegen/emit/cuda/spell.h"
#include "codegen/vectorize.h"
#include "ir/check.h"

namespace tenon::codegen::cuda {
namespace {

constexpr int kColumns = 32;  // neighbouring rows of a block, when threads lie along the kept axis

// How rows and their elements are dealt to threads.
struct Team {
  int rows = 1;         // of a block
  int size = 1;         // threads of one row
  std::string row;      // this thread's row within the block
  std::string member;   // this thread's place in its row's team
  std::string collect;  // the prelude's collective, "" when the team is one thread
};

Team team_of(const ReduceSchedule& s) {
  switch (s.mapping) {
    case RowMapping::thread: return {s.threads, 1, "threadIdx.x", "0", ""};
    case RowMapping::warp:
      return {s.threads / s.lanes, s.lanes, fmt::format("threadIdx.x / {}", s.lanes),
              fmt::format("threadIdx.x % {}", s.lanes), fmt::format("reduce_lanes<{}>", s.lanes)};
    case RowMapping::block: return {1, s.threads, "0", "threadIdx.x", fmt::format("reduce_block<{}>", s.threads)};
    case RowMapping::column:
      return {kColumns, s.threads / kColumns, fmt::format("threadIdx.x % {}", kColumns),
              fmt::format("threadIdx.x / {}", kColumns), fmt::format("reduce_columns<{}, {}>", kColumns, s.threads)};
  }
  return {};
}

// Writes one Reduce kernel.
class ReduceEmitter {
 public:
  ReduceEmitter(const Kernel& kernel, const Target& target)
      : kernel_(kernel),
        target_(target),
        schedule_(std::get<ReduceSchedule>(kernel.schedule)),
        team_(team_of(schedule_)),
        rounds_(rounds_of(kernel)),
        names_(names_of(kernel)) {
    while (kept_ < kernel.axes.size() && !kernel.axes[kept_].reduced) ++kept_;
    count_ = extent_of(kernel, 0, kept_);
    length_ = extent_of(kernel, kept_, kernel.axes.size());
    step_ = team_.size * schedule_.vector;
    chunks_ = schedule_.persistent ? schedule_.row_elements / schedule_.vector : 0;
    check();
  }

  Source emit() {
    emit_row();
    if (schedule_.persistent) emit_held_loads();
    for (const Sweep& sweep : rounds_.sweeps) emit_sweep(sweep);
    define(rounds_.after);
    emit_row_stores();
    LaunchRule launch;
    launch.grid_x = blocks_of(count_, team_.rows);
    launch.block = schedule_.threads;
    return finish(kernel_, out_, launch, target_);
  }

 private:
  void check() const {
    TENON_CHECK(schedule_.vector == 1 || power_of_two_divisor(kernel_.axes.back().extent, schedule_.vector,
                                                              kernel_.symbols) == schedule_.vector,
                "a vector must divide the innermost reduced axis");
    TENON_CHECK(schedule_.vector == 1 || schedule_.mapping != RowMapping::column, "columns are taken one by one");
    TENON_CHECK(!schedule_.persistent || length_.bounds(kernel_.symbols).max <= std::int64_t{step_} * chunks_,
                "a row must fit the registers that hold it");
    for (const Instr& instr : kernel_.body)
      TENON_CHECK(instr.kind != InstrKind::reduce || instr.axes.size() == kernel_.axes.size() - kept_,
                  "a reduction of a Reduce kernel combines all reduced axes");
  }

  // ---- the row ----

  bool whole_blocks() const { return team_.rows == 1 || (count_.is_constant() && count_.constant() % team_.rows == 0); }

  // Threads beyond the last row take part in collectives: they work on the last row again and store nothing.
  void emit_row() {
    const std::string type = unsigned_index_type(kernel_);
    const std::string block = kernel_.wide_index ? "(u64)blockIdx.x" : "blockIdx.x";
    const std::string rows = dim_text(count_, names_);
    std::string row = team_.rows == 1 ? block : fmt::format("{} * {} + {}", block, team_.rows, team_.row);
    if (whole_blocks()) {
      if (kept_ > 0) out_.line(fmt::format("const {} row = {};", type, row));
    } else if (team_.size == 1) {
      out_.line(fmt::format("const {} row = {};", type, row));
      out_.line(fmt::format("if (row >= {}) return;", rows));
    } else {
      out_.line(fmt::format("const {} own_row = {};", type, row));
      out_.line(fmt::format("const bool inside = own_row < {};", rows));
      out_.line(fmt::format("const {} row = inside ? own_row : {} - 1;", type, rows));
    }
    decode_axes(out_, kernel_, 0, kept_, "row");
    if (team_.size > 1) out_.line(fmt::format("const {} member = {};", index_type(kernel_), team_.member));
  }

  void emit_row_stores() {
    if (rounds_.row_stores.empty()) return;
    std::string condition = team_.size > 1 ? "member == 0" : "";
    if (team_.size > 1 && !whole_blocks()) condition += " && inside";
    const bool block = !condition.empty() && rounds_.row_stores.size() > 1;
    if (block) out_.open(fmt::format("if ({}) {{", condition));
    for (int index : rounds_.row_stores)
      out_.line(
          conditional_store(kernel_, kernel_.stores[static_cast<std::size_t>(index)], names_, block ? "" : condition));
    if (block) out_.close();
  }

  void define(const std::vector<InstrId>& instrs) {
    for (InstrId id : instrs)
      if (kernel_.instr(id).kind != InstrKind::literal)
        out_.line(definition(kernel_, id, names_), comment(kernel_.instr(id)));
  }

  // ---- the elements of a row ----

  // The row-major index in the row of the first element of a vector: the reduced axis itself when there is one.
  std::string element_name() const { return kernel_.axes.size() - kept_ == 1 ? kernel_.axes[kept_].name : "e"; }

  // Opens the loop over this thread's elements. Returns how many braces it opened.
  int open_elements() {
    const std::string type = index_type(kernel_);
    const std::string length = dim_text(length_, names_);
    const std::string e = element_name();
    const std::string first = schedule_.vector == 1 ? "member" : fmt::format("member * {}", schedule_.vector);
    int opened = 1;
    if (!schedule_.persistent) {
      out_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", type, e, team_.size == 1 ? "0" : first,
                            length, step_));
    } else {
      out_.unrolled(fmt::format("for (int c = 0; c < {}; ++c) {{", chunks_));
      out_.line(fmt::format("const {} {} = c * {}{};", type, e, step_, team_.size == 1 ? "" : " + " + first));
      if (!length_.is(std::int64_t{step_} * chunks_)) {
        out_.open(fmt::format("if ({} < {}) {{", e, length));
        opened = 2;
      }
    }
    if (e == "e")
      decode_axes(out_, kernel_, kept_, kernel_.axes.size(), fmt::format("({})e", unsigned_index_type(kernel_)));
    return opened;
  }

  void close(int opened) {
    for (; opened > 0; --opened) out_.close();
  }

  Points points_of(const Sweep& sweep) const {
    Points points;
    points.instrs = sweep.instrs;
    points.stores = sweep.stores;
    points.reduces = sweep.reduces;
    if (team_.size > 1 && !whole_blocks()) points.condition = "inside";
    points.position = element_name();
    points.axis = static_cast<int>(kernel_.axes.size()) - 1;
    points.vector = schedule_.vector;
    points.held = held();
    points.held_index = "[c]";
    return points;
  }

  void emit_sweep(const Sweep& sweep) {
    define(sweep.before);
    for (InstrId id : sweep.reduces) {
      const Combination how = combination(kernel_, kernel_.instr(id));
      out_.line(fmt::format("{} a{} = {};", how.type, id, how.identity));
    }
    if (!sweep.reduces.empty() || !sweep.stores.empty()) {
      const int opened = open_elements();
      emit_points(out_, kernel_, points_of(sweep));
      close(opened);
    }
    for (InstrId id : sweep.reduces) emit_result(id);
  }

  void emit_result(InstrId id) {
    const Instr& instr = kernel_.instr(id);
    const Combination how = combination(kernel_, instr);
    std::string result =
        team_.collect.empty() ? fmt::format("a{}", id) : fmt::format("{}(a{}, {})", team_.collect, id, how.function);
    if (how.is_arg) result += ".index";
    out_.line(fmt::format("const {} v{} = {};", value_type(instr.dtype), id, result), comment(instr));
  }

  // ---- rows in registers ----

  // Loads whose elements stay in registers: those that more than one sweep uses, at offsets known from the start.
  std::vector<InstrId> held() const {
    std::vector<InstrId> result;
    if (!schedule_.persistent) return result;
    const int inner = static_cast<int>(kernel_.axes.size()) - 1;
    for (InstrId id = 0; id < static_cast<InstrId>(kernel_.body.size()); ++id) {
      const Instr& instr = kernel_.instr(id);
      if (instr.kind != InstrKind::load || (instr.depends >> inner & 1) == 0 || !operands_of(instr).empty()) continue;
      const auto uses = std::count_if(rounds_.sweeps.begin(), rounds_.sweeps.end(), [&](const Sweep& sweep) {
        return std::find(sweep.instrs.begin(), sweep.instrs.end(), id) != sweep.instrs.end();
      });
      if (uses > 1) result.push_back(id);
    }
    return result;
  }

  void emit_held_loads() {
    const std::vector<InstrId> loads = held();
    if (loads.empty()) return;
    const int inner = static_cast<int>(kernel_.axes.size()) - 1;
    for (InstrId id : loads) {
      const DType stored = kernel_.operands[static_cast<std::size_t>(kernel_.instr(id).access.operand)].dtype;
      out_.line(fmt::format("{} x{}[{}];", pack_type(stored, schedule_.vector), id, chunks_));
    }
    const int opened = open_elements();
    for (InstrId id : loads) {
      const std::string load = vector_load(kernel_, id, inner, schedule_.vector, names_);
      if (!load.empty()) {
        out_.line(fmt::format("x{}[c] = {};", id, load));
        continue;
      }
      const Access& access = kernel_.instr(id).access;
      const Names names = at_point(names_, inner, "j");
      const std::string guard = guard_text(access.guards, names);
      const std::string value = element(kernel_, access, names);
      const DType stored = kernel_.operands[static_cast<std::size_t>(access.operand)].dtype;
      out_.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", schedule_.vector));
      out_.line(
          fmt::format("x{}[c][j] = {};", id,
                      guard.empty() ? value : fmt::format("{} ? {} : {}{{}}", guard, value, storage_type(stored))));
      out_.close();
    }
    close(opened);
  }

  const Kernel& kernel_;
  const Target& target_;
  const ReduceSchedule& schedule_;
  Team team_;
  Rounds rounds_;
  Names names_;
  std::size_t kept_ = 0;
  Dim count_, length_;
  int step_ = 1, chunks_ = 0;
  Writer out_{1};
};

}  // namespace

Source emit_reduce(const Kernel& kernel, const Target& target) { return ReduceEmitter(kernel, target).emit(); }

}  // namespace tenon::codegen::cuda
