// See launch.h. A member of a pack is one function whose blocks, or clusters of blocks, are on their own. Maps and
// reductions have no dynamic shared memory; contractions have, and share a launch with those of the same schedule
// alone, so that none has fewer registers, more shared memory or another cluster than by itself.
#include "codegen/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "codegen/analysis/transpose.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kWidestAccumulator = 16;  // bytes: a candidate of argmax
constexpr std::size_t kMostParameters = 500;     // of 8 bytes; 4 KB in all (CUDA C++ Programming Guide, "Function
                                                 // Parameters")
constexpr std::size_t kMapParameters = 16;       // of a tensor map

// What members take of what a kernel can have.
struct Demands {
  std::int64_t shared_bytes = 0;  // static
  std::size_t parameters = 0;

  Demands operator+(const Demands& other) const {
    return {shared_bytes + other.shared_bytes, parameters + other.parameters};
  }
  bool fit() const { return shared_bytes <= kStaticSharedBytes && parameters <= kMostParameters; }
};

// At most: each reduction has a buffer of its own, and each operand that boxes bring a map.
Demands demands_of(const Kernel& kernel) {
  Demands demands{0, kernel.operands.size() + kernel.dims.size() + 1};
  if (const auto* product = std::get_if<ContractSchedule>(&kernel.schedule);
      product != nullptr && product->loop == MainLoop::wgmma)
    demands.parameters += kMapParameters * (static_cast<std::size_t>(product->products) + 1);
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

// No bounds, which order the tiles of all blocks, no warpgroups that take turns at a block's tiles: it has one; and no
// blocks that wait for each other.
bool can_be_member(const ContractSchedule& schedule) {
  return schedule.loop != MainLoop::cpu && !schedule.bounded && !schedule.turns && schedule.split_k == 1;
}

bool can_be_member(const AttendSchedule&) { return false; }

bool can_be_member(const Kernel& kernel) {
  return std::visit([](const auto& schedule) { return can_be_member(schedule); }, kernel.schedule);
}

// A pack that others may join.
struct Pack {
  Launch launch;
  Demands taken;
};

bool has_room(const Pack& pack, const Kernel& kernel) {
  const Kernel& first = pack.launch.members.front();
  const bool product = std::holds_alternative<ContractSchedule>(kernel.schedule);
  if (product != std::holds_alternative<ContractSchedule>(first.schedule)) return false;
  return (!product || kernel.schedule == first.schedule) && (pack.taken + demands_of(kernel)).fit();
}

// The threads of a block, where the rest of the schedule leaves their number free: a block then has more or fewer
// points or rows.
int* free_threads(Schedule& schedule) {
  if (auto* map = std::get_if<MapSchedule>(&schedule)) return &map->threads;
  auto& reduce = std::get<ReduceSchedule>(schedule);
  const RowMapping mapping = reduce.team.mapping;
  return mapping == RowMapping::thread || mapping == RowMapping::warp ? &reduce.team.threads : nullptr;
}

// Whether tiles of `schedule` have few places outside the product.
bool are_filled(const ContractSchedule& schedule, const Kernel& kernel) {
  constexpr std::int64_t kMostPercent = 150;  // of its points
  const ContractParts parts = contract_parts(kernel);
  const auto dealt = [&](int axis, std::int64_t tile) {
    const std::int64_t extent = typical(kernel.axes[static_cast<std::size_t>(axis)].extent, kernel.symbols);
    return std::pair((extent + tile - 1) / tile * tile, extent);
  };
  const auto [rows, m] = dealt(parts.m, std::int64_t{schedule.tile_m} * schedule.cluster);
  const auto [columns, n] = dealt(parts.n, schedule.tile_n / schedule.products);
  return 100 * rows * columns <= kMostPercent * m * n;
}

// Whether `smaller` may do as `larger` does: stream its matrix, or multiply it by the same loop; or read as many
// elements for each of its rows, by blocks.
bool may_follow(const Kernel& larger, const Kernel& smaller) {
  const auto* product = std::get_if<ContractSchedule>(&larger.schedule);
  const auto* other_product = std::get_if<ContractSchedule>(&smaller.schedule);
  if (product != nullptr && other_product != nullptr) {
    if (product->loop == MainLoop::stream) return true;
    if (product->loop != other_product->loop) return false;
    if (product->loop == MainLoop::wgmma)
      return product->products == other_product->products && are_filled(*product, smaller);
    return product->vector_a == other_product->vector_a && product->vector_b == other_product->vector_b;
  }
  const auto* rows = std::get_if<ReduceSchedule>(&larger.schedule);
  const auto* other_rows = std::get_if<ReduceSchedule>(&smaller.schedule);
  const auto read_by_blocks = [](const ReduceSchedule& schedule) {
    return schedule.team.mapping == RowMapping::block && std::holds_alternative<Reread>(schedule.keep);
  };
  return rows != nullptr && other_rows != nullptr && read_by_blocks(*rows) && read_by_blocks(*other_rows) &&
         rows->vector == other_rows->vector && larger.axes.back().extent == smaller.axes.back().extent;
}

double points_of(const Kernel& kernel) {
  double count = 1;
  for (const Axis& axis : kernel.axes) count *= static_cast<double>(typical(axis.extent, kernel.symbols));
  return count;
}

// Whether `member` may have the schedule of `larger`.
bool can_follow(const Kernel& larger, const Kernel& member, const Target& target) {
  return can_be_member(larger) && may_follow(larger, member) && verify(larger.schedule, member, target).empty();
}

// Gives the largest product of warpgroups the schedule that it would have with the columns of all that can follow it:
// its own may divide the depth, or have small tiles, to fill the device alone.
void choose_for_all(std::vector<Kernel>& members, const Target& target) {
  const auto multiplies = [](const Kernel& kernel) {
    const auto* schedule = std::get_if<ContractSchedule>(&kernel.schedule);
    return schedule != nullptr && schedule->loop == MainLoop::wgmma && !schedule->bounded;
  };
  std::vector<Kernel*> products;
  for (Kernel& member : members)
    if (multiplies(member)) products.push_back(&member);
  if (products.size() < 2) return;
  Kernel& largest = **std::max_element(products.begin(), products.end(),
                                       [](const Kernel* a, const Kernel* b) { return points_of(*a) < points_of(*b); });
  double points = 0;
  for (const Kernel* product : products) points += points_of(*product);
  Kernel all = largest;
  Dim& columns = all.axes[static_cast<std::size_t>(contract_parts(all).n)].extent;
  columns = columns * Dim(static_cast<std::int64_t>(points / points_of(largest) + 0.5));
  Kernel chosen = largest;
  chosen.schedule = choose_schedule(all, target);
  if (!multiplies(chosen)) return;
  auto& schedule = std::get<ContractSchedule>(chosen.schedule);
  constexpr int kMostSplit =
      4;  // where all of them leave more multiprocessors idle, each is better off split, and alone
  if (schedule.split_k > kMostSplit) return;
  if (schedule.split_k > 1) {
    Target whole = target;
    whole.may.split_k = false;
    chosen.schedule = choose_schedule(all, whole);
    if (!multiplies(chosen)) return;
  }
  schedule.turns = schedule.box_results = false;  // one tile of a block is multiplied, and nothing beside its way out
  double following = points_of(largest);
  for (const Kernel* product : products)
    if (product != &largest && can_follow(chosen, *product, target)) following += points_of(*product);
  if (verify(chosen.schedule, largest, target).empty() && following > points / 2 && following > points_of(largest))
    largest.schedule = chosen.schedule;
}

// Products that stream matrices or are warpgroups', and vectors', take the schedule of the largest of them: they are
// launched together, as if all of their columns were those of one.
void follow_largest(std::vector<Kernel>& members, const Target& target) {
  choose_for_all(members, target);
  std::vector<const Kernel*> by_size;
  for (const Kernel& member : members) by_size.push_back(&member);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](const Kernel* a, const Kernel* b) { return points_of(*a) > points_of(*b); });
  for (Kernel& member : members)
    for (const Kernel* larger : by_size) {
      if (larger == &member) break;
      if (!can_follow(*larger, member, target)) continue;
      member.schedule = larger->schedule;
      break;
    }
}

// Blocks of the size that the largest of those need which are not free, or of the smallest. Contractions have one.
void share_block_size(std::vector<Kernel>& members) {
  if (std::holds_alternative<ContractSchedule>(members.front().schedule)) return;
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
  std::vector<Pack> packs;
  std::vector<Launch> alone;
  const bool may_pack = together.members.size() > 1 && target.kind == TargetKind::cuda;
  if (may_pack) follow_largest(together.members, target);
  for (std::size_t i = 0; i < together.members.size(); ++i) {
    Kernel& kernel = together.members[i];
    if (!may_pack || !can_be_member(kernel)) {
      alone.push_back({{together.groups[i]}, {std::move(kernel)}});
      continue;
    }
    auto pack = std::find_if(packs.begin(), packs.end(), [&](const Pack& open) { return has_room(open, kernel); });
    if (pack == packs.end()) pack = packs.emplace(packs.end());
    pack->taken = pack->taken + demands_of(kernel);
    pack->launch.groups.push_back(together.groups[i]);
    pack->launch.members.push_back(std::move(kernel));
  }
  std::vector<Launch> launches;
  for (Pack& pack : packs) {
    if (pack.launch.members.size() > 1) share_block_size(pack.launch.members);
    launches.push_back(std::move(pack.launch));
  }
  std::move(alone.begin(), alone.end(), std::back_inserter(launches));
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
