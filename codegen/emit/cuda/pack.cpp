// Packs: several kernels as one launch. Each member is a __device__ function with the body that it would have alone;
// the one __global__ function deals its blocks to them in order. Neighbours that are one kernel but for their operands
// have one function, for which the block chooses the operands: it is compiled once, and read by all multiprocessors. A
// member sees its own block's number as blockIdx, how many it has as gridDim where it asks, and the threads that it has
// no use for leave at once: barriers count only those that are left (CUDA C++ Programming Guide, "Synchronization
// Functions"; sm_70 and later), and block sizes are whole warps.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/text/parts.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

using namespace cuda;

// "m1_reduce_sum": names of kernels may repeat.
std::string name_of(std::size_t member, const Kernel& kernel) { return fmt::format("m{}_{}", member, kernel.name); }

// "m1_in0".
std::string operand_of(std::size_t member, const Operand& operand) {
  return fmt::format("m{}_{}", member, operand.name);
}

// "m1_map0".
std::string map_of(std::size_t member, std::size_t map) { return fmt::format("m{}_map{}", member, map); }

// Whether its blocks deal their work out by how many they are.
bool counts_blocks(const Source& source) { return source.body.find("gridDim") != std::string::npos; }

std::string member_text(const std::string& name, const Kernel& kernel, const Source& source, int threads) {
  Writer out;
  std::string list = counts_blocks(source) ? ", const block_index gridDim" : "";
  if (const std::string operands = parameters(kernel); !operands.empty()) list += ", " + operands;
  for (std::size_t map = 0; map < source.launch.tensor_maps.size(); ++map)
    list += fmt::format(", const tensor_map& map{}", map);
  out.open(fmt::format("__device__ __forceinline__ void {}(const block_index blockIdx{}) {{", name, list));
  if (source.launch.block < threads) out.line(fmt::format("if (threadIdx.x >= {}) return;", source.launch.block));
  return out.text() + source.body + "}\n";
}

class PackEmitter {
 public:
  PackEmitter(const Launch& launch, const Target& target) : members_(launch.members) {
    for (const Kernel& member : members_) {
      sources_.push_back(emit_cuda(member, target));
      const Source& source = sources_.back();
      TENON_CHECK(source.finish_entry.empty() && source.launch.cluster == sources_.front().launch.cluster,
                  "not packed: " + print(member));
    }
    pack_.entry = entry_of(launch);
    pack_.launch.grid_x = 0;
    pack_.launch.block = 0;
    pack_.launch.dependent = target.may.dependent_launch;
    pack_.launch.cluster = sources_.front().launch.cluster;
    int pointers = 0;  // of the members ahead
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const Source& source = sources_[i];
      pack_.launch.block = std::max(pack_.launch.block, source.launch.block);
      pack_.launch.grid_x = pack_.launch.grid_x + source.launch.grid_x;
      pack_.launch.members.push_back(source.launch.grid_x);
      pack_.launch.constant_inputs = pack_.launch.constant_inputs || source.launch.constant_inputs;
      pack_.launch.shared_bytes = std::max(pack_.launch.shared_bytes, source.launch.shared_bytes);
      if (source.resident == 1 || std::holds_alternative<ContractSchedule>(members_[i].schedule))
        pack_.resident = std::max(pack_.resident, source.resident);
      for (TensorMap map : source.launch.tensor_maps) {
        map.pointer += pointers;
        pack_.launch.tensor_maps.push_back(std::move(map));
      }
      pointers += static_cast<int>(members_[i].operands.size());
      for (const std::string& dim : source.dims)
        if (std::find(pack_.dims.begin(), pack_.dims.end(), dim) == pack_.dims.end()) pack_.dims.push_back(dim);
    }
  }

  Source emit() {
    std::string text;
    for (std::size_t i = 0; i < members_.size(); i = behind_alike(i))
      text += member_text(name_of(i, members_[i]), members_[i], sources_[i], pack_.launch.block) + "\n";
    pack_.text = with_prelude(text + entry_text());
    return std::move(pack_);
  }

 private:
  std::string entry_text() const {
    Writer out;
    out.open(fmt::format("extern \"C\" __global__ void {} {}({}) {{", bounds_of(pack_.launch, pack_.resident),
                         pack_.entry, parameter_list()));
    out.line("const u32 block = blockIdx.x;");
    for (std::size_t i = 0; i < members_.size();) {
      const std::size_t behind = behind_alike(i);
      const std::string condition =
          behind < members_.size() ? fmt::format("if (block < end{}) return ", behind - 1) : "";
      const auto block_of = [&](std::size_t member) {
        return member == 0 ? std::string("block") : fmt::format("block - (u32)end{}", member - 1);
      };
      const auto blocks_of = [&](std::size_t member) {
        const std::string end = member + 1 < members_.size() ? fmt::format("(u32)end{}", member) : "gridDim.x";
        return member == 0 ? end : fmt::format("{} - (u32)end{}", end, member - 1);
      };
      std::string arguments = "{" + of_members(i, behind, block_of) + "}";
      if (counts_blocks(sources_[i])) arguments += ", {" + of_members(i, behind, blocks_of) + "}";
      for (std::size_t operand = 0; operand < members_[i].operands.size(); ++operand)
        arguments += ", " + of_members(i, behind, [&](std::size_t member) {
                       return operand_of(member, members_[member].operands[operand]);
                     });
      arguments += dims_of(i);
      for (std::size_t map = 0; map < sources_[i].launch.tensor_maps.size(); ++map)
        arguments += ", " + of_members(i, behind, [&](std::size_t member) { return map_of(member, map); });
      out.line(fmt::format("{}{}({});", condition, name_of(i, members_[i]), arguments));
      i = behind;
    }
    out.close();
    return out.text();
  }

  // The first member behind `member` that is another kernel.
  std::size_t behind_alike(std::size_t member) const {
    std::size_t behind = member + 1;
    while (behind < members_.size() && sources_[behind].body == sources_[member].body &&
           sources_[behind].dims == sources_[member].dims &&
           sources_[behind].launch.block == sources_[member].launch.block &&
           sources_[behind].launch.tensor_maps.size() == sources_[member].launch.tensor_maps.size() &&
           parameters(members_[behind]) == parameters(members_[member]))
      ++behind;
    return behind;
  }

  // "block < end0 ? a : block < end1 ? b : c", of what members have in one place.
  template <class Text>
  static std::string of_members(std::size_t first, std::size_t behind, const Text& text) {
    std::string chosen;
    for (std::size_t member = first; member + 1 < behind; ++member)
      chosen += fmt::format("block < end{} ? {} : ", member, text(member));
    return chosen + text(behind - 1);
  }

  std::string parameter_list() const {
    std::string list;
    for (std::size_t i = 0; i < members_.size(); ++i)
      for (const Operand& operand : members_[i].operands)
        list += pointer_parameter(members_[i], operand, operand_of(i, operand)) + ", ";
    for (std::size_t i = 0; i < pack_.dims.size(); ++i) list += fmt::format("i64 dim{}, ", i);
    for (std::size_t i = 0; i + 1 < members_.size(); ++i) list += fmt::format("i64 end{}, ", i);
    for (std::size_t i = 0; i < members_.size(); ++i)
      for (std::size_t map = 0; map < sources_[i].launch.tensor_maps.size(); ++map)
        list += fmt::format("const __grid_constant__ tensor_map {}, ", map_of(i, map));
    return list.substr(0, list.size() - 2);
  }

  std::string dims_of(std::size_t member) const {
    std::string list;
    for (const std::string& dim : sources_[member].dims)
      list += fmt::format(", dim{}", std::find(pack_.dims.begin(), pack_.dims.end(), dim) - pack_.dims.begin());
    return list;
  }

  const std::vector<Kernel>& members_;
  std::vector<Source> sources_;
  Source pack_;
};

}  // namespace

Source emit_cuda(const Launch& launch, const Target& target) {
  if (launch.members.size() == 1) return emit_cuda(launch.members.front(), target);
  return PackEmitter(launch, target).emit();
}

}  // namespace tenon::codegen
