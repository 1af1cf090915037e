// The CPU's heuristics for Reduce kernels: whose lanes have a row, what is kept of one, and when its elements are
// stored.
#include <algorithm>
#include <optional>

#include "codegen/analysis/dear_values.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/cpu_choices.h"

namespace tenon::codegen {
namespace cpu {
namespace {

bool stores_each_element(const Kernel& kernel, const Store& store) {
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kernel.axes[axis].reduced && store.access.offset.depends_on(static_cast<int>(axis))) return true;
  return false;
}

// Bytes that an element of a row reads and writes.
std::int64_t bytes_of_element(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (std::size_t id = 0; id < kernel.body.size(); ++id)
    if (kernel.body[id].kind == InstrKind::load && element_level(kernel, static_cast<InstrId>(id)))
      bytes += element_bytes(kernel, kernel.body[id].access);
  for (const Store& store : kernel.stores)
    if (stores_each_element(kernel, store)) bytes += element_bytes(kernel, store.access);
  return std::max<std::int64_t>(1, bytes);
}

// The same of a row's elements, without what is computed once for a row.
int cost_of_elements(const Kernel& kernel) {
  int cost = 0;
  for (std::size_t id = 0; id < kernel.body.size(); ++id)
    if (element_level(kernel, static_cast<InstrId>(id))) cost += cost_of(kernel.body[id]);
  return cost;
}

// Whether there is something to keep of a row, and half of a core's own cache holds it.
bool keeps_dear_values(const Kernel& kernel, const Target& target) {
  if (!may_keep_dear_values(kernel)) return false;
  const Axis& row = kernel.axes.back();
  std::int64_t each = 0;
  for (const DearValue& dear : dear_values(kernel, rounds_of(kernel)))
    each += computed_bytes(kernel.instr(dear.value).dtype);
  const std::int64_t longest = row.extent.bounds(kernel.symbols).max;
  return each > 0 && longest <= target.l2_bytes / 2 / each;
}

// Whether a row's elements are still at hand when they are stored late: in a core's own cache, beside the next row and
// the one behind that, what is kept of them; and in the first level what has to be read again, for the next row's
// sweeps are bound by that level.
bool at_hand_when_late(const Kernel& kernel, const Target& target, bool keeps) {
  const Rounds rounds = rounds_of(kernel);
  std::vector<bool> kept(kernel.body.size(), false);
  std::int64_t each = 0;
  for (const DearValue& dear : keeps ? dear_values(kernel, rounds) : std::vector<DearValue>{}) {
    kept[static_cast<std::size_t>(dear.value)] = true;
    each += computed_bytes(kernel.instr(dear.value).dtype);
  }
  const std::uint64_t rows = (std::uint64_t{1} << (kernel.axes.size() - 1)) - 1;
  const auto is_element = [&](InstrId id) {
    return kernel.instr(id).kind == InstrKind::load && element_level(kernel, id);
  };
  for (InstrId id = 0; id < static_cast<InstrId>(kernel.body.size()); ++id)
    if (is_element(id))
      each += ((kernel.instr(id).depends & rows) != 0 ? 2 : 1) * element_bytes(kernel, kernel.instr(id).access);
  const std::vector<InstrId> late = needed(kernel, sweep_roots(kernel, rounds.sweeps.back()), kept);
  const bool again = std::any_of(late.begin(), late.end(),
                                 [&](InstrId id) { return is_element(id) && (kernel.instr(id).depends & rows) != 0; });
  const std::int64_t longest = kernel.axes.back().extent.bounds(kernel.symbols).max;
  return each > 0 && longest <= (again ? target.l1_bytes : target.l2_bytes) / each;
}

constexpr std::int64_t kColumnPart = 256;  // rows of memory of which a thread's pages are at hand together

// Of one sum, in registers: the more columns, the more of each page is read while it is at hand.
constexpr int kMostColumnVectors = 16;

// No more than there are columns.
int columns_in_flight(const Kernel& kernel, const ReduceSchedule& schedule, int most) {
  const auto kept = std::find_if(kernel.axes.rbegin(), kernel.axes.rend(), [](const Axis& a) { return !a.reduced; });
  const std::int64_t columns = kept->extent.bounds(kernel.symbols).max;
  while (most > 1 && most * std::max(2, schedule.vector) > columns) most /= 2;
  return most;
}

// Issue slots of a row's elements beside their loads and reductions.
double cost_between(const Kernel& kernel) {
  const auto reductions = std::count_if(kernel.body.begin(), kernel.body.end(),
                                        [](const Instr& instr) { return instr.kind == InstrKind::reduce; });
  return std::max<double>(0, static_cast<double>(cost_of_elements(kernel) - 2 * reductions));
}

// What a short row costs whose elements lie in the lanes of a vector: to compute it and to fold it. Nanoseconds of a
// core (EPYC with AVX-512), an issue slot taken for one; the greatest of reals looks for NaN and for the sign of zeros.
double cost_of_folds(const Kernel& kernel) {
  constexpr double kSum = 2.5, kGreatest = 10, kGreatestWide = 6, kGreatestInteger = 3, kIndex = 20, kOfRow = 0.3;
  double cost = cost_between(kernel) + kOfRow * (body_cost(kernel) - cost_of_elements(kernel));
  for (const Instr& instr : kernel.body) {
    if (instr.kind != InstrKind::reduce) continue;
    const DType dtype = kernel.instr(instr.args[0]).dtype;
    const bool greatest = instr.op == ir::Op::max || instr.op == ir::Op::min;
    cost += ir::info(instr.op).yields == ir::Yields::Index ? kIndex
            : !greatest                                    ? kSum
            : !is_real(dtype)                              ? kGreatestInteger
            : size_of(dtype) == 8                          ? kGreatestWide
                                                           : kGreatest;
  }
  return cost;
}

// The same where each of `lanes` has a row, whose elements are gathered in each sweep, and scattered.
double cost_of_gathers(const Kernel& kernel, std::int64_t row, int lanes) {
  const auto of = [](std::int64_t bytes) { return bytes == 8 ? 1.1 : bytes == 4 ? 0.7 : bytes == 2 ? 0.45 : 0.25; };
  double cost = cost_between(kernel) / lanes;
  for (const Sweep& sweep : rounds_of(kernel).sweeps)
    for (const InstrId id : sweep.instrs)
      if (kernel.instr(id).kind == InstrKind::load && element_level(kernel, id))
        cost += of(element_bytes(kernel, kernel.instr(id).access));
  for (const Store& store : kernel.stores)
    if (stores_each_element(kernel, store)) cost += of(element_bytes(kernel, store.access));
  return cost * static_cast<double>(row);
}

// Whether a row is so short that each lane rather has one of its own: softmax of 8,000,000 f32 rows of 2 153 ms and 23,
// of rows of 7 38 and 19; greatest of rows of 8 10.7 and 6.2.
bool lanes_have_rows(const Kernel& kernel, const Target& target, std::int64_t rows, int lanes) {
  constexpr double kMargin = 1.1;
  constexpr int kGathers = 32;  // bytes of registers from which on there are gathers
  std::int64_t row = 1;
  for (const Axis& axis : kernel.axes)
    if (axis.reduced) row = std::min<std::int64_t>(row * axis.extent.bounds(kernel.symbols).max, 1 << 20);
  if (target.vector_bytes < kGathers || rows < target.vector_bytes || row > lanes) return false;
  return cost_of_folds(kernel) > kMargin * cost_of_gathers(kernel, row, lanes);
}

}  // namespace

// Columns when the data lies that way: lanes along the innermost kept axis need no fold across lanes.
ReduceSchedule choose_reduce(const Kernel& kernel, const Target& target) {
  ReduceSchedule schedule;
  schedule.vector = lanes_for(kernel, target);
  std::size_t kept = 0;
  std::int64_t row = 1, rows = 1;
  for (const Axis& axis : kernel.axes) {
    kept += !axis.reduced;
    (axis.reduced ? row : rows) *= std::max<std::int64_t>(1, typical(axis.extent, kernel.symbols));
  }
  const bool columns = kept > 0 && (kept == kernel.axes.size() || column_wise(kernel, kept) ||
                                    lanes_have_rows(kernel, target, rows, schedule.vector));
  schedule.team.mapping = columns ? RowMapping::column : RowMapping::thread;
  schedule.grain = std::max<std::int64_t>(1, 32768 / row);
  const bool online = target.may.online && !columns && shares_the_only_sweep(kernel);
  const bool splits = may_split_on_cpu(kernel, online);
  if (columns) schedule.in_flight = columns_in_flight(kernel, schedule, splits ? kMostColumnVectors : 4);
  if (splits && (columns ? row >= 2 * kColumnPart : rows < 4 * target.threads && row >= (1 << 16)))
    schedule.cut = in_parts(static_cast<int>(std::clamp<std::int64_t>(columns ? row / kColumnPart : row >> 15, 1, 64)));
  const bool keeps = !online && target.may.hold_rows && !columns && keeps_dear_values(kernel, target);
  schedule.keep = keeps ? Keep(InBuffer{}) : Keep(Reread{.online = online});
  const bool may_be_late = stores_may_be_late(kernel, schedule) && at_hand_when_late(kernel, target, keeps);
  // Elements are stored late where they take long enough to compute that memory would idle meanwhile: LayerNorm of f32
  // rows of 112 takes 3.5 ms late and 2.4 at once, of bf16 rows of 2048 3.9 and 4.4. Where that is longer still, and no
  // end is masked, memory has the time for lines that rows share: rows of 80 quantized to i8 3.6 around the caches and
  // 5.2 through them, of 100 12.7 and 6.4, RMS norm of bf16 rows of 112 3.2 and 2.7, softmax of f32 rows of 255 6.4 and
  // 4.4.
  const double of_byte = static_cast<double>(cost_of_elements(kernel)) / static_cast<double>(bytes_of_element(kernel));
  const bool whole = !kernel.axes.empty() && power_of_two_divisor(kernel.axes.back().extent, schedule.vector,
                                                                  kernel.symbols) == schedule.vector;
  schedule.cache.streaming = !columns && may_exceed(kernel, target.l3_bytes, target.vector_bytes == 64) &&
                             (rows_may_stream(kernel, target) || (may_be_late && whole && of_byte > kCostOfByte));
  schedule.late_stores = schedule.cache.streaming && may_be_late && of_byte > 1;
  return schedule;
}

}  // namespace cpu

bool may_split_on_cpu(const Kernel& kernel, bool online) {
  const Rounds rounds = rounds_of(kernel, {.online = online});
  return rounds.sweeps.size() == 1 && rounds.sweeps[0].stores.empty() && !rounds.sweeps[0].online &&
         std::any_of(kernel.axes.begin(), kernel.axes.end(), [](const Axis& a) { return a.reduced; });
}

bool may_keep_dear_values(const Kernel& kernel) {
  const std::size_t axes = kernel.axes.size();
  return kernel.axes.back().reduced && (axes == 1 || !kernel.axes[axes - 2].reduced);
}

bool shares_the_only_sweep(const Kernel& kernel) {
  const std::optional<Online> online = find_online(kernel);
  if (!online || !online->guarded || !online->only_shifts || rounds_of(kernel, {.online = true}).sweeps.size() != 1)
    return false;
  const InstrId weight = kernel.instr(online->sum).args[0];
  return (kernel.instr(weight).depends >> (kernel.axes.size() - 1) & 1) != 0;
}

bool stores_may_be_late(const Kernel& kernel, const ReduceSchedule& schedule) {
  const auto reduced = std::count_if(kernel.axes.begin(), kernel.axes.end(), [](const Axis& a) { return a.reduced; });
  if (reduced != 1 || !kernel.axes.back().reduced || kernel.axes.size() < 2) return false;
  if (schedule.team.mapping == RowMapping::column || is_online(schedule)) return false;
  const Rounds rounds = rounds_of(kernel);
  for (const Sweep& sweep : rounds.sweeps)
    if (sweep.stores.empty() == (&sweep == &rounds.sweeps.back())) return false;
  return rounds.sweeps.size() > 1 && rounds.sweeps.back().reduces.empty();
}

}  // namespace tenon::codegen
