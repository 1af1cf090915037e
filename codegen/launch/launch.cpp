// See launch.h. A member of a pack is one function whose blocks are on their own, without dynamic shared memory.
#include "codegen/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/transpose.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kWidestAccumulator = 16;  // bytes: a candidate of argmax
constexpr std::size_t kMostParameters = 250;     // of 8 bytes; 4 KB in all (CUDA C++ Programming Guide, "Function
                                                 // Parameters")

// What members take of what a kernel can have.
struct Demands {
  std::int64_t shared_bytes = 0;  // static
  std::size_t parameters = 0;

  Demands operator+(const Demands& other) const {
    return {shared_bytes + other.shared_bytes, parameters + other.parameters};
  }
  bool fit() const { return shared_bytes <= kStaticSharedBytes && parameters <= kMostParameters; }
};

// Of a kernel without tiles, at most: each reduction has a buffer of its own.
Demands demands_of(const Kernel& kernel) {
  Demands demands{0, kernel.operands.size() + kernel.dims.size() + 1};
  const auto* schedule = std::get_if<ReduceSchedule>(&kernel.schedule);
  if (schedule == nullptr) return demands;
  const auto reductions = std::count_if(kernel.body.begin(), kernel.body.end(),
                                        [](const Instr& instr) { return instr.kind == InstrKind::reduce; });
  const bool columns = schedule->team.mapping == RowMapping::column;
  demands.shared_bytes =
      reductions * kWidestAccumulator * (columns ? schedule->team.threads : schedule->team.threads / 32);
  return demands;
}

// No tiles, and no dynamic shared memory. Vectors that are spread fill whole blocks of their own size, which the pack
// may change.
bool can_be_member(const MapSchedule& schedule) {
  return !schedule.tile && !schedule.spread && !schedule.staged && schedule.threads % 32 == 0;
}

// No second function, no cluster, and no dynamic shared memory.
bool can_be_member(const ReduceSchedule& schedule) {
  return std::holds_alternative<WholeRows>(schedule.cut) && schedule.team.cluster == 1 && schedule.team.grid == 1 &&
         shared_elements(schedule) == 0 && !schedule.staged && schedule.occupancy.most == 0 &&
         schedule.team.threads % 32 == 0;
}

bool can_be_member(const ContractSchedule&) { return false; }
bool can_be_member(const AttendSchedule&) { return false; }

bool can_be_member(const Kernel& kernel) {
  return std::visit([](const auto& schedule) { return can_be_member(schedule); }, kernel.schedule);
}

// The threads of a block, where the rest of the schedule leaves their number free: a block then has more or fewer
// points or rows.
int* free_threads(Schedule& schedule) {
  if (auto* map = std::get_if<MapSchedule>(&schedule)) return &map->threads;
  auto& reduce = std::get<ReduceSchedule>(schedule);
  const RowMapping mapping = reduce.team.mapping;
  return mapping == RowMapping::thread || mapping == RowMapping::warp ? &reduce.team.threads : nullptr;
}

// Blocks of the size that the largest of those need which are not free, or of the smallest.
void share_block_size(std::vector<Kernel>& members) {
  int least = 0, fixed = 0;
  for (Kernel& member : members) {
    if (const int* threads = free_threads(member.schedule))
      least = least == 0 ? *threads : std::min(least, *threads);
    else
      fixed = std::max(fixed, std::get<ReduceSchedule>(member.schedule).team.threads);
  }
  for (Kernel& member : members)
    if (int* threads = free_threads(member.schedule)) *threads = fixed > 0 ? fixed : least;
}

}  // namespace

std::vector<Launch> deal_launches(Launch together, const Target& target) {
  Launch pack;
  std::vector<Launch> launches;
  Demands taken;
  const bool packs = together.members.size() > 1 && target.kind == TargetKind::cuda;
  for (std::size_t i = 0; i < together.members.size(); ++i) {
    Kernel& kernel = together.members[i];
    const Demands with = taken + demands_of(kernel);
    if (packs && with.fit() && can_be_member(kernel)) {
      taken = with;
      pack.groups.push_back(together.groups[i]);
      pack.members.push_back(std::move(kernel));
    } else {
      launches.push_back({{together.groups[i]}, {std::move(kernel)}});
    }
  }
  if (pack.members.size() > 1) share_block_size(pack.members);
  if (!pack.members.empty()) launches.insert(launches.begin(), std::move(pack));
  return launches;
}

std::string entry_of(const Launch& launch) {
  const std::string& first = launch.members.front().name;
  return launch.members.size() == 1 ? first : fmt::format("pack_of_{}_{}", launch.members.size(), first);
}

std::string print(const Launch& launch, std::size_t member) {
  const Kernel& kernel = launch.members[member];
  const std::string pack = launch.members.size() > 1 ? fmt::format(" (in {})", entry_of(launch)) : "";
  return fmt::format("{}: {}{}\n", kernel.name, print(kernel.schedule), pack);
}

std::string print(const Launch& launch) {
  std::string text;
  for (std::size_t member = 0; member < launch.members.size(); ++member) text += print(launch, member);
  return text;
}

}  // namespace tenon::codegen
