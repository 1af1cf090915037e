// See masked_scores.h.
#include "codegen/lower/masked_scores.h"

#include <limits>

#include "codegen/kernel/uses.h"
#include "ir/ops/formats.h"

namespace tenon::codegen {
namespace {

using ir::Op;

constexpr double kLowest = -0x1p100;  // and what is lower: of scores up to 2^98 none comes near

Instr literal(DType dtype, double value) {
  Instr instr;
  instr.kind = InstrKind::literal;
  instr.dtype = dtype;
  instr.literal = value;
  return instr;
}

bool has_infinity(const Instr& instr) { return is_real(instr.dtype) && ir::real_format(instr.dtype).has_infinity; }

// A cast or rounding that leaves -inf what it is.
bool keeps_infinity(const Kernel& kernel, const Instr& instr) {
  const bool rounds = instr.kind == InstrKind::round || (instr.kind == InstrKind::map && instr.op == Op::cast);
  return rounds && has_infinity(instr) && has_infinity(kernel.instr(instr.args[0]));
}

}  // namespace

std::set<ir::NodeId> sums_of_score(const ir::Graph& graph, const ir::Attention& attention) {
  std::set<ir::NodeId> sums, seen;
  std::vector<ir::ValueId> pending{attention.score};
  while (!pending.empty()) {
    const ir::NodeId id = graph.value(pending.back()).producer;
    pending.pop_back();
    const ir::Node& node = graph.node(id);
    const bool passes = node.op == Op::add || node.op == Op::where || node.op == Op::cast ||
                        (ir::kind_of(node.op) == ir::Kind::view && node.operands.size() == 1);
    if (!passes || !seen.insert(id).second) continue;
    if (node.op == Op::add) sums.insert(id);
    pending.insert(pending.end(), node.operands.begin() + (node.op == Op::where ? 1 : 0), node.operands.end());
  }
  return sums;
}

ir::NodeId lone_selection(const ir::Graph& graph, const ir::Attention& attention) {
  ir::NodeId selection = -1;
  std::set<std::pair<ir::NodeId, bool>> seen;
  std::vector<std::pair<ir::ValueId, bool>> pending{{attention.score, true}};  // whether only sums take it on its way
  while (!pending.empty()) {
    auto [value, summed] = pending.back();
    pending.pop_back();
    const ir::NodeId id = graph.value(value).producer;
    if (id == attention.scores || !seen.insert({id, summed}).second) continue;
    const ir::Node& node = graph.node(id);
    const ir::Kind kind = ir::kind_of(node.op);
    std::size_t first = 0;
    if (node.op == Op::where) {
      if (selection >= 0 || !summed) return -1;
      selection = id, first = 1;
    } else if (node.op == Op::sub || node.op == Op::mul || node.op == Op::neg || node.op == Op::tanh) {
      summed = false;
    } else if (node.op != Op::add && node.op != Op::cast && (kind != ir::Kind::source || node.op == Op::input) &&
               (kind != ir::Kind::view || node.operands.size() != 1)) {
      return -1;
    }
    for (std::size_t i = first; i < node.operands.size(); ++i) pending.emplace_back(node.operands[i], summed);
  }
  return selection;
}

bool is_lowest(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(behind_casts(kernel, id));
  if (instr.kind != InstrKind::literal || !is_real(instr.dtype)) return false;
  return std::visit([](auto value) { return static_cast<double>(value) <= kLowest; }, instr.literal);
}

InstrId unmasked(const Kernel& kernel, InstrId id, std::vector<Mask>& masks, const Append& append) {
  const Instr instr = kernel.instr(id);  // a copy: the body grows
  if (instr.kind == InstrKind::map && instr.op == Op::where && has_infinity(instr)) {
    for (const bool holds : {true, false})
      if (is_minus_infinity(kernel, instr.args[holds ? 2 : 1])) {
        masks.push_back({instr.args[0], holds, instr.args[holds ? 2 : 1]});
        return unmasked(kernel, instr.args[holds ? 1 : 2], masks, append);
      }
  }
  if (!keeps_infinity(kernel, instr)) return id;
  const InstrId inner = unmasked(kernel, instr.args[0], masks, append);
  if (inner == instr.args[0]) return id;
  if (is_zero(kernel.instr(inner))) return append(literal(instr.dtype, 0));
  Instr cast = instr;
  cast.args = {inner};
  cast.depends = 0;  // what appends it finds out
  return append(std::move(cast));
}

InstrId masked(const Kernel& kernel, InstrId id, const std::vector<Mask>& masks, const Append& append) {
  const DType dtype = kernel.instr(id).dtype;
  InstrId nothing = masks.front().nothing;
  if (kernel.instr(nothing).dtype != dtype) nothing = append(literal(dtype, -std::numeric_limits<double>::infinity()));
  for (auto mask = masks.rbegin(); mask != masks.rend(); ++mask) {
    Instr selection;
    selection.kind = InstrKind::map;
    selection.dtype = dtype;
    selection.op = Op::where;
    selection.args =
        mask->holds ? std::vector{mask->condition, id, nothing} : std::vector{mask->condition, nothing, id};
    selection.note = ir::name_of(Op::where);
    id = append(std::move(selection));
  }
  return id;
}

InstrId masked_sum(const Kernel& kernel, InstrId x, InstrId y, const Append& append,
                   const std::function<InstrId(InstrId, InstrId)>& add) {
  std::vector<Mask> masks;
  const InstrId left = unmasked(kernel, x, masks, append), right = unmasked(kernel, y, masks, append);
  if (masks.empty() || !has_infinity(kernel.instr(x))) return -1;
  const InstrId sum = is_zero(kernel.instr(right)) ? left : is_zero(kernel.instr(left)) ? right : add(left, right);
  return masked(kernel, sum, masks, append);
}

}  // namespace tenon::codegen
