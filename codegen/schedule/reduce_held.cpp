// See reduce_held.h.
#include "codegen/schedule/reduce_held.h"

#include <algorithm>

#include "codegen/analysis/narrow.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

constexpr int kMostOfLaneReadOnly = 48;  // of a row that is only read: with no barrier to wait at, 95 us of 125 (f16
                                         // [92112, 1280] on an H100)
// The same of rows of 2 bytes each that are stored (f16 rows of 1280 over their greatest on an H200: 167 us by blocks,
// 122 by warps), and of peeled ones (softmax of f16 rows of 1041: 55 and 41; of f32 44 and 40.5; layer norm of f16 71
// and 52).
constexpr int kMostOfLaneStored = 40;
constexpr int kThreadsOfLongLanes = 64, kManyOfLane = 32;  // of a block of such warps; beyond so many elements
constexpr int kMostOfLaneWide = 16, kOfThreadWide = 10;  // of f64 (softmax of rows of 640 on an H200: 34.8 us by warps,
                                                         // 27.3 by blocks of 64 threads)
// Of a thread, in peeled rows of 2-byte elements beside weights: 40 warps, and 20 where a warp has a long row.
constexpr int kRegistersOfNorms = 51, kRegistersOfLongLanes = 102;

// Threads of a block that hold so many elements each, in whole warps.
int threads_holding(int elements, const RowShape& shape) {
  return static_cast<int>((shape.length / elements + 31) / 32 * 32);
}

// So many rows that multiprocessors have several at once. Of fewer each ends the sooner the more threads it has.
bool are_many(const RowShape& shape, const Target& target) { return shape.rows >= 4 * target.multiprocessors; }

// Rows beside operands that all rows share, which take registers of their own: a thread of a block holds fewer elements
// of the row. What a warp can hold has no barrier to wait at (RMS norm of bf16 rows of 1024 on an H200: 42.8 us by
// blocks, 36.1 by warps; of 1280 gathered ones 54 and 46).
void choose_whole_norm_team(ReduceSchedule& schedule, const Kernel& kernel, const Target& target,
                            const RowShape& shape) {
  constexpr std::int64_t kLeast = 1024, kMost = 4096, kShort = 2048;
  constexpr std::int64_t kMostGathered = 8192;
  const bool many = are_many(shape, target), gathered = many && gathers_rows(kernel);
  if (widest_of(kernel) != 2 || shape.length < kLeast || shape.length > (gathered ? kMostGathered : kMost)) return;
  if (many && shape.length <= 32 * kMostOfLaneStored) return;
  schedule.team.mapping = RowMapping::block;
  // Gathered rows come from the L2, later than a few threads are done with others (layer norm of rows of 4096 of a
  // table on an H200: 217 us by 256 threads, 174 by 128).
  // No more than 128 of them (layer norm of the sums of gathered rows of 6144 and a position's 35 us by 160, 27; of
  // 8192 36 by 224, 28).
  constexpr int kMostThreadsOfGathered = 128;
  if (gathered) {
    schedule.team.threads = std::min(kMostThreadsOfGathered, threads_holding(kMostOfLaneStored, shape));
    return;
  }
  schedule.team.threads = threads_holding(!many && shape.length <= kShort ? 8 : 16, shape);
}

// The same of peeled rows, whose weights come in words that are shifted to the row's alignment: of 2-byte elements so
// many that there are few shifts at the ends of a row, and as many blocks as registers are left for.
void choose_peeled_norm_team(ReduceSchedule& schedule, const Kernel& kernel, const Target& target,
                             const RowShape& shape) {
  constexpr std::int64_t kLeast = 1000, kLeastWords = 700, kMost = 4100, kShort = 2048;
  const std::int64_t widest = widest_of(kernel);
  if ((widest != 2 && widest != 4) || row_streams(kernel).size() != 1 || shape.length > kMost * 4 / widest) return;
  const int threads = threads_holding(widest == 2 ? 32 : shape.length > kShort ? 16 : 12, shape);
  const bool long_lanes = widest == 2 && are_many(shape, target) && shape.length >= kLeast &&
                          shape.length <= 32 * kMostOfLaneStored && schedule.team.mapping == RowMapping::warp;
  if (long_lanes) {
    schedule.team.threads = kThreadsOfLongLanes;
  } else if (shape.length >= (widest == 2 ? kLeast : kLeastWords) && threads > 32) {
    schedule.team.mapping = RowMapping::block;
    schedule.team.threads = threads;
  }
  const int resident =
      std::min(target.threads_per_multiprocessor,
               target.registers_per_multiprocessor / (long_lanes ? kRegistersOfLongLanes : kRegistersOfNorms));
  // What computes more than a norm spills beyond so few registers (softmax of quotients of bf16 [53949, 1388] and two
  // rows).
  if (widest == 2 && slots_of_element(kernel) <= kMostOfNorms)
    schedule.occupancy.least = std::min(target.blocks_per_multiprocessor, resident / schedule.team.threads);
}

void choose_norm_team(ReduceSchedule& schedule, const Kernel& kernel, const Target& target, const RowShape& shape) {
  if (schedule.peeled) return choose_peeled_norm_team(schedule, kernel, target, shape);
  choose_whole_norm_team(schedule, kernel, target, shape);
}

// Whether elements are stored, of 4 bytes or more: fewer leave the L2 to rows that are read.
bool stores_words(const Kernel& kernel) {
  return stores_elements(kernel) && std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
           const auto inner = static_cast<int>(kernel.axes.size()) - 1;
           return store.access.offset.depends_on(inner) && element_bytes(kernel, store.access) >= 4;
         });
}

// Large rows in registers. Of f32, that are stored: 64 KB of rows under way on a multiprocessor are enough, and less
// are not (softmax of f32 rows of 9648 on an H100: 296 us by one block, 213 by two); more push each other out of the L2
// before they are done. So each block asks for shared memory that holds others off, except where that would take the L1
// from operands that all rows share. Not measured where a row is more than one stream. A few rows are never too many:
// as many threads as can have one.
void choose_large_row_team(ReduceSchedule& schedule, const Kernel& kernel, const Target& target,
                           const RowShape& shape) {
  constexpr std::int64_t kLeast = 8192, kMost = 16384, kBytesUnderWay = 64 << 10, kManyRows = 4;
  const std::int64_t widest = widest_of(kernel);
  const std::size_t streams = row_streams(kernel).size();
  if (schedule.team.mapping != RowMapping::block || schedule.peeled || shape.length < kLeast || shape.length > kMost)
    return;
  if (widest == 4 && streams == 1 && row_loads(kernel).size() == streams) {
    const std::int64_t bytes = shape.length * widest;
    if (stores_words(kernel) && shape.least_rows >= kManyRows * target.multiprocessors)
      schedule.occupancy.most = static_cast<int>((kBytesUnderWay + bytes - 1) / bytes);
    return;
  }
  if (are_many(shape, target) || (widest != 2 && (widest != 4 || streams != 1))) return;
  ReduceSchedule wider = schedule;
  wider.team.threads = widest == 2 ? kMostThreadsOfRow : 2 * kMostThreadsOfRow;
  wider.keep = Reread{};
  hold_row(wider, kernel, shape, kMaxHeldElements / 2);
  if (holds_rows(wider)) schedule = wider;
}

}  // namespace

int slots_of_element(const Kernel& kernel) {
  int cost = 0;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::map && (instr.depends >> (kernel.axes.size() - 1) & 1) != 0)
      cost += ir::info(instr.op).cost;
  return cost;
}

bool gathers_rows(const Kernel& kernel) {
  const std::vector<const Instr*> loads = row_loads(kernel);
  return std::any_of(loads.begin(), loads.end(),
                     [](const Instr* load) { return !load->access.offset.values().empty(); });
}

// Of a row beyond a warp's registers (H200, sums of two f32 rows of 1024: layer norm 233 us read twice by warps, 113 by
// blocks of 128, 112 of 256, 113 of 64; RMS norm 179 and 113; softmax 178 and 113; of three bf16 rows 103 and 78).
constexpr int kThreadsOfBlock = 128;

void hold_in_registers(ReduceSchedule& schedule, const Kernel& kernel, const Target& target, const RowShape& shape) {
  if (!shape.known || !rereads(kernel)) return;
  const bool shares = row_loads(kernel).size() > row_streams(kernel).size();
  if (shares) choose_norm_team(schedule, kernel, target, shape);
  const bool two_bytes = widest_of(kernel) == 2, reads = !stores_elements(kernel);
  const bool wide = widest_of(kernel) > 4;  // f64: two registers of each element
  const bool many = are_many(shape, target);
  const int most_of_lane = wide              ? kMostOfLaneWide
                           : reads           ? kMostOfLaneReadOnly
                           : schedule.peeled ? (many ? kMostOfLaneStored : kMaxHeldElements / 2)
                           : two_bytes       ? kMostOfLaneStored
                                             : kMaxHeldElements / 2;
  const std::int64_t in_vectors = shape.length - (schedule.peeled ? shape.length % schedule.vector : 0);
  if (schedule.team.mapping == RowMapping::warp && in_vectors > most_of_lane * schedule.team.lanes) {
    schedule.team.mapping = RowMapping::block;
    schedule.team.threads = wide ? threads_holding(kOfThreadWide, shape) : 128;
    // Of peeled rows each thread has vectors that end early (softmax of f16 rows of 1531: 45.5 us by 128, 40.7 by 64).
    constexpr std::int64_t kShortPeeled = 2000;
    if (schedule.peeled && two_bytes && many && shape.length <= kShortPeeled) schedule.team.threads = 64;
  } else if (schedule.team.mapping == RowMapping::warp && schedule.peeled && !reads &&
             in_vectors > kManyOfLane * schedule.team.lanes) {
    schedule.team.threads = kThreadsOfLongLanes;
  }
  // As few threads as hold a row of 2-byte elements that is only read: more rows are under way, and fewer wait at a
  // barrier (cross entropy of bf16 rows on an H200: of 2560 52 us by 128 threads, 45 by 64; of 8192 60 by 512, 43.5 by
  // 128; of 12288 60 by 512, 46 by 256. Of f32 nothing is gained). So it is of large rows that are stored (softmax of
  // bf16 rows of 12288: 42.7 us by 512, 35.7 by 256).
  constexpr std::int64_t kLargeStored = 8192;
  const bool narrow = two_bytes && !schedule.peeled && many && (reads || shape.length > kLargeStored);
  if (narrow && schedule.team.mapping == RowMapping::block)
    schedule.team.threads = shape.length > kLargeRow ? 512 : reads ? 64 : 256;
  const int few = schedule.team.mapping == RowMapping::warp    ? most_of_lane
                  : narrow || (shares && gathers_rows(kernel)) ? kMaxHeldElements
                                                               : kMaxHeldElements / 2;
  ReduceSchedule in_block = schedule;  // of a row that exceeds a warp's registers (of two operands in f32)
  in_block.team.mapping = RowMapping::block;
  in_block.team.threads = kThreadsOfBlock;
  const std::pair<ReduceSchedule, int> teams[] = {
      {schedule, few}, {schedule, kMaxHeldElements}, {in_block, kMaxHeldElements / 2}};
  for (const auto& [team, most] : teams) {
    ReduceSchedule larger = team;
    for (hold_row(larger, kernel, shape, most);
         !holds_rows(larger) && larger.team.mapping == RowMapping::block && larger.team.threads < kMostThreadsOfRow;
         hold_row(larger, kernel, shape, most))
      larger.team.threads *= 2;
    if (!holds_rows(larger)) continue;
    schedule = larger;
    choose_large_row_team(schedule, kernel, target, shape);
    // 32 warps, which the compiler, left to itself, does not leave room for (layer norm of the sum of bf16 rows of 351
    // on an H200: 143 us, 122 by 32 warps, 120 by 40, which spill on some architectures; rows of 343 around their means
    // 45 and 43).
    constexpr int kFewOfLane = 24, kRegistersOfFew = 64;
    if (schedule.peeled && two_bytes && !reads && many && schedule.team.mapping == RowMapping::warp &&
        held_elements(schedule) <= kFewOfLane && slots_of_element(kernel) <= kMostOfNorms)
      schedule.occupancy.least =
          std::max(schedule.occupancy.least,
                   std::min(target.blocks_per_multiprocessor,
                            target.registers_per_multiprocessor / (kRegistersOfFew * schedule.team.threads)));
    return;
  }
}

bool registers_are_enough(const ReduceSchedule& schedule, const Kernel& kernel) {
  const bool long_computed = find_online(kernel).has_value() && widest_of(kernel) == 2 && !has_narrow_weights(kernel);
  return held_elements(schedule) <= kMaxHeldElements / 2 && widest_of(kernel) <= 4 && !schedule.peeled &&
         !long_computed;
}

}  // namespace tenon::codegen
