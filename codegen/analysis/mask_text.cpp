// See mask_text.h.
#include "codegen/analysis/mask_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/tile_tests.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

// "last" or "document and padding": what is loaded for the value.
std::string operands_text(const Kernel& kernel, InstrId value, const std::vector<std::string>& operands) {
  std::vector<int> loaded;
  for (const InstrId id : needed(kernel, {value})) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind == InstrKind::load && std::find(loaded.begin(), loaded.end(), instr.access.operand) == loaded.end())
      loaded.push_back(instr.access.operand);
  }
  std::string text;
  for (const int operand : loaded)
    text += (text.empty() ? "" : " and ") + operands.at(static_cast<std::size_t>(operand));
  return text.empty() ? "positions" : text;
}

std::string bound_text(const Kernel& kernel, const KeyBound& bound, const std::vector<std::string>& operands) {
  std::string text;
  const auto add = [&](const std::string& term) { text += (text.empty() ? "" : " + ") + term; };
  if (bound.slope != 0) add(bound.slope == 1 ? "query" : fmt::format("{} query", bound.slope));
  if (bound.value >= 0)
    add(fmt::format("{}(a number of {})", bound.negated ? "-" : "", operands_text(kernel, bound.value, operands)));
  if (!bound.offset.is(0) || text.empty()) add(bound.offset.str());
  return fmt::format("key {} {}: no key {} it is read", bound.upper ? "<=" : ">=", text,
                     bound.upper ? "behind" : "ahead of");
}

}  // namespace

std::vector<std::string> mask_texts(const Kernel& kernel, const std::vector<std::string>& operands) {
  const auto* schedule = std::get_if<AttendSchedule>(&kernel.schedule);
  if (schedule == nullptr) return {};
  const KeyMasks masks = key_masks(kernel);
  std::vector<std::string> texts;
  for (const KeyBound& bound : masks.bounds) texts.push_back(bound_text(kernel, bound, operands));
  for (const MaskCondition& mask : masks.others) {
    const Instr& instr = kernel.instr(mask.condition);
    const std::string what = fmt::format("{}{} of {}", mask.holds ? "" : "not ",
                                         instr.kind == InstrKind::map ? ir::name_of(instr.op) : "elements",
                                         operands_text(kernel, mask.condition, operands));
    KeyMasks alone = masks;
    alone.others = {mask};
    if (tile_tests(kernel, alone).empty()) {
      texts.push_back(what + ": asked of each score");
    } else if (schedule->block_mask) {
      texts.push_back(
          fmt::format("{}: asked of tiles of {} keys, which are skipped where it hides all, and of each score "
                      "where it hides some",
                      what, schedule->tile_kv));
    } else {
      const bool warpgroups = schedule->loop == MainLoop::wgmma;
      texts.push_back(fmt::format("{}: asked of each score ({})", what,
                                  warpgroups ? "block_mask is off" : "the kernel is not one of warpgroups"));
    }
  }
  return texts;
}

}  // namespace tenon::codegen
