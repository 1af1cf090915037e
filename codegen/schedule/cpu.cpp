// The heuristics' choice of the CPU target's numbers: vector widths, grains, cache blocks.
#include <algorithm>
#include <limits>
#include <numeric>

#include "codegen/analysis/dear_values.h"
#include "codegen/analysis/interior.h"
#include "codegen/analysis/product_bounds.h"
#include "codegen/analysis/tile_tests.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

std::int64_t computed_bytes(DType dtype) { return dtype == DType::bool_ ? 1 : size_of(compute_type(dtype)); }

// Lanes of one register of the widest value; 64-bit values take two, so that 32-bit ones beside them fill theirs.
int lanes_for(const Kernel& kernel, const Target& target) {
  std::int64_t widest = 1;
  for (const Instr& instr : kernel.body) widest = std::max(widest, computed_bytes(instr.dtype));
  return static_cast<int>(target.vector_bytes / std::min<std::int64_t>(widest, 4));
}

int cost_of(const Instr& instr) {
  return instr.kind == InstrKind::map ? ir::info(instr.op).cost : instr.kind == InstrKind::random ? kRandomCost : 1;
}

// Roughly how many instructions one vector takes; long bodies fill the pipelines by themselves.
int body_cost(const Kernel& kernel) {
  int cost = 0;
  for (const Instr& instr : kernel.body) cost += cost_of(instr);
  return cost;
}

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

// Bytes that one point reads and writes.
std::int64_t bytes_of_point(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load) bytes += element_bytes(kernel, instr.access);
  for (const Store& store : kernel.stores) bytes += element_bytes(kernel, store.access);
  return bytes;
}

// Whether the kernel moves more than `limit` bytes, for some or for all values of its symbols.
bool may_exceed(const Kernel& kernel, std::int64_t limit, bool some) {
  for (const Operand& operand : kernel.operands) {
    const SymbolBounds count = element_count(operand.shape).bounds(kernel.symbols);
    limit -= std::min((some ? count.max : count.min), std::int64_t{1} << 40) * size_of(operand.dtype);
  }
  return limit < 0;
}

// Whether the rows that are stored one after the other are worth going around the caches. Where two share a line, the
// store of each part waits for memory (two cores of an EPYC with AVX-512: rows
// of 222 bytes 60 ms around the caches and 4.6 through them, of 1020 bytes 10.6 and 4.1, of 4 KB as long, of 8 KB 2.6
// and 2.8; rows of whole lines 2.8 and 4.0).
bool rows_may_stream(const Kernel& kernel, const Target& target) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  return std::none_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
    const std::int64_t most = kernel.axes.empty() ? 0 : kernel.axes.back().extent.bounds(kernel.symbols).max;
    return step_along(store.access.offset, inner, 1, kernel) == 1 && rows_share_lines(kernel, store.access, inner) &&
           most < target.streamed_row_bytes / element_bytes(kernel, store.access);
  });
}

// As many rows of what is read as leave each line that is read of them, and will be next, its place in a core's own
// cache: rows that lie a large power of two apart share few places.
int rows_at_once(const Kernel& kernel, const Access& access, const Target& target) {
  constexpr std::int64_t kWays = 16, kLeast = 32,
                         kMost = 256;  // lines in a place; fewer than kLeast write no two lines
  const std::int64_t way = target.l2_bytes / kWays;
  const auto pitch = access.offset.coefficient(static_cast<int>(kernel.axes.size()) - 1);
  const std::int64_t divisor = pitch ? pitch->bounds(kernel.symbols).divisor * element_bytes(kernel, access) : 1;
  return static_cast<int>(std::clamp(kWays * (way / std::gcd(divisor, way)), kLeast, kMost));
}

// Tiles for loads that lie along another axis than the stores.
void choose_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  constexpr std::int64_t kRowBytes = 2048;
  constexpr int kNarrowest = 8;
  const int axis = transposed_axis(kernel);
  if (axis < 0) return;
  const Transposed transposed = transposed_along(kernel, axis);
  const auto guarded = [&](InstrId load) { return !kernel.instr(load).access.guards.empty(); };
  if (transposed.loads.empty() || std::any_of(transposed.loads.begin(), transposed.loads.end(), guarded)) return;
  const auto longest = [&](const Axis& along) { return along.extent.bounds(kernel.symbols).max; };
  if (std::min(longest(kernel.axes[static_cast<std::size_t>(axis)]), longest(kernel.axes.back())) < kNarrowest) return;
  std::int64_t narrowest = 8, widest = 1;
  int columns = std::numeric_limits<int>::max();
  for (const Instr& instr : kernel.body) widest = std::max(widest, computed_bytes(instr.dtype));
  for (const InstrId load : transposed.loads) {
    narrowest = std::min(narrowest, element_bytes(kernel, kernel.instr(load).access));
    columns = std::min(columns, rows_at_once(kernel, kernel.instr(load).access, target));
  }
  schedule.vector = static_cast<int>(std::min<std::int64_t>(16, target.vector_bytes / widest));  // a register each
  schedule.tile = MapTile{axis, static_cast<int>(kRowBytes / narrowest), columns};
}

// Where a core computes a vector in less time than memory takes for it, one after the other is best: each vector's load
// is then far ahead of what is computed. Elsewhere expressions that wait for their own results should take turns.
constexpr double kCostOfByte = 2.5;    // issue slots in the time of a byte, with all cores at work
constexpr int kMostCostInTurns = 128;  // beyond, four vectors' values do not fit the registers

// Whether rows are cut where their guards change: most points lie inside, and inside a row several turns do. What lies
// before and behind takes a masked vector each.
bool cuts_interior(const Kernel& kernel, const MapSchedule& schedule) {
  constexpr std::int64_t kVectors = 4;
  constexpr double kLeastInside = 0.5;
  if (schedule.tile || kernel.axes.empty()) return false;
  const Interior interior = interior_of(kernel);
  if (interior.empty() || share_inside(interior, kernel) < kLeastInside) return false;
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const AxisRange* range = range_along(interior, inner);
  const std::int64_t outside = range == nullptr ? 0 : *points_outside(*range, kernel);
  return kernel.axes.back().extent.bounds(kernel.symbols).max - outside >= kVectors * schedule.vector;
}

// With symbolic sizes the kernel decides when it runs; what is not streamed is then masked, which costs nothing only on
// AVX-512.
MapSchedule choose_map(const Kernel& kernel, const Target& target) {
  MapSchedule schedule;
  schedule.vector = lanes_for(kernel, target);
  const int cost = body_cost(kernel);
  schedule.interleave = cost > kCostOfByte * bytes_of_point(kernel);
  const int taking_turns = target.vector_bytes == 64 && cost <= kMostCostInTurns ? 4 : 2;  // as registers allow
  schedule.unroll = schedule.interleave ? taking_turns : cost <= 8 ? 4 : cost <= 24 ? 2 : 1;
  schedule.grain = cost <= 64 ? 32768 : 8192;
  choose_tile(schedule, kernel, target);
  schedule.cache.streaming = may_exceed(kernel, target.l3_bytes, target.vector_bytes == 64) &&
                             (schedule.tile || rows_may_stream(kernel, target));
  schedule.interior = cuts_interior(kernel, schedule);
  return schedule;
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
  const bool whole =
      power_of_two_divisor(kernel.axes.back().extent, schedule.vector, kernel.symbols) == schedule.vector;
  schedule.cache.streaming = !columns && may_exceed(kernel, target.l3_bytes, target.vector_bytes == 64) &&
                             (rows_may_stream(kernel, target) || (may_be_late && whole && of_byte > kCostOfByte));
  schedule.late_stores = schedule.cache.streaming && may_be_late && of_byte > 1;
  return schedule;
}

ContractSchedule choose_contract(const Kernel& kernel, const Target& target) {
  ContractSchedule schedule;
  schedule.loop = MainLoop::cpu;
  schedule.micro_m = target.vector_bytes == 64 ? 8 : 6;
  schedule.tile_m = target.vector_bytes == 64 ? 192 : 96;
  schedule.tile_n = 256;
  schedule.tile_k = 256;
  schedule.bounded = target.may.product_bounds && !product_bounds(kernel, contract_parts(kernel)).empty();
  return schedule;
}

AttendSchedule choose_attend(const Kernel& kernel, const Target& target) {
  AttendSchedule schedule;
  schedule.loop = MainLoop::cpu;
  schedule.tile_q = 2 * (target.vector_bytes / 4);
  schedule.tile_kv = 64;
  schedule.block_mask = target.may.block_mask && !tile_tests(kernel, key_masks(kernel)).empty();
  return schedule;
}

}  // namespace

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

Schedule choose_cpu_schedule(const Kernel& kernel, const Target& target) {
  switch (kernel.kernel_class) {
    case ir::KernelClass::map: return choose_map(kernel, target);
    case ir::KernelClass::reduce: return choose_reduce(kernel, target);
    case ir::KernelClass::contract: return choose_contract(kernel, target);
    case ir::KernelClass::attend: return choose_attend(kernel, target);
  }
  return MapSchedule{};
}

}  // namespace tenon::codegen
