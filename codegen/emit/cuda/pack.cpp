// Packs: several kernels as one launch. Each member is a __device__ function with the body that it would have alone;
// the one __global__ function deals its blocks to them in order. A member sees its own block's number as blockIdx, and
// the threads that it has no use for leave at once: barriers count only those that are left (CUDA C++ Programming
// Guide, "Synchronization Functions"; sm_70 and later), and block sizes are whole warps.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/parts.h"
#include "codegen/transpose.h"
#include "ir/check.h"

namespace tenon::codegen {
namespace {

using namespace cuda;

constexpr std::int64_t kWidestAccumulator = 16;  // bytes: a candidate of argmax

// What members take of what a kernel can have.
struct Demands {
  std::int64_t shared_bytes = 0;  // static
  std::size_t parameters = 0;     // of 8 bytes; 4 KB in all (CUDA C++ Programming Guide, "Function Parameters")

  Demands operator+(const Demands& other) const {
    return {shared_bytes + other.shared_bytes, parameters + other.parameters};
  }
  bool fit() const { return shared_bytes <= kStaticSharedBytes && parameters <= 250; }
};

// Of a kernel without tiles, at most: each reduction has a buffer of its own.
Demands demands_of(const Kernel& kernel) {
  Demands demands{0, kernel.operands.size() + kernel.dims.size() + 1};
  const auto* schedule = std::get_if<ReduceSchedule>(&kernel.schedule);
  if (schedule == nullptr) return demands;
  const auto reductions = std::count_if(kernel.body.begin(), kernel.body.end(),
                                        [](const Instr& instr) { return instr.kind == InstrKind::reduce; });
  const bool columns = schedule->mapping == RowMapping::column;
  demands.shared_bytes = reductions * kWidestAccumulator * (columns ? schedule->threads : schedule->threads / 32);
  return demands;
}

// One function, whose blocks are on their own and numbered along x, and no tiles. Vectors that are spread fill whole
// blocks of their own size, which the pack may change.
bool can_be_member(const Kernel& kernel, const Source& source) {
  const auto* map = std::get_if<MapSchedule>(&kernel.schedule);
  if (map == nullptr && !std::holds_alternative<ReduceSchedule>(kernel.schedule)) return false;
  const LaunchRule& launch = source.launch;
  return (map == nullptr || (map->tile_axis < 0 && !map->spread)) && source.finish_entry.empty() &&
         launch.cluster == 1 && launch.max_grid_x == 0 && launch.shared_bytes == 0 && launch.grid_y.is(1) &&
         launch.grid_z.is(1) && launch.block % 32 == 0;
}

// The threads of a block, where the rest of the schedule leaves their number free: a block then has more or fewer
// points or rows.
int* free_threads(Schedule& schedule) {
  if (auto* map = std::get_if<MapSchedule>(&schedule)) return &map->threads;
  auto& reduce = std::get<ReduceSchedule>(schedule);
  const bool own_rows = reduce.mapping == RowMapping::thread || reduce.mapping == RowMapping::warp;
  return own_rows ? &reduce.threads : nullptr;
}

// Blocks of the size that the largest of those need which are not free, or of the smallest.
void share_block_size(std::vector<Kernel>& kernels, const std::vector<std::size_t>& pack) {
  int least = 0, fixed = 0;
  for (std::size_t i : pack) {
    if (const int* threads = free_threads(kernels[i].schedule))
      least = least == 0 ? *threads : std::min(least, *threads);
    else
      fixed = std::max(fixed, std::get<ReduceSchedule>(kernels[i].schedule).threads);
  }
  for (std::size_t i : pack)
    if (int* threads = free_threads(kernels[i].schedule)) *threads = fixed > 0 ? fixed : least;
}

// "m1_reduce_sum": names of kernels may repeat.
std::string name_of(std::size_t member, const Kernel& kernel) { return fmt::format("m{}_{}", member, kernel.name); }

// "m1_in0".
std::string operand_of(std::size_t member, const Operand& operand) {
  return fmt::format("m{}_{}", member, operand.name);
}

std::string member_text(const std::string& name, const Kernel& kernel, const Source& source, int threads) {
  Writer out;
  const std::string list = parameters(kernel);
  out.open(fmt::format("__device__ __forceinline__ void {}(const block_index blockIdx{}{}) {{", name,
                       list.empty() ? "" : ", ", list));
  if (source.launch.block < threads) out.line(fmt::format("if (threadIdx.x >= {}) return;", source.launch.block));
  return out.text() + source.body + "}\n";
}

class PackEmitter {
 public:
  PackEmitter(const std::vector<Kernel>& members, const Target& target) : members_(members) {
    TENON_CHECK(members.size() > 1, "a pack of one");
    for (const Kernel& member : members) {
      sources_.push_back(emit_cuda(member, target));
      TENON_CHECK(can_be_member(member, sources_.back()), "not packed: " + print(member));
    }
    pack_.entry = fmt::format("pack_of_{}_{}", members.size(), members[0].name);
    pack_.launch.grid_x = 0;
    pack_.launch.block = 0;
    pack_.launch.dependent = target.may.dependent_launch;
    for (const Source& source : sources_) {
      pack_.launch.block = std::max(pack_.launch.block, source.launch.block);
      pack_.launch.grid_x = pack_.launch.grid_x + source.launch.grid_x;
      pack_.launch.members.push_back(source.launch.grid_x);
      pack_.launch.constant_inputs = pack_.launch.constant_inputs || source.launch.constant_inputs;
      if (source.resident == 1) pack_.resident = 1;
      for (const std::string& dim : source.dims)
        if (std::find(pack_.dims.begin(), pack_.dims.end(), dim) == pack_.dims.end()) pack_.dims.push_back(dim);
    }
  }

  Source emit() {
    std::string text;
    for (std::size_t i = 0; i < members_.size(); ++i)
      text += member_text(name_of(i, members_[i]), members_[i], sources_[i], pack_.launch.block) + "\n";
    pack_.text = with_prelude(text + entry_text());
    return std::move(pack_);
  }

 private:
  std::string entry_text() const {
    Writer out;
    out.open(fmt::format("extern \"C\" __global__ void {} {}({}) {{", bounds_of(pack_.launch, pack_.resident),
                         pack_.entry, parameter_list()));
    if (pack_.launch.dependent) out.line("join_stream();");
    out.line("const u32 block = blockIdx.x;");
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::string condition = i + 1 < members_.size() ? fmt::format("if (block < end{}) return ", i) : "";
      out.line(fmt::format("{}{}({{{}}}{});", condition, name_of(i, members_[i]),
                           i == 0 ? "block" : fmt::format("block - (u32)end{}", i - 1), arguments(i)));
    }
    out.close();
    return out.text();
  }

  std::string parameter_list() const {
    std::string list;
    for (std::size_t i = 0; i < members_.size(); ++i)
      for (const Operand& operand : members_[i].operands)
        list += pointer_parameter(members_[i], operand, operand_of(i, operand)) + ", ";
    for (std::size_t i = 0; i < pack_.dims.size(); ++i) list += fmt::format("i64 dim{}, ", i);
    for (std::size_t i = 0; i + 1 < members_.size(); ++i) list += fmt::format("i64 end{}, ", i);
    return list.substr(0, list.size() - 2);
  }

  std::string arguments(std::size_t member) const {
    std::string list;
    for (const Operand& operand : members_[member].operands) list += ", " + operand_of(member, operand);
    for (const std::string& dim : sources_[member].dims)
      list += fmt::format(", dim{}", std::find(pack_.dims.begin(), pack_.dims.end(), dim) - pack_.dims.begin());
    return list;
  }

  const std::vector<Kernel>& members_;
  std::vector<Source> sources_;
  Source pack_;
};

}  // namespace

std::vector<std::vector<std::size_t>> deal_launches(std::vector<Kernel>& kernels, const Target& target) {
  std::vector<std::size_t> pack;
  std::vector<std::vector<std::size_t>> launches;
  Demands taken;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Demands with = taken + demands_of(kernels[i]);
    if (kernels.size() > 1 && target.kind == TargetKind::cuda && with.fit() &&
        can_be_member(kernels[i], emit_cuda(kernels[i], target))) {
      taken = with;
      pack.push_back(i);
    } else {
      launches.push_back({i});
    }
  }
  if (pack.size() > 1) share_block_size(kernels, pack);
  if (!pack.empty()) launches.insert(launches.begin(), pack);
  return launches;
}

Source emit_cuda_pack(const std::vector<Kernel>& members, const Target& target) {
  return PackEmitter(members, target).emit();
}

}  // namespace tenon::codegen
