// See map_choices.h.
#include <algorithm>

#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/map_choices.h"

namespace tenon::codegen {

std::vector<Access> streams(const Kernel& kernel) {
  std::vector<Access> accesses;
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && (instr.depends >> inner & 1) != 0) accesses.push_back(instr.access);
  for (const Store& store : kernel.stores) accesses.push_back(store.access);
  return accesses;
}

// Eight-bit reals are converted in software, and the cosine of what has its sine taken costs little
// (codegen/emit/cuda/text/definitions.h).
std::int64_t slots_of_point(const Kernel& kernel) {
  constexpr std::int64_t kConversion = 10, kCosineBesideSine = 4;
  const auto beside_sine = [&](const Instr& instr) {
    return instr.op == ir::Op::cos && std::any_of(kernel.body.begin(), kernel.body.end(), [&](const Instr& other) {
             return other.kind == InstrKind::map && other.op == ir::Op::sin && other.args == instr.args;
           });
  };
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  std::int64_t cost = 0;
  for (const Instr& instr : kernel.body) {
    if ((instr.depends >> inner & 1) == 0) continue;
    if (instr.kind == InstrKind::map) cost += beside_sine(instr) ? kCosineBesideSine : ir::info(instr.op).cost;
    if ((instr.kind == InstrKind::load || instr.kind == InstrKind::round) && is_f8(instr.dtype)) cost += kConversion;
  }
  for (const Store& store : kernel.stores)
    if (is_f8(kernel.operands[static_cast<std::size_t>(store.access.operand)].dtype)) cost += kConversion;
  return cost;
}

std::vector<Access> streams_of_operands(const std::vector<Access>& accesses) {
  std::vector<Access> streams;
  for (const Access& access : accesses)
    if (std::none_of(streams.begin(), streams.end(), [&](const Access& s) { return s.operand == access.operand; }))
      streams.push_back(access);
  return streams;
}

std::int64_t bytes_of(const std::vector<Access>& accesses, const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Access& access : accesses) bytes += element_bytes(kernel, access);
  return bytes;
}

}  // namespace tenon::codegen
