// See run_values.h.
#include "codegen/emit/cuda/run_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen::cuda {

Names advance(Writer& out, const Kernel& kernel, std::size_t from, std::string step, std::int64_t furthest,
              const std::string& prefix) {
  Names names = names_of(kernel);
  const std::string type = index_type(kernel), past = prefix == "j_" ? "past_" : "past_" + prefix;
  for (std::size_t axis = from + 1; axis-- > 0;) {
    const std::string name = names.axes[axis], sum = fmt::format("({} + {})", name, step);
    names.axes[axis] = prefix + name;
    if (axis == 0) {
      out.line(fmt::format("const {} {}{} = {};", type, prefix, name, sum));
      break;
    }
    const Dim& extent = kernel.axes[axis].extent;
    const std::string size = parenthesized(dim_text(extent, names));
    const bool once = extent.bounds(kernel.symbols).min >= furthest;
    out.line(fmt::format("const {} {}{} = {} {} {};", type, past, name, sum, once ? ">=" : "/", size));
    out.line(fmt::format("const {0} {1}{2} = {3} - {4}{2} * {5};", type, prefix, name, sum, past, size));
    step = past + name;
    if (once) furthest = 1;
  }
  return names;
}

RunValues::RunValues(const Kernel& kernel, const Lanes& lanes, const std::vector<InstrId>& instrs,
                     const std::vector<InstrId>& asked)
    : kernel_(&kernel), lanes_(lanes) {
  if (!lanes.flat || lanes.in_row || kernel.axes.size() < 2) return;
  for (const InstrId id : instrs) {
    const Instr& instr = kernel.instr(id);
    if (instr.depends == 0 || !lasts(id)) continue;
    if (instr.kind == InstrKind::load) {
      if (is_placed(instr)) members_.insert(id);
      continue;
    }
    if (instr.kind == InstrKind::index || instr.kind == InstrKind::inside) {
      if (is_placed(instr)) helpers_.insert(id);
      continue;
    }
    if (instr.kind != InstrKind::map && instr.kind != InstrKind::round) continue;
    const auto known = [&](InstrId operand) {
      return kernel.instr(operand).depends == 0 || has(operand) || helpers_.count(operand) != 0;
    };
    const std::vector<InstrId> operands = operands_of(instr);
    if (!std::all_of(operands.begin(), operands.end(), known)) continue;
    const bool loads = std::any_of(operands.begin(), operands.end(), [&](InstrId operand) { return has(operand); });
    (loads ? members_ : helpers_).insert(id);
  }
  const auto take = [&](InstrId id) {
    if (has(id)) taken_.emplace(id, level_of(id));
  };
  for (const InstrId id : asked) take(id);
  for (const InstrId id : instrs)
    if (!has(id))
      for (const InstrId operand : operands_of(kernel.instr(id))) take(operand);
}

// The innermost axis along which the value varies.
std::size_t RunValues::level_of(InstrId id) const {
  return static_cast<std::size_t>(std::bit_width(kernel_->instr(id).depends)) - 1;
}

// Points of the axes inside.
Dim RunValues::points_inside(std::size_t axis) const {
  Dim points(1);
  for (std::size_t inner = axis + 1; inner < kernel_->axes.size(); ++inner)
    points = points * kernel_->axes[inner].extent;
  return points;
}

// Whether a run of points that share the value is as long as a vector.
bool RunValues::lasts(InstrId id) const {
  const std::size_t level = level_of(id);
  return level + 1 < kernel_->axes.size() && points_inside(level).bounds(kernel_->symbols).min >= lanes_.vector;
}

// Whether no other value decides what it is.
bool RunValues::is_placed(const Instr& instr) const {
  const auto of_axes = [](const std::vector<Guard>& guards) {
    return std::all_of(guards.begin(), guards.end(), [](const Guard& guard) { return guard.index.values().empty(); });
  };
  return instr.access.offset.values().empty() && instr.index.values().empty() && of_axes(instr.access.guards) &&
         of_axes(instr.guards);
}

// What leads to the values that are taken at the steps of an axis, in definition order.
std::vector<InstrId> RunValues::steps_to(std::size_t level) const {
  std::set<InstrId> steps;
  for (const auto& [id, of] : taken_)
    if (of == level) steps.insert(id);
  for (InstrId id = static_cast<InstrId>(kernel_->body.size()); id-- > 0;)
    if (steps.count(id) != 0)
      for (const InstrId operand : operands_of(kernel_->instr(id)))
        if (has(operand) || helpers_.count(operand) != 0) steps.insert(operand);
  return {steps.begin(), steps.end()};
}

void RunValues::define(Writer& out) const {
  std::set<std::size_t> levels;
  for (const auto& [id, level] : taken_) levels.insert(level);
  for (const std::size_t level : levels) {
    const std::string type = index_type(*kernel_), name = kernel_->axes[level].name;
    const Names names = names_of(*kernel_);
    std::string inside;  // points of the run before this one
    for (std::size_t axis = level + 1; axis < kernel_->axes.size(); ++axis) {
      const Dim each = points_inside(axis);
      inside += fmt::format("{}{}{}", inside.empty() ? "" : " + ", names.axes[axis],
                            each.is(1) ? "" : fmt::format(" * {}", parenthesized(dim_text(each, names))));
    }
    out.line(fmt::format("const {} rest_{} = {} - ({});", type, name,
                         parenthesized(dim_text(points_inside(level), names)), inside),
             fmt::format("points up to the next {}", name));
    for (const auto& [id, of] : taken_)
      if (of == level) out.line(fmt::format("{} r{}[2];", value_type(kernel_->instr(id).dtype), id));
    out.unrolled("next", 2);
    out.line(fmt::format("const {0} steps = next != 0 && rest_{1} < {2};", type, name, lanes_.vector));
    const Names at = advance(out, *kernel_, level, "steps", 1, "next_");
    const std::vector<InstrId> steps = steps_to(level);
    cuda::define(out, *kernel_, steps, at);
    for (const auto& [id, of] : taken_)
      if (of == level) out.line(fmt::format("r{0}[next] = v{0};", id));
    out.close();
  }
}

std::string RunValues::at(InstrId id, const std::string& j) const {
  return fmt::format("{0} >= rest_{1} ? r{2}[1] : r{2}[0]", j, kernel_->axes[taken_.at(id)].name, id);
}

}  // namespace tenon::codegen::cuda
