// See uses.h.
#include "codegen/kernel/uses.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace tenon::codegen {
namespace {

void append(std::vector<InstrId>& to, const std::vector<int>& from) { to.insert(to.end(), from.begin(), from.end()); }

void append_access(std::vector<InstrId>& to, const Access& access) {
  append(to, access.offset.values());
  for (const Guard& guard : access.guards) append(to, guard.index.values());
}

}  // namespace

std::vector<InstrId> operands_of(const Instr& instr) {
  std::vector<InstrId> operands = instr.args;
  if (instr.kind == InstrKind::load) append_access(operands, instr.access);
  append(operands, instr.index.values());
  for (const Guard& guard : instr.guards) append(operands, guard.index.values());
  return operands;
}

InstrId behind_casts(const Kernel& kernel, InstrId id) {
  while (true) {
    const Instr& instr = kernel.instr(id);
    const bool cast = instr.kind == InstrKind::round || (instr.kind == InstrKind::map && instr.op == ir::Op::cast);
    if (!cast || !is_real(instr.dtype) || !is_real(kernel.instr(instr.args[0]).dtype)) return id;
    id = instr.args[0];
  }
}

bool is_zero(const Instr& instr) {
  return instr.kind == InstrKind::literal &&
         std::visit([](auto value) { return static_cast<double>(value) == 0; }, instr.literal);
}

std::vector<InstrId> roots_of(const Store& store) {
  std::vector<InstrId> roots = {store.value};
  append_access(roots, store.access);
  return roots;
}

std::vector<InstrId> roots_of(const Kernel& kernel, const std::vector<int>& stores) {
  std::vector<InstrId> roots;
  for (int store : stores) append(roots, roots_of(kernel.stores[static_cast<std::size_t>(store)]));
  return roots;
}

std::uint64_t axes_of(const Kernel& kernel, const Store& store) {
  std::uint64_t axes = 0;
  for (InstrId id : roots_of(store)) axes |= kernel.instr(id).depends;
  const auto add = [&](const Index& index) {
    for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (index.depends_on(static_cast<int>(axis))) axes |= std::uint64_t{1} << axis;
  };
  add(store.access.offset);
  for (const Guard& guard : store.access.guards) add(guard.index);
  return axes;
}

std::vector<InstrId> needed(const Kernel& kernel, const std::vector<InstrId>& roots, const std::vector<bool>& defined) {
  std::vector<bool> marked(kernel.body.size(), false);
  for (InstrId root : roots) marked[static_cast<std::size_t>(root)] = true;
  std::vector<InstrId> result;
  for (std::size_t i = kernel.body.size(); i-- > 0;) {  // operands come before their users
    if (!marked[i] || defined[i]) continue;
    result.push_back(static_cast<InstrId>(i));
    for (InstrId operand : operands_of(kernel.body[i])) marked[static_cast<std::size_t>(operand)] = true;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

std::vector<InstrId> needed(const Kernel& kernel, const std::vector<InstrId>& roots) {
  return needed(kernel, roots, std::vector<bool>(kernel.body.size(), false));
}

bool contains(const std::vector<InstrId>& list, InstrId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

bool varies(const Kernel& kernel, InstrId id, int axis) { return (kernel.instr(id).depends >> axis & 1) != 0; }

bool is_minus_infinity(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(behind_casts(kernel, id));
  if (instr.kind != InstrKind::literal || !is_real(instr.dtype)) return false;
  const auto value = std::visit([](auto v) { return static_cast<double>(v); }, instr.literal);
  return value < 0 && std::isinf(value);
}

}  // namespace tenon::codegen
