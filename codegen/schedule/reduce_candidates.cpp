// Alternatives to the heuristics' choice for Reduce kernels, for the tuner: other teams for a row, other numbers of
// bytes in flight, of parts, and of bytes held.
#include <algorithm>

#include "codegen/analysis/peel.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kLongestOfWarp = 8192;  // elements
constexpr int kLongestHeldByWarp = 4096;
constexpr int kLongestOfThread = 32;
constexpr int kLongestOfRun = 256;
constexpr int kMostHeldElements = 64;  // of a row, per thread
constexpr int kLeastShared = 16384;    // bytes of a row for which shared memory is worth a try
constexpr int kLeastUnderWay = 16384;  // elements on a multiprocessor
constexpr int kMostShared = 6;         // blocks of a multiprocessor that have a row in shared memory

// The same row in the registers of another team, where it fits them.
void hold(ReduceSchedule schedule, std::int64_t length, std::int64_t element_bytes,
          std::vector<ReduceSchedule>& result) {
  const int team = team_size(schedule);
  const std::int64_t vectors = schedule.team.mapping == RowMapping::column ? length : length / schedule.vector;
  const std::int64_t elements = (vectors + team - 1) / team * schedule.vector;
  const std::int64_t bytes = schedule.team.threads == kMostThreads  // a block that has all the registers
                                 ? kMaxHeldBytes / 2
                                 : kMaxHeldBytes;
  if (elements == 0 || elements > kMostHeldElements || elements * element_bytes > bytes) return;
  schedule.keep = InRegisters{static_cast<int>(elements)};
  result.push_back(schedule);
}

std::vector<ReduceSchedule> held_rows(const Kernel& kernel, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  const std::int64_t length = shape_of(kernel).length;
  ReduceSchedule other = chosen;
  other.team.mapping = RowMapping::warp;  // a warp for each row
  other.team.lanes = 32;
  for (other.team.threads = 64; other.team.threads <= 256 && length <= kLongestHeldByWarp; other.team.threads *= 2)
    hold(other, length, held_bytes(kernel), result);
  other.team.mapping = RowMapping::block;
  for (other.team.threads = 64; other.team.threads <= kMostThreads; other.team.threads *= 2)
    hold(other, length, held_bytes(kernel), result);
  return result;
}

// Short rows by more and fewer lanes of a warp, down to one, in smaller and larger blocks.
std::vector<ReduceSchedule> lanes_of_rows(const Kernel& kernel, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  if (chosen.team.mapping != RowMapping::warp && chosen.team.mapping != RowMapping::thread) return result;
  const std::int64_t length = shape_of(kernel).length;
  const int team = team_size(chosen), least = chosen.peeled ? 2 * chosen.vector : length <= kLongestOfThread ? 1 : 2;
  for (int lanes = std::max(least, team / 4); lanes <= std::min(32, 4 * team); lanes *= 2)
    for (const int threads : {128, 256, 512}) {
      ReduceSchedule other = chosen;
      other.team.mapping = lanes == 1 ? RowMapping::thread : RowMapping::warp;
      other.team.lanes = lanes == 1 ? 32 : lanes;
      other.team.threads = threads;
      if (holds_rows(chosen)) {
        hold(other, length, held_bytes(kernel), result);
      } else {
        reread(other).unroll = std::clamp(unroll_of(chosen) * team / lanes, 1, 16);
        result.push_back(other);
      }
    }
  return result;
}

// Short rows as runs of a block, read again or held.
std::vector<ReduceSchedule> runs_of_rows(const Kernel& kernel, const Target& target) {
  std::vector<ReduceSchedule> result;
  if (!target.may.hold_rows || shape_of(kernel).length > kLongestOfRun) return result;
  for (const int lanes : {1, 2, 4, 8})
    for (const int threads : {64, 128, 256}) {
      const auto run = staged_rows(kernel, target, threads, lanes);
      if (!run) continue;
      result.push_back(*run);
      if (!holds_rows(*run)) continue;
      result.push_back(*run);
      result.back().keep = Reread{};
    }
  return result;
}

std::vector<ReduceSchedule> streamed_rows(const Kernel& kernel, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  if (chosen.team.mapping == RowMapping::block && parts_of(chosen) == 1 && shape_of(kernel).length <= kLongestOfWarp)
    for (const int threads : {128, 256})
      for (const int unroll : {4, 8, 16}) {
        ReduceSchedule other = chosen;
        other.team.mapping = RowMapping::warp;
        other.team.lanes = 32;
        other.team.threads = threads;
        reread(other).unroll = unroll;
        result.push_back(other);
      }
  const bool splits_rows = may_split(rounds_of(kernel, shared_of(chosen)));
  for (const int threads : {chosen.team.threads / 2, chosen.team.threads, 2 * chosen.team.threads})
    for (const int unroll : {unroll_of(chosen) / 2, unroll_of(chosen), 2 * unroll_of(chosen)}) {
      ReduceSchedule other = chosen;
      other.team.threads = threads;
      reread(other).unroll = std::clamp(unroll, 1, threads == kMostThreads ? 4 : std::max(8, unroll_of(chosen)));
      const int least = chosen.team.mapping == RowMapping::column ? std::max(32, chosen.team.columns) : 32;
      if (threads < least || threads > kMostThreads) continue;
      result.push_back(other);
      if (!splits_rows || parts_of(chosen) == 1) continue;
      for (const int splits : {parts_of(chosen) / 4, parts_of(chosen) / 2, 2 * parts_of(chosen)}) {
        set_parts(other, splits);
        if (splits > 0) result.push_back(other);
      }
    }
  return result;
}

// Single columns, of more neighbours in each row: a block reads longer pieces of it.
std::vector<ReduceSchedule> wide_columns(const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  for (const int columns : {64, 128, 256})
    for (const int splits : {parts_of(chosen), 2 * parts_of(chosen)}) {
      ReduceSchedule other = chosen;
      other.team.columns = columns;
      other.team.threads = 256;
      if (parts_of(chosen) > 1) set_parts(other, columns / chosen.team.columns * splits);
      result.push_back(other);
    }
  return result;
}

// Columns that several sweeps go over, in the registers of other teams, or read again.
std::vector<ReduceSchedule> held_columns(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  const RowShape shape = shape_of(kernel);
  if (chosen.team.mapping != RowMapping::column || !shape.known || !rereads(kernel) || !target.may.hold_rows)
    return result;
  if (holds_rows(chosen)) result.push_back(single_columns(kernel, target));
  for (const int threads : {128, 256, 512, kMostThreads})
    for (const int columns : {8, 16, 32, 64, 128}) {
      ReduceSchedule other = chosen;
      other.team.threads = threads;
      other.team.columns = columns;
      other.occupancy.least = kMostThreads / threads;
      hold(other, shape.length, held_bytes(kernel), result);
    }
  return result;
}

// Columns that are read again in sweeps of which one has a maximum and its exponentials: tiles of other shapes.
std::vector<ReduceSchedule> tiled_columns(const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  for (int vector = std::max(1, chosen.vector / 4); vector <= chosen.vector; vector *= 2)
    for (const int columns : {8, 16, 32, 64})
      for (const int threads : {256, 512})
        for (const int unroll : {2, 4, 8, 16}) {
          if (vector * unroll > 64) continue;
          ReduceSchedule other = chosen;
          other.vector = vector;
          other.team.columns = columns;
          other.team.threads = threads;
          reread(other).unroll = unroll;
          result.push_back(other);
        }
  return result;
}

// Columns of rows that no vector divides, in vectors of those of one alignment.
std::vector<ReduceSchedule> peeled_columns(const Kernel& kernel, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  const SharedSweeps shared = shared_of(chosen);
  const int vector = column_reference(kernel, 8, shared) != nullptr ? 8 : 4;
  if (column_reference(kernel, vector, shared) == nullptr) return result;
  for (const int threads : {256, 512})
    for (const bool streaming : {false, true})
      for (const int parts : {1, 2, 4}) {  // of each alignment
        ReduceSchedule other = chosen;
        other.peeled = true;
        other.cache.streaming_loads = streaming;
        other.vector = vector;
        other.team.threads = threads;
        other.team.columns = 32;
        reread(other).unroll = 8;
        other.cut = in_parts(parts * vector, finishing_team(kernel));
        result.push_back(other);
      }
  return result;
}

// Rows in shared memory, of as many blocks on a multiprocessor as leave the same of a row there.
std::vector<ReduceSchedule> shared_rows(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  if (shape_of(kernel).length * stream_bytes(kernel) < kLeastShared) return result;
  for (const int cluster : {1, 2, 4, 8})
    for (const int threads : {128, 256, 512, kMostThreads}) {
      int last = 0;
      for (const int resident : {1536, 1024, 512}) {  // threads of a multiprocessor
        const int blocks = resident / threads;
        if (blocks == 0 || blocks > kMostShared || (holds_rows(chosen) && cluster > 1)) continue;
        const auto other = in_shared_memory(kernel, target, chosen, cluster, threads, blocks);
        if (!other || shared_elements(*other) == last) continue;
        last = shared_elements(*other);
        result.push_back(*other);
      }
    }
  for (const int resident : {2, 3, 4})
    if (const auto other = by_grid(kernel, target, chosen, resident)) result.push_back(*other);
  return result;
}

// Fewer registers for more warps on a multiprocessor, or more for loads that are under way together: without a number
// of blocks the compiler may rather wait for a load than take a register beyond the 32nd.
std::vector<ReduceSchedule> bounded_registers(const Target& target, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  for (const int warps : {0, 24, 32, 40}) {
    if (32 * warps > target.threads_per_multiprocessor) continue;
    ReduceSchedule other = chosen;
    other.occupancy.least = 32 * warps / chosen.team.threads;
    if (other.occupancy.least > 0 || warps == 0) result.push_back(other);
  }
  return result;
}

// The same rows with fewer under way: what is read then stays closer together, and nothing pushes it out of the L2.
std::vector<ReduceSchedule> fewer_blocks(const ReduceSchedule& schedule) {
  std::vector<ReduceSchedule> result;
  if (schedule.team.mapping != RowMapping::block || !holds_rows(schedule) || schedule.team.cluster > 1) return result;
  for (const int blocks : {1, 2, 3, 4}) {
    if (std::int64_t{blocks} * schedule.team.threads * held_elements(schedule) < kLeastUnderWay) continue;
    result.push_back(schedule);
    result.back().occupancy.most = blocks;
  }
  return result;
}

// The same with one hint to the caches more or less.
std::vector<ReduceSchedule> other_policies(const Kernel& kernel, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  if (stores_elements(kernel) && !chosen.peeled) {
    result.push_back(chosen);
    result.back().cache.streaming = !chosen.cache.streaming;
  }
  if (may_keep_reads(kernel, chosen)) {
    result.push_back(chosen);
    result.back().cache.keep_reads = !chosen.cache.keep_reads;
  }
  if (chosen.vector > 1 && may_stream_loads(kernel, chosen)) {
    result.push_back(chosen);
    result.back().cache.streaming_loads = !chosen.cache.streaming_loads;
  }
  return result;
}

}  // namespace

std::vector<ReduceSchedule> reduce_alternatives(const Kernel& kernel, const Target& target,
                                                const ReduceSchedule& chosen) {
  if (persistent_blocks(chosen) != nullptr) return outer_alternatives(kernel, target, chosen);
  if (chosen.staged) {
    const ReduceSchedule apart = choose_rows_apart(kernel, target);
    std::vector<ReduceSchedule> result = reduce_alternatives(kernel, target, apart);
    result.push_back(apart);
    for (const ReduceSchedule& other : other_policies(kernel, chosen)) result.push_back(other);
    return result;
  }
  if (shared_elements(chosen) > 0) {
    const ReduceSchedule again = rereading(kernel, target);
    std::vector<ReduceSchedule> result = reduce_alternatives(kernel, target, again);
    result.push_back(again);
    for (ReduceSchedule held : held_rows(kernel, again)) {
      result.push_back(held);
      held.cache.streaming = stores_elements(kernel) && !held.peeled;
      result.push_back(held);
      held.cache.streaming = false;
      for (const ReduceSchedule& fewer : fewer_blocks(held)) result.push_back(fewer);
    }
    return result;
  }
  std::vector<ReduceSchedule> result;
  const auto append = [&](const std::vector<ReduceSchedule>& others) {
    result.insert(result.end(), others.begin(), others.end());
  };
  const bool rows = chosen.team.mapping == RowMapping::block || chosen.team.mapping == RowMapping::warp;
  if (holds_rows(chosen) && rows) append(held_rows(kernel, chosen));
  append(lanes_of_rows(kernel, chosen));
  if (chosen.team.mapping == RowMapping::thread || chosen.team.mapping == RowMapping::warp)
    append(runs_of_rows(kernel, target));
  append(held_columns(kernel, target, chosen));
  if (!holds_rows(chosen) && chosen.team.mapping != RowMapping::thread && chosen.team.mapping != RowMapping::warp)
    append(streamed_rows(kernel, chosen));
  if (has_moments(chosen)) {
    result.push_back(chosen);
    reread(result.back()).moments = false;
  }
  if (is_online(chosen) && shape_of(kernel).length <= kMostThreads * kMostHeldElements)
    append(held_rows(kernel, chosen));
  if (chosen.team.mapping == RowMapping::column && is_online(chosen)) append(tiled_columns(chosen));
  if (chosen.team.mapping == RowMapping::column && chosen.peeled) {
    ReduceSchedule single = single_columns(kernel, target);
    result = reduce_alternatives(kernel, target, single);
    result.push_back(single);
    return result;
  }
  if (chosen.team.mapping == RowMapping::column && chosen.vector == 1 && !holds_rows(chosen)) {
    append(peeled_columns(kernel, chosen));
    if (chosen.team.columns == 32) append(wide_columns(chosen));
  }
  if (const auto other = clustered(kernel, target, chosen)) result.push_back(*other);
  append(shared_rows(kernel, target, chosen));
  append(fewer_blocks(chosen));
  if ((chosen.peeled && rows) || (!holds_rows(chosen) && unroll_of(chosen) > 1))
    append(bounded_registers(target, chosen));
  append(other_policies(kernel, chosen));
  return result;
}

}  // namespace tenon::codegen
