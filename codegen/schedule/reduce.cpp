// Heuristics for Reduce kernels whose rows lie along memory: who shares a row, by its length, and how it is
// read. What holds rows is in reduce_held.cpp and reduce_long_rows.cpp; rows across memory are in reduce_columns.cpp.
#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/analysis/held.h"
#include "codegen/analysis/narrow.h"
#include "codegen/analysis/peel.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/shared_rows.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/reduce_held.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kThreadRow = 4;      // up to it a thread has a row for itself, as it has one of two vectors
constexpr std::int64_t kBlockRow = 3072;    // beyond it a row is shared by a block
constexpr std::int64_t kWarpsOfBytes = 16;  // of a multiprocessor, that rows of bytes are theirs
constexpr int kBytesInFlight = 128;  // per thread: 64 KB and more on an SM, twice what its share of latency needs
constexpr int kRegisterBytes = 4;    // what an element alone takes, however narrow
constexpr int kMostUnrolled = 16;
constexpr std::int64_t kShortestPeeled = 256;
constexpr std::int64_t kShortestPeeledBytes = 1024;  // where vectors of eight divide the rows
constexpr int kThreadsOfWindows = 256;               // of a block whose threads have short rows alone
constexpr std::int64_t kLargestRow = 32768;          // beyond it by one of all threads, where it is read again
constexpr int kMostThreadsRereading = 1024;
constexpr int kThreadsStreaming = 256;     // of a block whose rows pass the caches by, or twice as many
constexpr int kThreadsPeeled = 256;        // of a block that walks a peeled row once
constexpr int kTurnsOfPart = 2;            // of unrolled steps that a part of a row has at least
constexpr int kLeastShared = 384 << 10;    // bytes of a row for which a second function pays that was one block's: 7 us
constexpr int kMostStreamedPercent = 640;  // of the L2: 320 MB of an H100, where it was measured

// 16 bytes of the widest row operand, as far as the innermost extent and one of the loads allow; peeled off rows of
// another length where every operand lies along them.
void choose_vector(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const int most = static_cast<int>(16 / widest_of(kernel));
  const int vector = power_of_two_divisor(kernel.axes.back().extent, most, kernel.symbols);
  for (const Instr* load : row_loads(kernel))
    if (vector_width(load->access, inner, vector, kernel) > 1) schedule.vector = vector;
  if (schedule.vector == most || shape.length < kShortestPeeled || peel_reference(kernel) == nullptr) return;
  // Short rows of bytes rather in whole vectors of eight: a peeled one takes a warp, of which each lane has little.
  if (widest_of(kernel) == 1 && 2 * schedule.vector == most && shape.length < kShortestPeeledBytes) return;
  schedule.vector = most;
  schedule.peeled = true;
}

// Vectors of a thread in the longest row. A peeled one has elements beside them.
std::int64_t turns_of(const ReduceSchedule& schedule, const RowShape& shape) {
  const std::int64_t team = team_size(schedule);
  const std::int64_t vectors = (shape.length + (schedule.peeled ? 0 : schedule.vector - 1)) / schedule.vector;
  return (vectors + team - 1) / team;
}

// Short rows: as few lanes of a warp as leave each little to hold, and blocks of as many rows as take longer to move
// than to launch (1.2 ns a block on an H100), where that leaves blocks enough for every multiprocessor.
void choose_lanes(ReduceSchedule& schedule, const Kernel& kernel, const Target& target, const RowShape& shape) {
  constexpr std::int64_t kElements = 16, kElementsAcross = 24, kElementsReadOnly = 48, kVectors = 8, kSingles = 24,
                         kSinglesStored = 12, kBytesOfBlock = 6 << 10, kBytesReadOnly = 12 << 10, kBlocks = 4;
  const std::int64_t vectors = std::max<std::int64_t>(1, shape.length / schedule.vector);
  // Of a row whose elements are stored across it a lane has more, so that a warp stores pieces of more rows. So it has
  // of one that is only reduced, several times: lanes then meet less (softmax's greatest share, bf16 [791733, 384] on
  // an H100: 472 us of whole warps, 268 of 8 lanes).
  const bool held = rereads(kernel) && !stores_elements(kernel);
  const std::int64_t elements = stores_across(kernel) ? kElementsAcross : held ? kElementsReadOnly : kElements;
  // Vectors of a lane; of rows that only single elements divide it has more (cross entropy of bf16 rows of 187 on an
  // H100: 189 us of 32 lanes, 139 of 8).
  const std::int64_t most = schedule.vector > 1 ? kVectors : held ? kSingles : kSinglesStored;
  std::int64_t each = std::clamp<std::int64_t>(elements / schedule.vector, 1, most);
  if (rereads(kernel))
    each = std::clamp<std::int64_t>(kMaxHeldBytes / std::max<std::int64_t>(1, schedule.vector * held_bytes(kernel)), 1,
                                    each);
  // f64 takes two registers, for what is computed as well (layer norm of rows of 62 on an H200: 71.7 us with 16
  // elements of a lane, 59.3 with 8).
  constexpr std::int64_t kWideElements = 8;
  if (widest_of(kernel) > 4) each = std::min(each, std::max<std::int64_t>(1, kWideElements / schedule.vector));
  // Of narrow vectors, and of bytes, 32 to 64 bytes (H100, read once: least of i8 [1238256, 88] 69 us of 8 lanes, 45 of
  // 4; sums of bf16 rows of 215 86 of 32, 67 of 16; of f32 rows of 26 45 of 2, 41 of 4).
  constexpr std::int64_t kBytesOfLane = 32, kVectorsOfBytes = 4, kWideVector = 16;
  const std::int64_t vector_bytes = schedule.vector * widest_of(kernel);
  const bool once = !rereads(kernel) && !stores_elements(kernel) && !finds_index(kernel) && shape.known;
  // Lanes that find an index meet twice (argmax on an H200 of u8 rows of 512: 85 us of 32 lanes, 61 of 8; of bf16 rows
  // of 512 35 of 32, 31 of 16; of f32 rows nothing is gained).
  if (finds_index(kernel) && widest_of(kernel) <= 2 && vector_bytes >= kWideVector)
    each = std::max(each, kVectorsOfBytes);
  if (once)
    each = vector_bytes < kWideVector ? kBytesOfLane / vector_bytes : widest_of(kernel) == 1 ? kVectorsOfBytes : each;
  const auto enough = [&](int threads, int lanes) {
    return shape.rows / (threads / lanes) >= kBlocks * target.multiprocessors;
  };
  // A thread for each element at the ends of a peeled row. The lanes of a row that is stored take pieces of 64 bytes:
  // of less, an access of a warp has too many (f32 [98304, 38, 38] over its sum on an H100: 573 us of 4 lanes with
  // vectors of 2, 399 of 8; f64 [1793507, 32] over its greatest 248 of 2, 195 of 4).
  constexpr std::int64_t kPiece = 64;
  int least = schedule.peeled ? 2 * schedule.vector : 2;
  const bool pieces = stores_elements(kernel) && !stores_across(kernel) && schedule.vector > 1;
  while (pieces && least * vector_bytes < kPiece) least *= 2;
  // Windows, whose elements lie apart, are as many accesses to one thread as to several (greatest of bf16 windows of
  // 3 x 3 on an H100: 355 us of 2 lanes, 270 of one; means of f16 windows of 5 x 5: 134 and 115).
  if (once && schedule.vector == 1 && shape.length <= 2 * each && schedule.team.mapping == RowMapping::warp) {
    schedule.team.mapping = RowMapping::thread;
    schedule.team.threads = kThreadsOfWindows;
    return;
  }
  const auto fewer = [&] { return std::max(least, schedule.team.lanes / 2); };
  if (schedule.team.mapping == RowMapping::warp)
    while (fewer() < schedule.team.lanes &&
           (fewer() >= vectors || (fewer() * each >= vectors && enough(schedule.team.threads, fewer()))))
      schedule.team.lanes /= 2;
  // Half as many where that leaves fewer lanes without a vector at the end of a row (H200, bf16: softmax of rows of
  // 328, 41 vectors, 41.0 us of 32 lanes, 37.6 of 16; layer norm of rows of 320, 40 vectors, 333 of 16, 279 of 8).
  constexpr double kMostIdle = 1.15, kGained = 0.15;
  constexpr std::int64_t kVectorsOfHalf = 5;
  const auto covered = [&](std::int64_t of) {
    return static_cast<double>((vectors + of - 1) / of * of) / static_cast<double>(vectors);
  };
  const bool stored_pieces = pieces && vector_bytes == kWideVector;
  const bool read_pieces = !stores_elements(kernel) && schedule.vector > 1 && vector_bytes == kWideVector;
  const auto gains = [&](std::int64_t half) {
    return half >= least && half * vector_bytes >= kPiece && vectors <= kVectorsOfHalf * half &&
           covered(2 * half) > kMostIdle && covered(half) < covered(2 * half) - kGained &&
           enough(schedule.team.threads, static_cast<int>(half));
  };
  if (schedule.team.mapping == RowMapping::warp && (stored_pieces || read_pieces))
    while (gains(schedule.team.lanes / 2)) schedule.team.lanes /= 2;
  const int lanes = team_size(schedule);
  const std::int64_t row_bytes = shape.length * stream_bytes(kernel) * (stores_elements(kernel) ? 2 : 1);
  const std::int64_t least_bytes = stores_elements(kernel) || lanes < 32 ? kBytesOfBlock : kBytesReadOnly;
  while (schedule.team.threads < kMostThreadsOfRow && schedule.team.threads / lanes * row_bytes < least_bytes &&
         enough(2 * schedule.team.threads, lanes))
    schedule.team.threads *= 2;
}

// Rows of bytes that are read once: a warp has them in flight as a block has rows of larger elements, and no barrier to
// wait at. Measured on an H200 with 8-bit and 4-bit weights of a product with a vector: 22 us instead of 36, 29 of 48.
bool reads_bytes_once(const Kernel& kernel) {
  const std::vector<const Instr*> streams = row_streams(kernel);
  return !rereads(kernel) && !streams.empty() && std::all_of(streams.begin(), streams.end(), [&](const Instr* load) {
    return element_bytes(kernel, load->access) == 1;
  });
}

void choose_team(ReduceSchedule& schedule, const Kernel& kernel, const Target& target, const RowShape& shape) {
  const std::int64_t vectors = std::max<std::int64_t>(1, shape.length / schedule.vector);
  schedule.team.threads = 128;
  const bool rows_enough = shape.least_rows >= kWarpsOfBytes * target.multiprocessors;
  if (shape.length > (rows_enough && reads_bytes_once(kernel) ? 2 : 1) * kBlockRow) {
    schedule.team.mapping = RowMapping::block;
    schedule.team.threads = shape.length > kLargeRow ? 512 : shape.length > 2 * kBlockRow ? 256 : 128;
    return;
  }
  schedule.team.mapping = vectors <= 2 || shape.length <= kThreadRow ? RowMapping::thread : RowMapping::warp;
  // Two whole vectors of a row that is stored lie side by side in two lanes (softmax of f32 rows of 8 on an H200: 37.9
  // us by threads, 35.2; with two streams 74 and 56).
  // So it is of what computes more (RMS norm of f16 rows of 16, then swiglu: 28.6 and 22.8).
  constexpr std::int64_t kWideVector = 16;
  constexpr int kMostOfPairs = 48;
  if (vectors == 2 && schedule.vector * widest_of(kernel) == kWideVector && stores_elements(kernel) &&
      !stores_across(kernel) && slots_of_element(kernel) <= kMostOfPairs) {
    schedule.team.mapping = RowMapping::warp;
    schedule.team.lanes = 2;
    schedule.team.threads = 256;
    return;
  }
  choose_lanes(schedule, kernel, target, shape);
}

SymbolBounds bytes_of_streams(const Kernel& kernel) {
  Dim elements(stream_bytes(kernel));
  for (const Axis& axis : kernel.axes) elements = elements * axis.extent;
  return elements.bounds(kernel.symbols);
}

// Beyond it reads are kept: softmax of 32 MB gains 5 % by it where the L2 has 60 MB (an H200) as where it has 50.
constexpr int kKeptPercent = 53;

bool exceeds_caches(const Kernel& kernel, const Target& target) {
  return bytes_of_streams(kernel).min >= percent_of_l2(target, kKeptPercent);
}

// The row of one large block rather than of two is still in the L2 when it is read again. Where it is not, peeled rows
// want small blocks: there is more at each row's ends to wait for.
void choose_online_threads(ReduceSchedule& schedule, const RowShape& shape, bool again, bool wide) {
  if (again && !schedule.peeled && !wide && shape.length > kLargestRow) schedule.team.threads = kMostThreadsRereading;
  if (!again && schedule.peeled) schedule.team.threads = std::min(schedule.team.threads, kThreadsPeeled);
}

// The parts of rows that are few more than the multiprocessors, or than twice as many: else some have a row more than
// the others, which wait for them (argmax of 152 rows of 5 MB on an H100: half of its time). 1 where all have alike, or
// a second function takes as long as that.
int parts_for_balance(const Kernel& kernel, const Target& target, const RowShape& shape, std::int64_t least_of_part) {
  constexpr std::int64_t kTurns = 4, kMostPercent = 80, kLeastBytes = 64 << 20;
  const std::int64_t processors = target.multiprocessors, turns = (shape.rows + processors - 1) / processors;
  if (shape.rows <= processors || 100 * shape.rows > kMostPercent * turns * processors ||
      shape.rows * shape.length < kLeastBytes / stream_bytes(kernel))
    return 1;
  const std::int64_t parts = (kTurns * processors + shape.rows - 1) / shape.rows;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(parts, shape.length / least_of_part)));
}

// Bytes of registers for an element: of a whole vector of bytes each is taken out of its word (sums and greatest of
// 8-bit elements on an H100: 35 us of 51, 55 of 73, with half as many under way).
std::int64_t registers_of(std::int64_t bytes, int vector) { return bytes == 1 && vector == 16 ? 2 : bytes; }

}  // namespace

int choose_unroll(const Kernel& kernel, int vector, std::int64_t steps) {
  std::int64_t in_flight = 0;
  for (const Instr* load : row_streams(kernel))
    in_flight +=
        std::max<std::int64_t>(kRegisterBytes, vector * registers_of(element_bytes(kernel, load->access), vector));
  const std::int64_t wanted = kBytesInFlight / std::max<std::int64_t>(kRegisterBytes, in_flight);
  int unroll = 1;
  while (unroll < kMostUnrolled && 2 * unroll <= std::min(wanted, steps)) unroll *= 2;
  return unroll;
}

int choose_splits(const Target& target, const RowShape& shape, int rows_of_block, std::int64_t elements_of_part,
                  int threads) {
  if (shape.rows <= 0) return 1;
  const std::int64_t blocks = (shape.rows + rows_of_block - 1) / rows_of_block;
  constexpr int kShare = 2;  // of the threads that a multiprocessor holds, half
  const std::int64_t resident =
      std::int64_t{target.multiprocessors} * std::max(1, target.threads_per_multiprocessor / kShare / threads);
  return static_cast<int>(std::max<std::int64_t>(1, std::min(resident / blocks, shape.length / elements_of_part)));
}

RowMapping finishing_team(const Kernel& kernel) {
  std::int64_t rows = 1;
  for (const Axis& axis : kernel.axes)
    if (!axis.reduced) rows = std::min<std::int64_t>(rows * axis.extent.bounds(kernel.symbols).max, 1 << 20);
  return rows >= 4096 ? RowMapping::thread : rows >= 64 ? RowMapping::warp : RowMapping::block;
}

int blocks_with_registers(const Kernel& kernel, const Target& target, const ReduceSchedule& schedule) {
  if (const PersistentBlocks* persistent = persistent_blocks(schedule)) {
    constexpr int kLeastRegisters = 64;  // of a thread, which all blocks at once must leave
    const int blocks = (persistent->blocks + target.multiprocessors - 1) / target.multiprocessors;
    return blocks * schedule.team.threads <= target.registers_per_multiprocessor / kLeastRegisters ? blocks : 0;
  }
  if (shared_elements(schedule) > 0) return resident_blocks(kernel, schedule, target);
  // The compiler rather keeps one load of peeled rows under way than it takes a register beyond the 32nd. Two large
  // blocks hold what 64 registers have room for (softmax of f32 [3016, 9725] and a row on an H100: 153 us by one, 111).
  // Warps with rows of 2-byte elements that are only read as well (cross entropy of bf16 rows of 1527 on an H200: 118
  // us, 89).
  constexpr int kLargeBlock = 512, kThreadsOfWarps = 1024;
  if (!schedule.peeled) return 0;
  if (!holds_rows(schedule)) return 1;
  const bool warps = schedule.team.mapping == RowMapping::warp && widest_of(kernel) == 2 && !stores_elements(kernel) &&
                     row_loads(kernel).size() == 1;
  return warps ? kThreadsOfWarps / schedule.team.threads : schedule.team.threads == kLargeBlock ? 2 : 1;
}

bool one_sweep(const Kernel& kernel, const SharedSweeps& shared) {
  return rounds_of(kernel, shared).sweeps.size() == 1;
}

bool is_many_singles(const Kernel& kernel, const ReduceSchedule& schedule) {
  constexpr int kMany = 16;
  if (schedule.vector > 1 || unroll_of(schedule) < kMany || schedule.peeled || is_online(schedule)) return false;
  const bool by_places = std::any_of(kernel.body.begin(), kernel.body.end(),
                                     [](const Instr& instr) { return instr.kind == InstrKind::index; });
  const auto reduced =
      std::count_if(kernel.axes.begin(), kernel.axes.end(), [](const Axis& axis) { return axis.reduced; });
  return !by_places && !finds_index(kernel) && (has_moments(schedule) || reduced > 1);
}

bool keeps_dear_tile(const Kernel& kernel, const SharedSweeps& shared) {
  const Rounds rounds = rounds_of(kernel, shared);
  return !rounds.sweeps.empty() && !kept_in_tile(kernel, rounds.sweeps[0], kDearInLoop).empty();
}

bool streams_past(const Kernel& kernel, const Target& target, bool one_read, int most_percent) {
  if (stores_elements(kernel) || !one_read) return false;
  return exceeds_caches(kernel, target) && bytes_of_streams(kernel).max <= percent_of_l2(target, most_percent);
}

ReduceSchedule rereading(const Kernel& kernel, const Target& target) {
  ReduceSchedule schedule;
  const RowShape shape = shape_of(kernel);
  choose_vector(schedule, kernel, shape);
  choose_team(schedule, kernel, target, shape);
  // Few rows, of which each has a multiprocessor alone, end the sooner the more threads it has (means of 30 f32 rows of
  // 5440 on an H200: 9.0 us by 128, 6.3 by 256).
  if (schedule.team.mapping == RowMapping::block && shape.known && 2 * shape.rows <= target.multiprocessors)
    schedule.team.threads = std::min(kMostThreadsOfRow, 2 * schedule.team.threads);
  const bool online = target.may.online && find_online(kernel).has_value();
  const bool wide = widest_of(kernel) > 4;  // f64, which takes twice the registers
  if (online) choose_online_threads(schedule, shape, rounds_of(kernel, {.online = true}).sweeps.size() > 1, wide);
  // More is computed of each element, or of vectors that may end early, than registers are left for.
  const bool half = online || (schedule.peeled && rounds_of(kernel).sweeps.size() > 1);
  const int width = schedule.vector * (half ? 2 : 1) * (online && wide ? 2 : 1);
  // Of peeled rows the operands that all rows share take as many registers, for their vectors are shifted.
  const auto operands =
      static_cast<int>(row_loads(kernel).size() / std::max<std::size_t>(1, row_streams(kernel).size()));
  const int peeled_width = width * std::max(1, operands);
  int unroll = choose_unroll(kernel, schedule.peeled ? peeled_width : width, turns_of(schedule, shape));
  // Long chains of functions of vectors that may end early take registers of their own (H100: bf16 rows of 50257, 165
  // us with two vectors under way, 114 with one; f16 of 524289, 93 with eight, 72 with four). Of others, eight do
  // (H200: mean of tanh of f32 [1200, 60928] 107 us, 89 with four).
  constexpr int kLongComputed = 15, kMany = 8;
  const Rounds rounds = rounds_of(kernel);  // none where what is reduced is of no use
  const bool long_computed = (schedule.peeled || unroll >= kMany) && !rounds.sweeps.empty() &&
                             element_cost(kernel, rounds.sweeps[0]) > kLongComputed;
  if (long_computed) unroll = std::max(1, unroll / 2);
  const bool of_block = schedule.team.mapping == RowMapping::block;
  const bool has_mean = target.may.moments && of_block && find_moments(kernel).has_value();
  const bool dear = has_mean && keeps_dear_tile(kernel, {.moments = true});
  if (dear) schedule.team.threads = std::min(schedule.team.threads, kThreadsOfDear);
  const std::int64_t step = std::int64_t{team_size(schedule)} * schedule.vector;
  // Few rows are cut in parts, which takes a single sweep, so that they are worth the registers of a tile (mean and
  // variance of 1758102 sums of f16 products on an H100: 378 us in one block).
  if (has_mean && shape.rows < target.multiprocessors && 2 * step <= shape.length) unroll = std::max(unroll, 2);
  const bool moments = has_mean && unroll > 1;
  const SharedSweeps shared{.online = online, .moments = moments};
  const bool worth = !(online || moments) || shape.length * stream_bytes(kernel) >= kLeastShared;
  if (of_block && worth && one_sweep(kernel, shared)) {
    const auto parts = [&](int turns) {
      return choose_splits(target, shape, 1, turns * step * unroll, dear ? kCountOfDear : schedule.team.threads);
    };
    int splits = parts(online || moments ? 1 : kTurnsOfPart);
    if (splits == 1) splits = parts_for_balance(kernel, target, shape, kTurnsOfPart * step * unroll);
    // What is cut at all is cut for all multiprocessors, if need be in parts of two steps of the loop.
    if (splits > 1 && shape.rows * splits < target.multiprocessors) {
      while (unroll > 2 && shape.rows * parts(1) < target.multiprocessors) unroll /= 2;
      splits = parts(1);
    }
    schedule.cut = in_parts(splits, finishing_team(kernel));
    // Of narrow elements of which much is computed large blocks have fewer under way each (log cosh of the difference
    // of bf16 [33554432] on an H200: 58 us by 512, 52 by 1024; mish of softplus of [37336240] 71 and 65).
    const bool dear_narrow = widest_of(kernel) == 2 && schedule.vector > 1 && !online && !moments &&
                             !finds_index(kernel) && !rounds.sweeps.empty() &&
                             element_cost(kernel, rounds.sweeps[0]) > kLongComputed;
    const bool peels_one = schedule.peeled && row_streams(kernel).size() == 1;  // erf of bf16 rows: 129 us and 137
    if (splits > 1 && dear_narrow && !peels_one && schedule.team.threads == kMostThreadsOfRow) {
      schedule.team.threads = 2 * kMostThreadsOfRow;
      unroll = std::max(1, unroll / 2);
    }
  }
  schedule.cache.streaming_loads =
      schedule.vector > 1 && streams_past(kernel, target, one_sweep(kernel, shared), kMostStreamedPercent);
  if (schedule.cache.streaming_loads && schedule.team.mapping == RowMapping::block &&
      std::holds_alternative<WholeRows>(schedule.cut)) {
    // A thread has two vectors: with one, a block waits for its sum as long as for its row (a product with a vector,
    // 14336 x 4096 in bf16 on an H200: 32.3 us, 37.5 with one). Of peeled rows it has more than one (sums of bf16 rows
    // of 4095: 36.6 us, 41.4 with one), and the compiler's own loop.
    const int least = schedule.peeled ? 3 : 4;
    // Not for an index: of its threads' candidates a large block finds the best in more instructions than the elements
    // took.
    // Nor of peeled rows of 2-byte elements that are several operands', or of which much is computed (products of f16
    // rows of 6185 on an H200: 29 us by 512 threads, 21 by 256; erf of bf16 rows of 7209: 147 and 127).
    const bool busy =
        schedule.peeled && widest_of(kernel) == 2 && (online || long_computed || row_streams(kernel).size() > 1);
    // Nor beside an operand that all rows share, whose vectors are shifted (below).
    const bool shifts = schedule.peeled && operands > 1;
    const bool many =
        shape.length > (least * kThreadsStreaming - 1) * schedule.vector && !finds_index(kernel) && !busy && !shifts;
    schedule.team.threads = many ? 2 * kThreadsStreaming : kThreadsStreaming;
    // The bounds of peeled rows are not known, so that the compiler unrolls nothing: all turns in one, where it can be.
    unroll = schedule.peeled ? choose_unroll(kernel, peeled_width, 2 * turns_of(schedule, shape) - 1)
                             : std::min(unroll, many ? 1 : 2);
    // Each shifted vector is two, so that few fit beside each other: rows of 14623 of a bf16 matrix times a vector on
    // an H200 take 74.8 us by 512 threads with four under way, 37.7 by 256 with two; f16 rows of 6185 25.2 so, 23.0
    // with one. Short rows have blocks of 128 (bf16 rows of 3457: 53.4 us by 256, 46.4).
    constexpr int kTurnsOfTwo = 5, kTurnsOfFew = 2;
    if (shifts) {
      unroll = std::min(unroll, turns_of(schedule, shape) >= kTurnsOfTwo ? 2 : 1);
      if (schedule.team.mapping == RowMapping::block && turns_of(schedule, shape) <= kTurnsOfFew)
        schedule.team.threads = kThreadsStreaming / 2;
    }
    if (long_computed) unroll = std::max(1, unroll / 2);
    // Words of 4 bytes of a peeled row, of which the greatest so far is kept (cross entropy of f32 rows of 50257 on an
    // H200: 48.7 us with four vectors under way, 46.7 with two).
    if (schedule.peeled && online && widest_of(kernel) == 4) unroll = std::min(unroll, 2);
  }
  schedule.keep = Reread{online, unroll, moments && unroll > 1};
  if (dear && moments) schedule.occupancy.least = std::max(1, kResidentOfDear / schedule.team.threads);
  if (is_many_singles(kernel, schedule))
    schedule.occupancy.least = std::max(1, kResidentOfSingles / schedule.team.threads);
  return schedule;
}

ReduceSchedule choose_rows_apart(const Kernel& kernel, const Target& target) {
  ReduceSchedule schedule;
  const RowShape shape = shape_of(kernel);
  choose_vector(schedule, kernel, shape);
  choose_team(schedule, kernel, target, shape);
  if (target.may.hold_rows) hold_in_registers(schedule, kernel, target, shape);
  if (!holds_rows(schedule)) schedule = rereading(kernel, target);
  if (holds_rows(schedule) && (schedule.team.threads < kMostThreadsOfRow || registers_are_enough(schedule, kernel)))
    return schedule;
  const auto once = read_once(kernel, target, schedule);
  // Operands that all rows share are shifted to each peeled row anew, for which small teams of the grid have too few
  // threads (softmax behind a mask of bf16 [396, 50257] on an H200: 66 us by them, 45 read twice; beside two vectors of
  // columns, [859, 57089] 293 and 163).
  constexpr int kSmallTeam = 4;  // blocks; of f16 [77, 801777] 24 take 207 us, 328 read twice
  const bool shifts =
      schedule.peeled && widest_of(kernel) == 2 && row_loads(kernel).size() > row_streams(kernel).size();
  if (once && once->team.grid > 1 && once->team.grid <= kSmallTeam && is_online(schedule) && shifts) return schedule;
  return once.value_or(schedule);
}

namespace {

// Whether a schedule may keep what it reads, and gains by it: blocks that walk over rows lose (gradient of an f64 norm,
// rows of 4506, on an H200: 345 us, 225 without).
bool keeps_reads(const Kernel& kernel, const ReduceSchedule& schedule) {
  const PersistentBlocks* walking = persistent_blocks(schedule);
  return may_keep_reads(kernel, schedule) && (walking == nullptr || walking->bulk);
}

ReduceSchedule choose_by_shape(const Kernel& kernel, const Target& target) {
  if (has_outer(kernel)) return choose_outer_schedule(kernel, target);
  if (column_wise(kernel, shape_of(kernel).kept)) return choose_column_schedule(kernel, target);
  if (const auto staged = choose_staged(kernel, target)) return *staged;
  return choose_rows_apart(kernel, target);
}

}  // namespace

ReduceSchedule choose_reduce_schedule(const Kernel& kernel, const Target& target) {
  ReduceSchedule schedule = choose_by_shape(kernel, target);
  const bool beyond_caches = exceeds_caches(kernel, target);
  schedule.cache.keep_reads = keeps_reads(kernel, schedule) && beyond_caches;
  // Some rows are written at a third of the speed otherwise (bf16 [16640, 3136] on an H100: 210 us, 74 so; f16 [1280,
  // 175616] by teams of the grid: 786 and 329). Only blocks whose rows share operands are slower by it (layer norm of
  // [10080, 8192] in f32: 0.78).
  const bool share =
      schedule.team.mapping == RowMapping::block && row_loads(kernel).size() > row_streams(kernel).size();
  if (stores_elements(kernel) && beyond_caches && !schedule.staged && persistent_blocks(schedule) == nullptr &&
      (!share || gathers_rows(kernel)))
    schedule.cache.streaming = true;
  if (std::holds_alternative<InRegisters>(schedule.keep) && schedule.vector > 1 &&
      persistent_blocks(schedule) == nullptr && !schedule.staged)
    schedule.cache.streaming_loads = streams_past(kernel, target, true, kMostStreamedPercent);
  return schedule;
}

}  // namespace tenon::codegen
