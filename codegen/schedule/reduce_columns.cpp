// Heuristics for Reduce kernels whose rows lie across memory: neighbouring threads have neighbouring rows, the columns,
// and the others of a block share each.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "codegen/analysis/draws.h"
#include "codegen/analysis/gathers_ahead.h"
#include "codegen/analysis/peel.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/reduce_held.h"

namespace tenon::codegen {
namespace {

constexpr int kMostUnrolled = 4;       // where later sweeps compute more than sums
constexpr int kMostAccumulators = 32;  // per thread
// Single elements of tall columns: with more of each thread the rows that are read at once lie further apart (sums of
// [128, 4096, 1023] in f32 on an H100: 926 us with 16 of 256 threads, 749 with 4 of 1024).
constexpr std::int64_t kTallColumn = 1024;
constexpr std::int64_t kTallBytes = 16;
constexpr std::int64_t kShortColumn = 64;
// Of vectors whose means and squares share a sweep, or that find an index: a thread takes so many registers that larger
// blocks leave a multiprocessor half empty (bf16 [524288, 48] on an H100: 47 us with 256 threads, 30 with 128; argmax
// and max of bf16 [120, 418648]: 61 and 48).
constexpr int kThreadsOfMany = 128;
constexpr int kResidentOfMany = 256;  // each counts for so many: four blocks of 128 run on a multiprocessor at once
// Elements of a tile that a thread goes over twice; with 64 few threads run (cross entropy of bf16 [116377, 572] down
// its columns on an H100: 103 us, 72; of f16 [41, 4096, 1024] 189 and 142).
constexpr int kMostOfTile = 32, kMostOfTileReread = 64;
// The same where a tile keeps what is dear (logsumexp of mish down f32 [332672, 128] on an H200: 93 us, 74 of 16).
constexpr int kMostOfTileKept = 16;
constexpr int kCheapOfTile = 6;             // issue slots of an element that is computed for both passes over a tile
constexpr std::int64_t kLongColumn = 2048;  // of which more threads have more under way
constexpr int kMostStreamedPercent = 384;   // of the L2: 192 MB of an H100, where it was measured

// Whether a mean and the squares around it are summed in one sweep down the columns. Each thread reads its first
// element ahead of the others, which does not pay in short ones.
bool columns_share_moments(const Kernel& kernel, const Target& target, const RowShape& shape) {
  return target.may.moments && shape.length >= kShortColumn && find_moments(kernel).has_value();
}

// The same of a maximum and the exponentials that it shifts.
bool columns_share_maximum(const Kernel& kernel, const Target& target, const RowShape& shape) {
  return target.may.online && shape.length >= kShortColumn && find_online(kernel).has_value();
}

SharedSweeps columns_share(const Kernel& kernel, const Target& target, const RowShape& shape) {
  const bool moments = columns_share_moments(kernel, target, shape);
  return {.online = !moments && columns_share_maximum(kernel, target, shape), .moments = moments};
}

// Columns of rows that no vector divides, in vectors of those of one alignment, in as many parts as run at once: loads
// of single elements are too many requests for what they bring.
std::optional<ReduceSchedule> peel_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  constexpr double kBlocks = 1.5;  // of a multiprocessor: with more, the rows that are read at once lie further apart
  ReduceSchedule schedule;
  schedule.team.mapping = RowMapping::column;
  schedule.peeled = true;
  schedule.vector = static_cast<int>(16 / widest_of(kernel));
  schedule.keep = Reread{.unroll = 8};
  schedule.cache.streaming_loads = streams_past(kernel, target, one_sweep(kernel, {}), kMostStreamedPercent);
  if (!kernel.axes[shape.kept - 1].extent.is_constant()) return std::nullopt;
  if (schedule.vector < 2 || column_reference(kernel, schedule.vector, {}) == nullptr) return std::nullopt;
  // Few blocks, of many registers, compute too slowly (greatest sigmoid of bf16 [135201, 425] on an H100: 96 us, 67 in
  // elements), but for random numbers, which are drawn by fours (least of bf16 [8192, 48845] behind dropout: 1688 and
  // 781).
  constexpr int kMostComputed = 6;
  if (!draws_random_numbers(kernel) && element_cost(kernel, rounds_of(kernel).sweeps[0]) > kMostComputed)
    return std::nullopt;
  const std::int64_t vectors = shape.rows / schedule.vector;
  if (vectors == 0) return std::nullopt;  // nothing but edges
  while (schedule.team.columns > 8 && schedule.team.columns >= 2 * vectors) schedule.team.columns /= 2;
  const std::int64_t slabs =
      (vectors + schedule.team.columns - 1) / schedule.team.columns + 1;  // one of them is the edges
  const std::int64_t members = schedule.team.threads / schedule.team.columns;
  const std::int64_t parts =  // of each alignment
      std::max(1LL, std::llround(kBlocks * target.multiprocessors / static_cast<double>(slabs * schedule.vector)));
  if (shape.length < parts * schedule.vector * members * unroll_of(schedule)) return std::nullopt;
  schedule.cut = in_parts(static_cast<int>(parts * schedule.vector), finishing_team(kernel));
  return schedule;
}

// Steps of the loop over a bag of gathered rows: tiles of one size, as few as leave 128 bytes of them under way. A tile
// that reaches behind the end asks for the last row again.
int choose_tile(const Kernel& kernel, int vector, std::int64_t steps) {
  constexpr std::int64_t kBytes = 128, kLeast = 4, kMost = 16;
  std::int64_t bytes = 0;
  for (const Instr* load : row_loads(kernel))
    if (!load->access.offset.values().empty()) bytes += vector * element_bytes(kernel, load->access);
  const std::int64_t most = std::clamp(kBytes / std::max<std::int64_t>(1, bytes), kLeast, kMost);
  const std::int64_t tiles = (std::max<std::int64_t>(1, steps) + most - 1) / most;
  return static_cast<int>((std::max<std::int64_t>(1, steps) + tiles - 1) / tiles);
}

// Single elements below 4 bytes, of which a thread takes many rows: the more neighbours a block reads of each, the
// fewer accesses are pieces of sectors (H200: greatest of i16 columns of 19, 134 us by two threads each, 104 by one;
// argmax down 75 rows of 5625, 360 by eight, 261 by one; sums of bf16 columns of 65, 146 and 121).
constexpr std::int64_t kRowsOfNarrow = 64, kMostOfNarrow = 512;  // of a thread, of a column
bool is_narrow_single(const ReduceSchedule& schedule, const Kernel& kernel) {
  return schedule.vector == 1 && widest_of(kernel) <= 2;
}

// Columns of a block for columns of `length` rows that so many threads share, as long as that leaves every
// multiprocessor two blocks.
int columns_for(const RowShape& shape, const Target& target, int threads, std::int64_t rows_of_thread, int vector) {
  constexpr std::int64_t kBlocks = 2;
  int members = 1;
  while (members < 32 && shape.length >= 2 * members * rows_of_thread) members *= 2;
  int columns = threads / members;
  while (columns > 1 && shape.rows < kBlocks * target.multiprocessors * columns * vector) columns /= 2;
  return columns;
}

// Short columns that are read once. A thread takes eight rows or more, so that few threads share a column and a block
// takes long pieces of rows. An index and its value take several registers: then a thread has four columns at most.
ReduceSchedule choose_short_columns(const Kernel& kernel, const Target& target, const RowShape& shape,
                                    ReduceSchedule schedule) {
  constexpr int kThreads = 256, kLeastColumns = 32, kRowsOfThread = 8, kMostMembers = 8, kMostIndexed = 4;
  if (finds_index(kernel)) schedule.vector = std::min(schedule.vector, kMostIndexed);
  const std::int64_t rows_of_thread = is_narrow_single(schedule, kernel) ? kRowsOfNarrow : kRowsOfThread;
  int members = 1;
  while (members < kMostMembers && shape.length >= 2 * members * rows_of_thread) members *= 2;
  schedule.team.columns = kThreads / members;
  while (schedule.team.columns > kLeastColumns &&
         shape.rows < 2LL * target.multiprocessors * schedule.team.columns * schedule.vector)
    schedule.team.columns /= 2;
  schedule.team.threads = std::max(64, schedule.team.columns * members);
  const std::int64_t team = schedule.team.threads / schedule.team.columns;
  schedule.keep = Reread{.unroll = gathers_along_rows(kernel)
                                       ? choose_tile(kernel, schedule.vector, (shape.length + team - 1) / team)
                                       : std::min(choose_unroll(kernel, schedule.vector, shape.length / team),
                                                  is_narrow_single(schedule, kernel) ? 8 : 16)};
  return schedule;
}

// Of short columns whose results are wider than what is reduced: as many as a thread stores in two accesses of 16
// bytes. More lie apart from what the other threads of a warp store (counts of 2 bytes each, as i64: 0.18 of a copy in
// vectors of 16 on an H200).
int vector_of_results(const Kernel& kernel, const RowShape& shape, int vector) {
  constexpr std::int64_t kStored = 32, kFew = 4;  // bytes of a thread; how much less is stored than read
  std::int64_t read = 0, stored = 0, widest = 1;
  for (const Instr* load : row_streams(kernel)) read += element_bytes(kernel, load->access) * shape.length;
  for (const Store& store : kernel.stores) {
    const std::int64_t bytes = element_bytes(kernel, store.access);
    stored += bytes;
    widest = std::max(widest, bytes);
  }
  if (kFew * stored <= read) return vector;
  return static_cast<int>(std::min<std::int64_t>(vector, std::max<std::int64_t>(1, kStored / widest)));
}

// 16 bytes of the widest column operand along the kept axis, and the rest of the block along the reduced ones.
ReduceSchedule choose_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  ReduceSchedule schedule;
  schedule.team.mapping = RowMapping::column;
  const int inner = static_cast<int>(shape.kept) - 1;
  const Dim& extent = kernel.axes[shape.kept - 1].extent;
  std::int64_t reductions = 0;
  for (const Instr& instr : kernel.body) reductions += instr.kind == InstrKind::reduce;
  while (schedule.vector < 16 && schedule.vector * 2 * reductions <= kMostAccumulators) schedule.vector *= 2;
  int usable = 1;
  for (const Instr* load : row_loads(kernel))
    usable = std::max(usable, vector_width(load->access, inner,
                                           power_of_two_divisor(extent, schedule.vector, kernel.symbols), kernel));
  if (!stores_elements(kernel)) usable = vector_of_results(kernel, shape, usable);
  schedule.vector = usable;
  const SharedSweeps shared = columns_share(kernel, target, shape);
  schedule.cache.streaming_loads =
      usable > 1 && streams_past(kernel, target, one_sweep(kernel, shared), kMostStreamedPercent);
  const bool reread = rereads(kernel) && !one_sweep(kernel, shared);  // no block can leave a part of a row to another
  if (!reread && shape.length < kShortColumn) return choose_short_columns(kernel, target, shape, schedule);
  // A tile that is gone over twice is as many elements, of which single rows have fewer then (bf16 [16384, 5120] on an
  // H100: 268 us in vectors of 8, 203 of 4).
  constexpr int kOfTile = 4;
  const bool dear = shared.online && keeps_dear_tile(kernel, shared);
  if (shared.online && (reread || dear)) schedule.vector = usable = std::min(usable, kOfTile);
  const std::int64_t along = extent.bounds(kernel.symbols).max;
  while (schedule.team.columns > 1 && schedule.team.columns / 2 * schedule.vector >= along) schedule.team.columns /= 2;
  // Few neighbours in each row, and many such columns: a block has those of several, so that each thread takes eight
  // rows or more. By blocks with few rows of each thread, most of the time is their launch (sums of bf16 [131072, 65,
  // 16] over the middle axis on an H200: 161 us by blocks of 32 to 128 threads alike, a copy of the bytes takes 69).
  constexpr std::int64_t kRowsOfThread = 8, kManyBlocks = 16, kFewNeighbours = 4;
  const std::int64_t alone = shape.rows / std::max<std::int64_t>(1, along);  // blocks with nobody beside
  const bool several = !reread && usable > 1 && along <= kFewNeighbours * schedule.vector && shape.known &&
                       alone >= kManyBlocks * target.multiprocessors;
  const int of_several =
      columns_for(shape, target, several && shared.moments ? kThreadsOfMany : 256, kRowsOfThread, schedule.vector);
  if (several && of_several > schedule.team.columns) schedule.team.columns = of_several;
  if (!reread && is_narrow_single(schedule, kernel) && shape.known && shape.length <= kMostOfNarrow)
    schedule.team.columns = std::max(schedule.team.columns, columns_for(shape, target, 256, kRowsOfNarrow, 1));
  const std::int64_t line = 128 / widest_of(kernel);
  while (reread && schedule.team.columns > 4 && schedule.team.columns * schedule.vector > line &&
         shape.rows < std::int64_t{target.multiprocessors} * schedule.team.columns * schedule.vector)
    schedule.team.columns /= 2;
  const std::int64_t blocks_of_all =
      (shape.rows + schedule.team.columns * schedule.vector - 1) / (schedule.team.columns * schedule.vector);
  // A block that is alone on its multiprocessor has all threads that it can (f32 [11358, 3880] standardized on an H200,
  // 122 blocks: 232 us by 512, 171 by 1024).
  const bool lone = blocks_of_all <= target.multiprocessors && !shared.online;
  schedule.team.threads = reread && shape.length >= kLongColumn ? (lone ? 1024 : 512)
                          : shape.length >= 16                  ? 256
                                                                : std::max(64, 4 * schedule.team.columns);
  const bool tall = usable == 1 && !reread && shape.length >= kTallColumn &&
                    shape.rows >= 2LL * target.multiprocessors * schedule.team.columns;
  if (tall) schedule.team.threads = 1024;
  // Few tall columns are cut in parts whose finding is short (argmax of u8 [1048576, 248]: 178 us by small blocks,
  // 135).
  constexpr std::int64_t kTallIndexed = 32768;
  const bool indexed = finds_index(kernel) && shape.length <= kTallIndexed;
  const bool large = (shared.moments || indexed) && usable > 1 && !reread;
  // Whole columns that leave a multiprocessor few blocks have larger ones (mean and variance down bf16 [512, 299, 256]
  // on an H200: 42.8 us by 512 blocks of 128 threads, 30.5 of 256).
  constexpr std::int64_t kThreadsOfFew = 1024;
  const bool few_blocks = blocks_of_all >= target.multiprocessors &&
                          blocks_of_all * kThreadsOfMany < kThreadsOfFew * target.multiprocessors &&
                          shape.length < kLongColumn;
  if (large && !few_blocks) schedule.team.threads = kThreadsOfMany;
  // Many blocks of few elements take longer to launch than to read (argmax along 64 of f32 [.., 64, 8] on an H100: 1469
  // us by 421888 blocks of 256 threads, 543 of 128, 310 of 64).
  const std::int64_t blocks = shape.rows / std::clamp<std::int64_t>(along, 1, schedule.team.columns * schedule.vector);
  while (!reread && !several && schedule.team.threads > 64 && blocks >= kManyBlocks * target.multiprocessors &&
         shape.length < kRowsOfThread * (schedule.team.threads / schedule.team.columns))
    schedule.team.threads /= 2;
  const std::int64_t team = schedule.team.threads / schedule.team.columns;
  int unroll = gathers_along_rows(kernel) ? choose_tile(kernel, schedule.vector, (shape.length + team - 1) / team)
                                          : choose_unroll(kernel, schedule.vector, shape.length / team);
  if (is_narrow_single(schedule, kernel) && !shared.online && shape.length <= kMostOfNarrow)
    unroll = std::min(unroll, 8);
  if (tall) unroll = std::min(unroll, static_cast<int>(kTallBytes / widest_of(kernel)));
  // Of 2-byte elements of one operand twice as many take as many registers as they come (variance down bf16
  // [45127, 1536] on an H200: 61 us of four rows, 47 of eight; [4480, 28672] 117 and 77).
  const bool narrow_moments = shared.moments && large && !few_blocks && schedule.team.columns > 1 &&
                              widest_of(kernel) == 2 && row_streams(kernel).size() == 1 &&
                              element_cost(kernel, rounds_of(kernel, shared).sweeps[0]) <= kCheapOfTile;
  if (!one_sweep(kernel, shared) || large)
    unroll = std::min(unroll, narrow_moments ? 2 * kMostUnrolled : kMostUnrolled);
  if (shared.moments && large)  // 200 us of two f32 streams [13088, 3136], 140 so (H100)
    unroll = std::max(1, unroll / static_cast<int>(std::max<std::size_t>(1, row_streams(kernel).size())));
  if (usable == 1 && stores_elements(kernel)) unroll = std::min(unroll, 2 * kMostUnrolled);
  if (shared.online) {
    const int most = std::max(1, (dear ? kMostOfTileKept : reread ? kMostOfTileReread : kMostOfTile) / schedule.vector);
    while (2 * unroll <= most && 2 * unroll * team <= shape.length && unroll < 16) unroll *= 2;
    if (!reread || dear) unroll = std::min(unroll, most);
  }
  schedule.keep = Reread{shared.online, unroll, shared.moments};
  if (dear) schedule.occupancy.least = std::max(1, kResidentOfDear / schedule.team.threads);
  // Of four vectors of f32 under way the compiler takes registers that two more blocks could run with (mean and
  // variance down f32 [502718, 48] on an H200: 51.9 us, 35.8; [243880, 80] 43.6 and 36.0; [16384, 760] 25.2 and 23.0).
  constexpr int kResidentOfWords = 768;
  if (!dear && shared.moments && large && schedule.team.threads == kThreadsOfMany && widest_of(kernel) == 4 &&
      schedule.vector == 4 && unroll == kMostUnrolled)
    schedule.occupancy.least = kResidentOfWords / kThreadsOfMany;
  if (!dear && is_many_singles(kernel, schedule))
    schedule.occupancy.least = std::max(1, kResidentOfSingles / schedule.team.threads);
  // As registers leave room for; an index takes fewer (argmin and least of bf16 [8192, 16384] on an H200: 97 us in 8
  // parts, 82 in 16).
  const int resident = dear ? kCountOfDear : large && shared.moments ? kResidentOfMany : schedule.team.threads;
  if (one_sweep(kernel, shared))
    schedule.cut =
        in_parts(choose_splits(target, shape, schedule.team.columns * schedule.vector, 2 * team * unroll, resident),
                 finishing_team(kernel));
  // Beside a value that all columns of a row share, a vector's, the compiler waits for each load rather than to take a
  // register beyond the 32nd: f16 1 x 1024 by 1024 x 3072 took 13.7 us for 9.9, 1 x 4096 by 4096 x 14336 51.9 for 50.8
  // (H100).
  constexpr int kResident = 768;  // threads of a multiprocessor, of which each has 85 registers
  const std::size_t streams = row_streams(kernel).size();
  const bool shares = streams == 1 && row_loads(kernel).size() > streams;
  if (shares && !shared.moments && parts_of(schedule) > 1 && widest_of(kernel) <= 4)
    schedule.occupancy.least = std::max(1, kResident / schedule.team.threads);
  return schedule;
}

// One size of block for columns that registers hold. It fits where a row's piece has at least `least` bytes (or the
// most columns that a block takes), and where each thread holds at most `narrow_words` words of values below 4 bytes,
// `words` of 4.
struct HeldBlock {
  int threads = 256;
  std::int64_t least = 512;
  int narrow_words = 26;
  int words = 26;  // the same of single elements of 4 bytes
};

// Columns that are read again stay in registers. A block of 256 threads takes pieces of 512 bytes of each row where
// that fits: several such blocks run at once, and one loads while another stores. Longer columns take larger blocks and
// shorter pieces. A piece that begins between sectors shares both of its ends with its neighbours, so there long pieces
// come first. Measured on an H100 in f32, bf16 and f64, with columns of 2 to 512 rows.
std::optional<ReduceSchedule> hold_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  constexpr std::int64_t kWord = 4, kAlignment = 16, kLeastOfThread = 16, kLeastRead = 64, kLeastPiece = 128,
                         kBytesOfBlock = 6 << 10;  // bytes
  constexpr std::int64_t kShort = 8, kShortUnaligned = 16;
  constexpr int kLeastColumns = 8;
  constexpr HeldBlock kNarrow[] = {{256, 128, 26}, {256, 64, 32}, {512, 32, 16}, {512, 32, 24}};
  constexpr HeldBlock kAligned[] = {{256, 128}, {512, 32}};
  constexpr HeldBlock kUnaligned[] = {
      {256, 512, 26}, {512, 512, 34, 34}, {1024, 512, 26}, {512, 32, 16, 34}, {1024, 32, 16}};
  // Elements of 2 bytes of odd rows: pieces of 16 columns are 2 sectors each time, and mostly of a neighbour (H200:
  // bf16 [257, 313225] over their sums 234 us by 16 columns, 150 by 128; standardized [859, 57089] 100 by 16, 69 by 32
  // and 1024 threads, 44 by 512 that spill some on other graphs).
  constexpr HeldBlock kUnalignedNarrow[] = {{256, 256, 26},     {512, 256, 34, 34}, {1024, 256, 34, 34},
                                            {512, 128, 34, 34}, {512, 64, 48, 48},  {1024, 64, 28},
                                            {1024, 32, 24}};
  if (!shape.known || shape.length < 2 || !rereads(kernel)) return std::nullopt;
  ReduceSchedule schedule;
  schedule.team.mapping = RowMapping::column;
  const int inner = static_cast<int>(shape.kept) - 1;
  const Dim& extent = kernel.axes[shape.kept - 1].extent;
  const std::int64_t widest = widest_of(kernel);
  const bool wide = shape.length < kShort;  // accesses: of short columns a thread has too little else
  const int word = static_cast<int>(std::max<std::int64_t>(1, (wide ? 4 : 1) * kWord / widest));
  for (const Instr* load : row_loads(kernel))
    schedule.vector = std::max(
        schedule.vector, vector_width(load->access, inner, power_of_two_divisor(extent, word, kernel.symbols), kernel));
  const int whole = static_cast<int>(std::max<std::int64_t>(1, kAlignment / widest));
  const bool aligned = power_of_two_divisor(extent, whole, kernel.symbols) == whole;
  const int most_columns = !aligned && shape.length < kShortUnaligned ? 256 : 128;
  const std::int64_t along = extent.bounds(kernel.symbols).max;
  // Where no elements are stored, what is under way is all that a thread waits for.
  const std::int64_t least_of_thread = stores_elements(kernel) ? (wide ? 2 : 1) * kLeastOfThread : kLeastRead;
  // Of short columns a thread has one whole, and meets nobody (softmax down 5 of bf16 [.., 5, 256] on an H200: 75 us by
  // two threads each, 37).
  constexpr int kWholeColumns = 128, kMostOfWhole = 28;  // of a block; words of a thread
  const std::int64_t of_column = shape.length * std::max(kWord, schedule.vector * held_bytes(kernel));
  if (wide && schedule.vector > 1 && of_column <= kWord * kMostOfWhole &&
      shape.rows >= std::int64_t{target.multiprocessors} * kWholeColumns * schedule.vector) {
    schedule.team.threads = schedule.team.columns = kWholeColumns;
    schedule.keep = InRegisters{static_cast<int>(shape.length) * schedule.vector};
    // With more elements of a thread fewer of its blocks fit without a spill; sixteen columns of bytes have too many.
    constexpr int kFew = 24, kRegistersOfFew = 64, kMany = 40, kRegistersOfMany = 96;
    const int elements = held_elements(schedule);
    if (widest > 1 && elements <= kMany && slots_of_element(kernel) <= kMostOfNorms)
      schedule.occupancy.least = target.registers_per_multiprocessor /
                                 ((elements <= kFew ? kRegistersOfFew : kRegistersOfMany) * kWholeColumns);
    return schedule;
  }
  const auto fits = [&](const HeldBlock& block, int columns) {
    schedule.team.threads = block.threads;
    schedule.team.columns = columns;
    const std::int64_t piece = columns * schedule.vector * widest;
    const bool few = shape.rows < std::int64_t{target.multiprocessors} * columns * schedule.vector;
    const bool small = piece * shape.length < kBytesOfBlock;  // it takes longer to launch than to read
    const bool beyond = columns / 2 * schedule.vector >= along && piece > kLeastPiece && !small;
    // Of rows of few neighbours a block has at least half of one (softmax down bf16 [8203, 999, 9] on an H200: 215 us
    // by one block of 1024 with 16 columns, 148 by two of 512 with eight).
    if (piece < std::min({block.least, most_columns * schedule.vector * widest, (along + 1) / 2 * widest}))
      return false;
    if (columns > kLeastColumns && (few || beyond)) return false;
    const auto steps = [&] { return (shape.length + team_size(schedule) - 1) / team_size(schedule); };
    const auto bytes = [&] { return steps() * std::max(kWord, schedule.vector * held_bytes(kernel)); };
    // Beyond `most` words a thread spills, or too few threads run. Temporaries of f64 take two registers each.
    const int most = widest > kWord                    ? 16
                     : widest < kWord                  ? block.narrow_words
                     : schedule.vector == 1 && aligned ? 32
                     : schedule.vector == 1            ? block.words
                                                       : 26;
    while (schedule.team.threads > std::max(columns, 64) && bytes() < least_of_thread &&
           (bytes() < kLeastOfThread || 2 * bytes() <= kWord * most))
      schedule.team.threads /= 2;
    if (bytes() > kWord * most) return false;
    schedule.keep = InRegisters{static_cast<int>(steps() * schedule.vector)};
    constexpr int kResident = 1024,
                  kOfResident = 32;  // threads of a multiprocessor, and elements that 64 registers hold
    const bool enough =
        !wide && held_elements(schedule) <= std::max(kOfResident, schedule.vector == 1 ? block.words : 0);
    schedule.occupancy.least = enough ? kResident / schedule.team.threads : 0;
    return true;
  };
  const bool singles = schedule.vector == 1 && widest == 2 && !aligned;
  const std::span<const HeldBlock> blocks = singles          ? std::span<const HeldBlock>(kUnalignedNarrow)
                                            : !aligned       ? std::span<const HeldBlock>(kUnaligned)
                                            : widest < kWord ? std::span<const HeldBlock>(kNarrow)
                                                             : std::span<const HeldBlock>(kAligned);
  for (const HeldBlock& block : blocks)
    for (int columns = most_columns; columns >= kLeastColumns; columns /= 2)
      if (fits(block, columns)) return schedule;
  return std::nullopt;
}

}  // namespace

bool column_wise(const Kernel& kernel, std::size_t kept) {
  if (kept == 0) return false;
  const auto bytes = [&](const Instr& load) {  // of its elements: what several rows share counts once
    const Access& access = load.access;
    const bool gathers = !access.offset.values().empty();
    double all = static_cast<double>(element_bytes(kernel, access));
    for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (gathers ? (load.depends >> axis & 1) != 0 : access.offset.depends_on(static_cast<int>(axis)))
        all *= static_cast<double>(kernel.axes[axis].extent.bounds(kernel.symbols).max);
    return all;
  };
  double along_kept = 0, along_reduced = 0;
  for (const Instr* load : row_streams(kernel)) {
    if (step_along(load->access.offset, static_cast<int>(kept) - 1, 1, kernel) == 1) along_kept += bytes(*load);
    if (step_along(load->access.offset, static_cast<int>(kernel.axes.size()) - 1, 1, kernel) == 1)
      along_reduced += bytes(*load);
  }
  return along_kept > along_reduced;
}

ReduceSchedule single_columns(const Kernel& kernel, const Target& target) {
  return choose_columns(kernel, target, shape_of(kernel));
}

ReduceSchedule choose_column_schedule(const Kernel& kernel, const Target& target) {
  const RowShape shape = shape_of(kernel);
  const ReduceSchedule schedule = choose_columns(kernel, target, shape);
  // What is read and computed once need not be held: statistics of f16 [289, 399112] behind expm1, 122 us for 291, of
  // f32 [888, 61440] behind softplus, 156 for 227 (H100).
  const bool once = schedule.vector > 1 && !stores_elements(kernel) && rereads(kernel) &&
                    one_sweep(kernel, {.moments = columns_share_moments(kernel, target, shape)});
  // A large block of narrow pieces holds less well than what is read once is computed (cross entropy of bf16
  // [2048, 1000, 113] on an H100: 489 us held, 240 in one sweep).
  constexpr int kLargeBlock = 1024;
  const bool in_tiles = is_online(schedule) && !stores_elements(kernel) && one_sweep(kernel, shared_of(schedule));
  if (target.may.hold_rows && !once)
    if (const auto held = hold_columns(kernel, target, shape); held && (!in_tiles || held->team.threads < kLargeBlock))
      return *held;
  return schedule.vector == 1 ? peel_columns(kernel, target, shape).value_or(schedule) : schedule;
}

}  // namespace tenon::codegen
