// Heuristics for short rows that no wide vector divides: threads would load them in pieces of 2 or 4 bytes, many rows
// apart. A block takes its rows as one run instead (ReduceSchedule::staged).
#include <algorithm>

#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/staged_rows.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

// Elements; longer rows are pieces of memory as a warp reads them (H200: argmax of bf16 rows of 150 104 us by lanes, 72
// staged; softmax of f32 rows of 129 39 and 37.5), those of single bytes each later (sums of i8 rows of 133 424 and
// 114).
constexpr std::int64_t kLongest = 160, kLongestOfBytes = 512;
constexpr std::int64_t kLongestAcross = 1024;  // where they are stored across: fewer lanes have a row, and more rows
                                               // lie side by side there (f32 [32768, 192] on an H100: 76 us, 37 staged)
constexpr int kShortestVectors = 3;            // one or two vectors of a thread are read as they lie
constexpr int kShortestStored = 5;             // and a few that are stored too: the L1 has the rest of their lines
constexpr int kWide = 8;                       // bytes of a vector that lanes load well
constexpr int kWideStored = 16;  // of rows that are stored too, if lanes have as many (softmax on an H200:
constexpr int kFewVectors = 8;   // bf16 rows of 20 74 us, 36 staged; of 100 43 and 37; f32 of 20 39 and 36)
constexpr int kThreads = 64;     // of a block, at first
constexpr int kMostThreads = 512;
constexpr int kMostLanes = 8;
constexpr int kResident = 1024;                   // threads of a multiprocessor that have room for their rows
constexpr int kResidentAcross = 512;              // where they are stored across, which takes no fewer accesses by more
                                                  // (H200: f32 rows of 192 of two streams 78 us by 8 lanes, 60 by 4;
                                                  // bf16 rows of 96 213 by two, 183 by threads)
constexpr std::int64_t kMostOfBlock = 100 << 10;  // bytes of rows: two blocks of a multiprocessor
constexpr std::int64_t kBytesOfBlock = 6 << 10;   // read and written, which take longer than to launch a block
constexpr int kBlocks = 4;                        // of a multiprocessor
constexpr int kMostHeld = 32;                     // elements of a thread in registers
constexpr std::int64_t kPiece = 512;              // bytes that a block stores of each column

// Bytes of a vector along the rows, of the widest stream.
std::int64_t widest_vector(const Kernel& kernel, int vector) {
  std::int64_t widest = 1;
  for (const Instr* load : row_streams(kernel)) widest = std::max(widest, element_bytes(kernel, load->access));
  return vector * widest;
}

// Whether there are loads that every element of every row has of its own, and all of them lie in runs.
bool streams_lie_in_runs(const Kernel& kernel) {
  const std::uint64_t all = (std::uint64_t{1} << kernel.axes.size()) - 1;
  std::size_t staged = 0, others = 0;
  for (const Instr* load : row_streams(kernel))
    if (load->depends == all) ++(is_staged(kernel, load->access) ? staged : others);
  return staged > 0 && others == 0;
}

int vector_of(const Kernel& kernel) {
  return power_of_two_divisor(kernel.axes.back().extent, static_cast<int>(16 / widest_of(kernel)), kernel.symbols);
}

}  // namespace

std::optional<ReduceSchedule> staged_rows(const Kernel& kernel, const Target& target, int threads, int lanes) {
  const RowShape shape = shape_of(kernel);
  ReduceSchedule schedule;
  schedule.staged = true;
  schedule.team.mapping = lanes == 1 ? RowMapping::thread : RowMapping::warp;
  schedule.team.threads = threads;
  if (lanes > 1) schedule.team.lanes = lanes;
  schedule.vector = vector_of(kernel);
  if (rereads(kernel)) hold_row(schedule, kernel, shape, kMostHeld);
  return verify(schedule, kernel, target).empty() ? std::optional(schedule) : std::nullopt;
}

std::optional<ReduceSchedule> choose_staged(const Kernel& kernel, const Target& target) {
  const RowShape shape = shape_of(kernel);
  const bool across = stores_across(kernel);
  if (!target.may.hold_rows || !shape.known ||
      shape.length > (across                                               ? kLongestAcross
                      : widest_of(kernel) == 1 && !stores_elements(kernel) ? kLongestOfBytes
                                                                           : kLongest))
    return std::nullopt;
  const int vector = vector_of(kernel);
  const int shortest = stores_elements(kernel) ? kShortestStored : kShortestVectors;
  const std::int64_t vector_bytes = widest_vector(kernel, vector);
  const bool wide = stores_elements(kernel)
                        ? vector_bytes > kWideStored ||
                              (vector_bytes == kWideStored && shape.length >= std::int64_t{kFewVectors} * vector)
                        : vector_bytes >= kWide;
  if (shape.length < std::int64_t{shortest} * vector || (!across && wide) || !streams_lie_in_runs(kernel))
    return std::nullopt;
  const std::int64_t row_bytes = shape.length * staged_element_bytes(kernel);
  const auto enough = [&](int threads, int lanes) {
    return shape.rows / (threads / lanes) >= std::int64_t{kBlocks} * target.multiprocessors;
  };
  // As few lanes as leave a multiprocessor room for threads, and hold what is read again; where results are stored
  // across, that is read from shared memory again, and a block has so many rows that long pieces lie side by side
  // (H100: bf16 [1755312, 96] 553 us of 32 rows, 355 of 128; [2969927, 48] 459 of 64, 386 of 128, 340 of 256).
  // Nor are a row's 2-byte elements, if nothing else is read (softmax of bf16 rows of 65 on an H200: 58 us of 4 lanes
  // that hold them, 42 of threads that do not; a layer norm of 71 with weights 39 and 46).
  const bool alone = staged_element_bytes(kernel) == 2 && row_loads(kernel).size() == 1;
  const bool held = rereads(kernel) && !across && !alone;
  const std::int64_t most_held = held ? kMostHeld : shape.length;
  int lanes = 1, threads = kThreads;
  const std::int64_t resident = across ? kResidentAcross : kResident;
  while (lanes < kMostLanes && (resident * row_bytes > lanes * std::int64_t{target.shared_memory_per_multiprocessor} ||
                                shape.length > lanes * most_held))
    lanes *= 2;
  const std::int64_t moved = shape.length * stream_bytes(kernel) * (stores_elements(kernel) ? 2 : 1);
  const auto few = [&] {
    return threads / lanes * moved < kBytesOfBlock || (across && threads / lanes * narrowest_stored(kernel) < kPiece &&
                                                       2 * threads / lanes * row_bytes <= kMostOfBlock);
  };
  while (threads < kMostThreads && few() && enough(2 * threads, lanes)) threads *= 2;
  return enough(threads, lanes) ? staged_rows(kernel, target, threads, lanes) : std::nullopt;
}

}  // namespace tenon::codegen
