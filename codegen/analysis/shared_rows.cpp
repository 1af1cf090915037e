// See shared_rows.h.
#include "codegen/analysis/shared_rows.h"

#include <algorithm>

#include "codegen/analysis/held.h"
#include "codegen/analysis/peel.h"
#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kWidestPartial = 16;  // bytes: a candidate of argmax
constexpr int kLeastRegisters = 40;          // of a thread
constexpr int kMostBlocks = 8;               // on every multiprocessor

// Static shared memory of a block, at most: each reduction has a buffer of its own, with a place for each warp and one
// for the cluster, or for each of the warps that read what the blocks of a grid leave (row_meeting), and their last
// one.
std::int64_t own_bytes(const Kernel& kernel, const ReduceSchedule& schedule) {
  const auto reductions = std::count_if(kernel.body.begin(), kernel.body.end(),
                                        [](const Instr& instr) { return instr.kind == InstrKind::reduce; });
  constexpr int kReaders = 6;
  return reductions * kWidestPartial * (schedule.team.threads / 32 + (schedule.team.grid > 1 ? kReaders : 1));
}

}  // namespace

bool whole_vectors(const Kernel& kernel, const ReduceSchedule& schedule, InstrId load) {
  const Access& access = kernel.instr(load).access;
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const Access* reference = schedule.peeled ? peel_reference(kernel) : nullptr;
  const int width = reference != nullptr ? peeled_width(access, *reference, inner, schedule.vector, kernel)
                                         : vector_width(access, inner, schedule.vector, kernel);
  const std::int64_t bytes = std::int64_t{schedule.vector} * held_size(kernel, load);
  return access.guards.empty() && width == schedule.vector && bytes >= 4 && bytes <= 16;
}

std::vector<InstrId> shared_loads(const Kernel& kernel, const ReduceSchedule& schedule) {
  const Rounds rounds = rounds_of(kernel);
  std::vector<InstrId> loads;
  const std::vector<Held> values = held_values(kernel, rounds);
  const bool computed =
      std::any_of(values.begin(), values.end(), [&](const Held& held) { return !is_plain_load(kernel, held.value); });
  const bool draws = std::any_of(kernel.body.begin(), kernel.body.end(),
                                 [](const Instr& instr) { return instr.kind == InstrKind::random; });
  if (computed && draws) return {};  // to draw again takes longer than to read again
  std::size_t kept = 0;
  while (kept < kernel.axes.size() && !kernel.axes[kept].reduced) ++kept;
  for (const Held& held : held_loads(kernel, rounds)) {
    // Teams of the grid read what all rows share again, where it lies otherwise than rows do: nothing else holds them.
    const bool of_all_rows = kept > 0 && (kernel.instr(held.value).depends & ((std::uint64_t{1} << kept) - 1)) == 0;
    if (whole_vectors(kernel, schedule, held.value))
      loads.push_back(held.value);
    else if (schedule.team.grid == 1 || !of_all_rows)
      return {};
  }
  return loads;
}

std::int64_t shared_load_bytes(const Kernel& kernel, const ReduceSchedule& schedule, InstrId load) {
  return std::int64_t{schedule.team.threads} * shared_elements(schedule) * held_size(kernel, load);
}

std::int64_t shared_row_bytes(const Kernel& kernel, const ReduceSchedule& schedule) {
  std::int64_t bytes = 0;
  for (InstrId load : shared_loads(kernel, schedule)) bytes += shared_load_bytes(kernel, schedule, load);
  return bytes;
}

std::int64_t shared_row_room(const Kernel& kernel, const ReduceSchedule& schedule, const Target& target, int blocks) {
  const std::int64_t each = target.shared_memory_per_multiprocessor / blocks - target.reserved_shared_memory_per_block;
  return each - own_bytes(kernel, schedule);
}

std::int64_t bytes_for_at_most(const Target& target, int blocks) {
  const int too_many = target.shared_memory_per_multiprocessor / (blocks + 1);
  return too_many - target.reserved_shared_memory_per_block + 16;
}

int resident_blocks(const Kernel& kernel, const ReduceSchedule& schedule, const Target& target) {
  const std::int64_t bytes = shared_row_bytes(kernel, schedule);
  int blocks = std::min(kMostBlocks, target.registers_per_multiprocessor / (kLeastRegisters * schedule.team.threads));
  while (blocks > 0 && shared_row_room(kernel, schedule, target, blocks) < bytes) --blocks;
  return blocks;
}

}  // namespace tenon::codegen
