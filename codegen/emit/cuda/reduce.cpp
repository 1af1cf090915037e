// Reduce kernels: a team of threads walks each row once a round. The schedule says who the team is; everything else
// (which sweeps there are, what each evaluates) follows from the body. With outer reductions (outer.h) a block walks
// over many rows. Rows that lie side by side: columns.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/columns_peeled.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/expression.h"
#include "codegen/emit/cuda/held.h"
#include "codegen/emit/cuda/outer.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/shared_rows.h"
#include "codegen/emit/cuda/spell.h"
#include "codegen/emit/cuda/team.h"
#include "codegen/emit/cuda/vectors.h"
#include "codegen/emit/cuda/walk.h"
#include "codegen/vectorize.h"
#include "ir/check.h"

namespace tenon::codegen::cuda {
namespace {

constexpr const char* kNow = "load_now";  // a load that is to be under way while other work is done

// Writes one Reduce kernel.
class ReduceEmitter {
 public:
  ReduceEmitter(const Kernel& kernel, const Target& target)
      : kernel_(kernel), target_(target), rows_(kernel), schedule_(rows_.schedule), team_(team_of(schedule_)) {
    check();
    if (!schedule_.persistent) return;
    held_ = held_values(kernel, rows_.rounds);
    rows_.rounds = with_held(kernel, rows_.rounds, held_);
    if (schedule_.shared_elements > 0) shared_ = shared_loads(kernel, schedule_);
  }

  Source emit() {
    if (schedule_.walkers > 0) return emit_walk();
    const bool split = schedule_.splits > 1;
    emit_row(out_, rows_, team_, schedule_.splits, schedule_.cluster);
    walk_.emit_bounds();
    if (!shared_.empty()) emit_copies();
    if (schedule_.persistent && walk_.chunks() > 0) emit_held();
    if (peeled_ != nullptr) emit_edge_loads();
    if (!shared_.empty()) out_.line("wait_copies<0>();");
    for (std::size_t sweep = 0; sweep < rows_.rounds.sweeps.size(); ++sweep) emit_sweep(sweep);
    LaunchRule launch;
    launch.grid_x = blocks_of(rows_.count, team_.rows) * Dim(schedule_.splits * schedule_.cluster);
    launch.cluster = schedule_.cluster;
    launch.block = schedule_.threads;
    if (split) return finish(kernel_, out_, launch, target_, finisher(rows_), resident());
    define(out_, rows_, rows_.rounds.after);
    emit_row_stores(out_, rows_, team_);
    if (schedule_.cluster > 1) out_.line("meet_cluster();");  // the others may still read this block's results
    if (!shared_.empty()) launch.shared_bytes = static_cast<int>(shared_row_bytes(kernel_, schedule_));
    return finish(kernel_, out_, launch, target_, resident());
  }

 private:
  // The block's rows, one after the other.
  Source emit_walk() {
    out_.line(fmt::format("const {} member = threadIdx.x;", index_type(kernel_)));
    declare_outer(out_, rows_, walk_.chunks());
    const std::vector<InstrId> loads = held_in(0);
    std::vector<InstrId> of_rows, of_all;  // what changes from row to row, and what does not
    for (InstrId id : loads) (varies_by_row(id) ? of_rows : of_all).push_back(id);
    for (InstrId id : loads) declare(id);
    fill(of_all, "x");
    if (schedule_.ahead) {
      of_rows = take_ahead(of_rows);
      emit_ahead("blockIdx.x", of_rows);
    }
    const std::string type = unsigned_index_type(kernel_), count = dim_text(rows_.count, rows_.names);
    out_.open(fmt::format("for ({} row = blockIdx.x; row < {}; row += {}) {{", type, count, schedule_.walkers));
    decode_axes(out_, kernel_, 0, rows_.kept, "row");
    for (const Held& held : held_)
      if (kernel_.instr(held.value).kind != InstrKind::load) declare(held.value);
    if (schedule_.ahead) {
      copy_ahead(of_rows);
      emit_ahead(fmt::format("row + {}", schedule_.walkers), of_rows);
    } else {
      fill(of_rows, "x");
    }
    std::size_t collectives = 0;
    for (std::size_t sweep = 0; sweep < rows_.rounds.sweeps.size(); ++sweep) {
      emit_sweep(sweep);
      collectives += rows_.rounds.sweeps[sweep].reduces.size();
    }
    define(out_, rows_, rows_.rounds.after);
    emit_row_stores(out_, rows_, team_);
    // Two buffers take turns: whoever writes the first again has seen all threads behind their reading of it.
    if (collectives == 1) out_.line("__syncthreads();", "the next row uses the same buffer");
    out_.close();
    emit_outer_parts(out_, rows_, walk_);
    LaunchRule launch;
    launch.grid_x = Dim(schedule_.walkers);
    launch.block = schedule_.threads;
    return finish(kernel_, out_, launch, target_, outer_finisher(rows_), resident());
  }

  bool varies_by_row(InstrId id) const {
    return (kernel_.instr(id).depends & ((std::uint64_t{1} << rows_.kept) - 1)) != 0;
  }

  // Declares next<id> of what is loaded ahead: these loads, and those that there are once for each row, which no sweep
  // then loads.
  std::vector<InstrId> take_ahead(std::vector<InstrId> loads) {
    for (InstrId id : loads) declare(id, "next");
    for (Sweep& sweep : rows_.rounds.sweeps) {
      auto& before = sweep.before;
      const auto once = std::stable_partition(before.begin(), before.end(), [&](InstrId id) {
        return kernel_.instr(id).kind != InstrKind::load || !operands_of(kernel_.instr(id)).empty() ||
               !varies_by_row(id);
      });
      for (auto id = once; id != before.end(); ++id) {
        out_.line(fmt::format("{} next{};", held_type(kernel_, *id), *id));
        loads.push_back(*id);
      }
      before.erase(once, before.end());
    }
    return loads;
  }

  // The row numbered `text`, if there is one, into next<id>.
  void emit_ahead(const std::string& text, const std::vector<InstrId>& loads) {
    if (loads.empty()) return;
    const std::string type = unsigned_index_type(kernel_), count = dim_text(rows_.count, rows_.names);
    out_.open("{");
    out_.line(fmt::format("const {} ahead = {};", type, text));
    out_.open(fmt::format("if (ahead < {}) {{", count));
    decode_axes(out_, kernel_, 0, rows_.kept, "ahead");
    for (InstrId id : loads)
      if (!element_level(kernel_, id)) {
        const Access& access = kernel_.instr(id).access;
        out_.line(fmt::format("next{} = ({})[0];", id, guarded_load(kernel_, access, 1, 1, rows_.names, false, kNow)));
      }
    fill(elements_of(loads), "next", kNow);
    out_.close();
    out_.close();
  }

  void copy_ahead(const std::vector<InstrId>& loads) {
    if (loads.empty()) return;
    out_.unrolled(fmt::format("for (int c = 0; c < {}; ++c) {{", walk_.chunks()));
    for (InstrId id : elements_of(loads)) out_.line(fmt::format("x{0}[c] = next{0}[c];", id));
    out_.close();
    for (InstrId id : loads)
      if (!element_level(kernel_, id))
        out_.line(fmt::format("const {} v{} = {};", value_type(kernel_.instr(id).dtype), id,
                              decoded(fmt::format("next{}", id), stored_dtype(kernel_, kernel_.instr(id).access))));
  }

  std::vector<InstrId> elements_of(const std::vector<InstrId>& loads) const {
    std::vector<InstrId> elements;
    for (InstrId id : loads)
      if (element_level(kernel_, id)) elements.push_back(id);
    return elements;
  }

  // The compiler rather spills for a further block than it uses what peeled rows take.
  int resident() const {
    if (schedule_.resident > 0) return schedule_.resident;
    if (schedule_.walkers > 0) {  // all at once, where that leaves a thread 64 registers
      const int blocks = schedule_.walkers / target_.multiprocessors;
      return blocks * schedule_.threads <= target_.registers_per_block / 64 ? blocks : 0;
    }
    return shared_.empty() ? int{schedule_.peeled} : blocks();
  }
  int blocks() const { return resident_blocks(shared_row_bytes(kernel_, schedule_), schedule_.threads, target_); }

  void check() const {
    const bool walks = has_outer(kernel_);
    TENON_CHECK(walks == (schedule_.walkers > 0), "blocks walk over the rows for the sake of outer reductions");
    TENON_CHECK(!walks || (schedule_.mapping == RowMapping::block && schedule_.persistent && !schedule_.peeled &&
                           schedule_.splits == 1 && schedule_.cluster == 1),
                "a row that is walked over is in the registers of a block");
    TENON_CHECK(schedule_.peeled ? peeled_ != nullptr && schedule_.vector > 1
                                 : power_of_two_divisor(kernel_.axes.back().extent, schedule_.vector,
                                                        kernel_.symbols) == schedule_.vector,
                "a vector must divide the innermost reduced axis, or be peeled off contiguous rows");
    TENON_CHECK(!schedule_.peeled || team_.size >= 2 * (schedule_.vector - 1),
                "each end of a row is at most one element a thread");
    const std::int64_t longest = rows_.length.bounds(kernel_.symbols).max / schedule_.vector;
    TENON_CHECK(!schedule_.persistent || longest <= std::int64_t{team_.size} * (walk_.chunks() + walk_.shared_chunks()),
                "a row must fit the registers that hold it");
    TENON_CHECK(schedule_.shared_elements == 0 || (schedule_.persistent && schedule_.mapping == RowMapping::block &&
                                                   schedule_.shared_elements % schedule_.vector == 0 &&
                                                   schedule_.shared_elements <= schedule_.row_elements &&
                                                   !shared_loads(kernel_, schedule_).empty() && blocks() > 0),
                "a row in shared memory is of whole vectors of loads");
    TENON_CHECK(schedule_.splits == 1 || (may_split(rows_.rounds) && !schedule_.persistent),
                "only one sweep can be split");
    TENON_CHECK(schedule_.cluster == 1 || (schedule_.mapping == RowMapping::block && schedule_.splits == 1 &&
                                           schedule_.cluster <= 8 && target_.sm >= 90),
                "a cluster is of blocks that share a row");
    TENON_CHECK(!schedule_.online || (rows_.rounds.sweeps.size() > 0 && !schedule_.persistent),
                "an online sum is for rows that are read again");
  }

  // ---- sweeps ----

  Points points_of(const Sweep& sweep, const std::vector<InstrId>& held) const {
    Points points;
    points.instrs = sweep.instrs;
    points.stores = sweep.stores;
    points.reduces = sweep.reduces;
    points.outer = sweep.outer;
    if (team_.size > 1 && !whole_blocks(rows_, team_)) points.condition = "inside";
    points.position = rows_.element();
    points.axis = static_cast<int>(kernel_.axes.size()) - 1;
    points.vector = schedule_.vector;
    points.peeled = peeled_;
    points.streaming = schedule_.streaming;
    points.held = held;
    points.held_index = "[c]";
    return points;
  }
  // The same for the edge.
  static Points at_edge(Points points) {
    points.vector = 1;
    points.peeled = nullptr;
    points.held_name = "e";
    points.held_index.clear();
    return points;
  }

  void emit_sweep(std::size_t number) {
    const Sweep& sweep = rows_.rounds.sweeps[number];
    define(out_, rows_, sweep.before);
    for (InstrId id : sweep.reduces) {
      const Combination how = combination(kernel_, kernel_.instr(id));
      out_.line(fmt::format("{} a{} = {};", how.type, id, how.identity));
    }
    if (sweep.online) {
      const std::string type = value_type(kernel_.instr(sweep.online->sum).dtype);
      out_.line(fmt::format("{} a{} = 0;", type, sweep.online->sum));
      out_.line(fmt::format("{} shift{} = 0;", type, sweep.online->sum));
    }
    if (!sweep.reduces.empty() || !sweep.outer.empty() || !sweep.stores.empty()) emit_elements(number);
    for (std::size_t slot = 0; slot < sweep.reduces.size(); ++slot) emit_collected(sweep.reduces[slot], slot);
    if (sweep.online) emit_online_result(*sweep.online);
  }

  // ---- the sum of exponentials beside its maximum ----

  // The sum so far with the shift of the maximum so far, and the elements just read, in a scope where that maximum has
  // the maximum's name. `again`: in a loop over them of its own.
  void emit_online_points(const Online& online, const Points& first, bool again) {
    Points points = first;
    points.instrs = online.instrs;
    points.stores.clear();
    points.reduces = {online.sum};
    if (!again) {
      for (InstrId id : plain_loads(first.instrs))  // in x<id> from the same step
        if (first.vector > 1 && !vector_load(kernel_, id, first, rows_.names).empty()) points.held.push_back(id);
      points.held_index.clear();
    }
    out_.open("{");
    out_.line(fmt::format("const {0} v{1} = a{1};", value_type(kernel_.instr(online.maximum).dtype), online.maximum),
              "so far");
    define(out_, rows_, online.shift_instrs);
    out_.line(fmt::format("a{0} = rescaled(a{0}, shift{0}, v{1});", online.sum, online.shift));
    out_.line(fmt::format("shift{} = v{};", online.sum, online.shift));
    const int opened = again ? walk_.open_elements() : 0;
    emit_points(out_, kernel_, points);
    walk_.close(opened);
    out_.close();
  }

  void emit_online_result(const Online& online) {
    const Combination how = combination(kernel_, kernel_.instr(online.sum));
    define(out_, rows_, online.shift_instrs);
    out_.line(fmt::format("a{0} = rescaled(a{0}, shift{0}, v{1});", online.sum, online.shift));
    emit_result(out_, rows_, online.sum,
                team_.collect.empty() ? fmt::format("a{}", online.sum)
                                      : fmt::format("{}(a{}, {})", team_.collect, online.sum, how.function));
  }

  void emit_elements(std::size_t number) {
    const Sweep& sweep = rows_.rounds.sweeps[number];
    const bool again = sweep.online && walk_.chunks() > 0;
    Points points = points_of(sweep, walk_.tiled() ? plain_loads(sweep.instrs) : held_in(number));
    for (const Held& held : held_)
      if (held.sweep == number && kernel_.instr(held.value).kind != InstrKind::load) points.saved.push_back(held.value);
    if (walk_.tiled()) {
      walk_.open_tile();
      emit_loads(points);
    }
    if (!shared_.empty()) emit_shared_points(points);
    if (shared_.empty() || walk_.chunks() > 0) {
      const int opened = walk_.open_elements();
      emit_points(out_, kernel_, points);
      if (again) walk_.close(opened);
      if (sweep.online) emit_online_points(*sweep.online, points, again);
      if (!again) walk_.close(opened);
    }
    if (walk_.tiled()) out_.close();
    if (peeled_ == nullptr) return;
    walk_.open_edge();
    Points edge = at_edge(points);
    if (!schedule_.persistent) edge.held = edges_;
    emit_points(out_, kernel_, edge);
    if (sweep.online) emit_online_points(*sweep.online, edge, false);
    out_.close();
  }

  // The row's result, or this part's share of it in scratch.
  void emit_collected(InstrId id, std::size_t slot) {
    const Combination how = combination(kernel_, kernel_.instr(id));
    const std::string all =
        team_.collect.empty() ? fmt::format("a{}", id) : fmt::format("{}(a{}, {})", team_.collect, id, how.function);
    if (schedule_.splits == 1) return emit_result(out_, rows_, id, all);
    out_.line(fmt::format("const {} p{} = {};", how.type, id, all));
    const std::string condition = row_condition(rows_, team_);
    if (!condition.empty()) out_.open(fmt::format("if ({}) {{", condition));
    emit_partial(out_, rows_, slot, "row", fmt::format("p{}", id));
    if (!condition.empty()) out_.close();
  }

  // ---- elements in shared memory ----

  void emit_copies() {
    declare_shared_rows(out_, kernel_, schedule_);
    const int opened = walk_.open_shared();
    for (InstrId id : shared_)
      out_.line(fmt::format("copy_async<{}>(s{} + {}, {}, true);", schedule_.vector * held_size(kernel_, id), id,
                            shared_place(schedule_), address(kernel_, kernel_.instr(id).access, rows_.names)));
    walk_.close(opened);
    out_.line("commit_copies();");
  }

  void emit_shared_points(Points points) {
    points.held.clear();
    points.staged = shared_;
    points.staged_place = shared_place(schedule_);
    const int opened = walk_.open_shared();
    emit_points(out_, kernel_, points);
    walk_.close(opened);
  }

  // ---- elements in registers ----

  std::vector<InstrId> plain_loads(const std::vector<InstrId>& instrs) const {
    std::vector<InstrId> loads;
    for (InstrId id : instrs)
      if (is_plain_load(kernel_, id)) loads.push_back(id);
    return loads;
  }

  // Of a persistent row, what is there when sweep `number` begins: to the first, all that it loads.
  std::vector<InstrId> held_in(std::size_t number) const {
    std::vector<InstrId> there =
        number == 0 && schedule_.persistent ? plain_loads(rows_.rounds.sweeps[0].instrs) : std::vector<InstrId>{};
    for (const Held& held : held_)
      if ((kernel_.instr(held.value).kind == InstrKind::load || held.sweep < number) &&
          std::find(there.begin(), there.end(), held.value) == there.end())
        there.push_back(held.value);
    return there;
  }

  // What a persistent row holds, and the loads among it.
  void emit_held() {
    for (const Held& held : held_)
      if (kernel_.instr(held.value).kind != InstrKind::load) declare(held.value);
    emit_loads(points_of({}, held_in(0)));
  }

  // "pack<bf16, 1> e0;": what is loaded of the edge is there from the start.
  void emit_edge_loads() {
    for (const Sweep& sweep : rows_.rounds.sweeps)
      for (InstrId id : plain_loads(sweep.instrs))
        if (std::find(edges_.begin(), edges_.end(), id) == edges_.end()) edges_.push_back(id);
    for (InstrId id : edges_) out_.line(fmt::format("pack<{}, 1> e{} = {{}};", held_type(kernel_, id), id));
    if (edges_.empty()) return;
    walk_.open_edge();
    for (InstrId id : edges_) out_.line(fmt::format("e{}[0] = {};", id, loaded(id, rows_.names)));
    out_.close();
  }

  // "pack<bf16, 8> x0[4];", and "pack<bf16, 1> e0;" of what is computed at the edge.
  void declare(InstrId id, const std::string& name = "x") {
    const std::string type = held_type(kernel_, id);
    out_.line(fmt::format("pack<{}, {}> {}{}[{}];", type, schedule_.vector, name, id, walk_.chunks()));
    if (peeled_ != nullptr && kernel_.instr(id).kind != InstrKind::load)
      out_.line(fmt::format("pack<{}, 1> e{};", type, id));
  }

  // An element as it is in memory.
  std::string loaded(InstrId id, const Names& names) const {
    const Access& access = kernel_.instr(id).access;
    const std::string guard = guard_text(access.guards, names), value = element(kernel_, access, names);
    return guard.empty() ? value : fmt::format("{} ? {} : {}{{}}", guard, value, held_type(kernel_, id));
  }

  // Declares points.held, which are loads, and fills them.
  void emit_loads(const Points& points) {
    for (InstrId id : points.held) declare(id);
    fill(points.held, "x");
  }

  // Fills <name><id> with these loads. `function`: of the prelude, for those that are vectors.
  void fill(const std::vector<InstrId>& loads, const std::string& name, const char* function = "load") {
    if (loads.empty()) return;
    const Points points = points_of({}, loads);
    const int opened = walk_.open_elements();
    for (InstrId id : loads) {
      const Access& access = kernel_.instr(id).access;
      if (const int width = width_of(kernel_, access, points); width != 0) {
        out_.line(fmt::format(
            "{}{}[c] = {};", name, id,
            guarded_load(kernel_, access, points.vector, width, rows_.names, points.peeled != nullptr, function)));
        continue;
      }
      out_.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", schedule_.vector));
      out_.line(fmt::format("{}{}[c][j] = {};", name, id, loaded(id, at_point(rows_.names, points.axis, "j"))));
      out_.close();
    }
    walk_.close(opened);
  }

  const Kernel& kernel_;
  const Target& target_;
  Rows rows_;
  const ReduceSchedule& schedule_;
  Team team_;
  const Access* peeled_ =
      schedule_.peeled ? peel_reference(kernel_) : nullptr;  // where vectors are aligned in each row
  std::vector<Held> held_;
  std::vector<InstrId> shared_;  // held loads whose first vectors are in shared memory
  std::vector<InstrId> edges_;   // loads of the edge, in e<id>
  Writer out_{1};
  Walk walk_{out_, rows_, team_, peeled_};
};

}  // namespace

Source emit_reduce(const Kernel& kernel, const Target& target) {
  for (const Instr& instr : kernel.body)
    TENON_CHECK(
        instr.kind != InstrKind::reduce ||
            instr.axes.size() == (kernel.axes[static_cast<std::size_t>(instr.axes[0])].reduced ? Rows(kernel).reduced()
                                                                                               : Rows(kernel).kept),
        "a reduction of a Reduce kernel combines all reduced axes, or all kept ones");
  const auto& schedule = std::get<ReduceSchedule>(kernel.schedule);
  if (schedule.mapping != RowMapping::column) return ReduceEmitter(kernel, target).emit();
  return schedule.peeled ? emit_peeled_columns(kernel, target) : emit_columns(kernel, target);
}

}  // namespace tenon::codegen::cuda
