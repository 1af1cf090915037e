// A kernel as text, and the invariants that every kernel keeps.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/kernel/kernel.h"
#include "codegen/kernel/visit.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

std::string str(const ir::Scalar& scalar) {
  if (const auto* real = std::get_if<double>(&scalar)) return fmt::format("{}", *real);
  if (const auto* integer = std::get_if<std::int64_t>(&scalar)) return fmt::format("{}", *integer);
  return std::get<bool>(scalar) ? "true" : "false";
}

// The text of an index with the axes' names in place of their numbers.
std::string str(const Kernel& kernel, const Index& index);

std::string str(const Kernel& kernel, const IndexAtom& atom) {
  switch (atom.kind) {
    case IndexAtom::Kind::axis: return kernel.axes[static_cast<std::size_t>(atom.id)].name;
    case IndexAtom::Kind::value: return fmt::format("v{}", atom.id);
    case IndexAtom::Kind::floor_div: return fmt::format("({}) / {}", str(kernel, atom.operand), atom.divisor.str());
    case IndexAtom::Kind::mod: return fmt::format("({}) % {}", str(kernel, atom.operand), atom.divisor.str());
  }
  return {};
}

std::string str(const Kernel& kernel, const Index& index) {
  std::string text;
  for (const IndexTerm& term : index.terms()) {
    if (!text.empty()) text += " + ";
    if (!term.coefficient.is(1))
      text += (term.coefficient.is_constant() ? term.coefficient.str() : "(" + term.coefficient.str() + ")") + "*";
    text += str(kernel, *term.atom);
  }
  if (text.empty() || !index.constant().is(0)) text += (text.empty() ? "" : " + ") + index.constant().str();
  return text;
}

std::string str(const Kernel& kernel, const std::vector<Guard>& guards) {
  std::string text;
  for (const Guard& guard : guards)
    text += fmt::format("{}0 <= {} < {}", text.empty() ? "" : ", ", str(kernel, guard.index), guard.bound.str());
  return text;
}

std::string str(const Kernel& kernel, const Access& access) {
  const std::string guards = str(kernel, access.guards);
  return fmt::format("{}[{}]{}", kernel.operands[static_cast<std::size_t>(access.operand)].name,
                     str(kernel, access.offset), guards.empty() ? "" : " if " + guards);
}

std::string args_text(const Instr& instr) {
  std::string text;
  for (InstrId arg : instr.args) text += fmt::format("{}v{}", text.empty() ? "" : ", ", arg);
  return text;
}

std::string axes_text(const Kernel& kernel, const Instr& instr) {
  std::string text;
  for (int axis : instr.axes) text += (text.empty() ? "" : ", ") + kernel.axes[static_cast<std::size_t>(axis)].name;
  return text;
}

// Before the name of the op: "one_plus tanh(v3)".
const char* composed_text(Composed composed) {
  switch (composed) {
    case Composed::none: return "";
    case Composed::logistic: return "logistic ";
    case Composed::one_plus: return "one_plus ";
    case Composed::tanh_of_softplus: return "of_softplus ";
    case Composed::of_share: return "of_share ";
  }
  return "";
}

std::string right_side(const Kernel& kernel, const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::literal: return str(instr.literal);
    case InstrKind::load: return "load " + str(kernel, instr.access);
    case InstrKind::index: return "index " + str(kernel, instr.index);
    case InstrKind::inside: return "inside " + str(kernel, instr.guards);
    case InstrKind::map:
      return fmt::format("{}{}{}{}({})", instr.narrow ? "narrow " : "", instr.rounded ? "rounded " : "",
                         composed_text(instr.composed), ir::name_of(instr.op), args_text(instr));
    case InstrKind::round: return fmt::format("round({})", args_text(instr));
    case InstrKind::random:
      return fmt::format("random_bits({}, {}, stream={}, word={})", args_text(instr), str(kernel, instr.index),
                         instr.stream, instr.word);
    case InstrKind::reduce:
      return fmt::format("{} over {}: {}", ir::name_of(instr.op), axes_text(kernel, instr), args_text(instr));
    case InstrKind::contract:
      return fmt::format("contract{}{} over {}: {}", instr.tf32 ? " tf32" : "",
                         instr.block > 0 ? fmt::format(" by {}", instr.block) : "", axes_text(kernel, instr),
                         args_text(instr));
  }
  return {};
}

std::string str(const Attention& attention) {
  std::string text;
  const auto add = [&](const char* part, InstrId id) {
    if (id >= 0) text += fmt::format("{}{} v{}", text.empty() ? "" : ", ", part, id);
  };
  add("scores", attention.scores);
  add("score", attention.score);
  add("maximum", attention.maximum);
  add("shift", attention.shift);
  add("weight", attention.weight);
  add("sum", attention.sum);
  for (InstrId id : attention.scaling) add("scaling", id);
  add("mix", attention.mix);
  return text;
}

}  // namespace

std::int64_t typical(const Dim& extent, const Symbols& symbols) {
  const SymbolBounds range = extent.bounds(symbols);
  return std::clamp<std::int64_t>(1024, range.min, range.max);
}

bool has_outer(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [&](const Instr& instr) {
    return instr.kind == InstrKind::reduce && !kernel.axes[static_cast<std::size_t>(instr.axes[0])].reduced;
  });
}

std::vector<bool> outer_values(const Kernel& kernel) {
  std::vector<bool> outer(kernel.body.size(), false);
  for (std::size_t i = 0; i < outer.size(); ++i) {
    const Instr& instr = kernel.body[i];
    const bool over_kept =
        instr.kind == InstrKind::reduce && !kernel.axes[static_cast<std::size_t>(instr.axes[0])].reduced;
    outer[i] = over_kept || std::any_of(instr.args.begin(), instr.args.end(),
                                        [&](InstrId arg) { return outer[static_cast<std::size_t>(arg)]; });
  }
  return outer;
}

std::string print(const Kernel& kernel) {
  std::string text = fmt::format("kernel {} ({}, {}-bit offsets{})\n", kernel.name, ir::name_of(kernel.kernel_class),
                                 kernel.wide_index ? 64 : 32,
                                 kernel.wide_random && !kernel.wide_index ? ", random numbers counted in 64" : "");
  for (const Axis& axis : kernel.axes)
    text += fmt::format("  axis {}: {}{}\n", axis.name, axis.extent.str(), axis.reduced ? " reduced" : "");
  for (const Operand& operand : kernel.operands)
    text += fmt::format("  {} {}: {}{}{}\n", operand.written ? "write" : "read", operand.name,
                        tenon::name_of(operand.dtype), tenon::str(operand.shape), operand.of_run ? " of this run" : "");
  for (std::size_t i = 0; i < kernel.body.size(); ++i)
    text +=
        fmt::format("  v{}: {} = {}\n", i, tenon::name_of(kernel.body[i].dtype), right_side(kernel, kernel.body[i]));
  for (const Store& store : kernel.stores)
    text += fmt::format("  store {} = v{}\n", str(kernel, store.access), store.value);
  if (kernel.kernel_class == ir::KernelClass::attend) text += fmt::format("  attention {}\n", str(kernel.attention));
  text += fmt::format("  schedule {}\n", print(kernel.schedule));
  return text;
}

void verify(const Kernel& kernel) {
  const auto require = [&](bool holds, const std::string& what) { TENON_CHECK(holds, what + "\n" + print(kernel)); };
  bool seen_reduced = false;
  std::size_t kept = 0;
  for (const Axis& axis : kernel.axes) {
    require(axis.reduced || !seen_reduced, "kept axes come before reduced ones");
    seen_reduced = axis.reduced;
    kept += !axis.reduced;
  }
  require(kernel.kernel_class != ir::KernelClass::map || !kernel.axes.empty(), "a map kernel has an axis");
  require((kernel.kernel_class == ir::KernelClass::map) != seen_reduced, "reduced axes fit the kernel's class");
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    for (InstrId arg : instr.args)
      require(arg >= 0 && static_cast<std::size_t>(arg) < i, fmt::format("v{} uses a later value", i));
    const auto reduced = [&](int axis) { return kernel.axes[static_cast<std::size_t>(axis)].reduced; };
    const bool outer = kernel.kernel_class == ir::KernelClass::reduce && !instr.axes.empty() && !reduced(instr.axes[0]);
    if (outer) require(instr.axes.size() == kept, fmt::format("v{} combines some of the kept axes", i));
    for (int axis : instr.axes) require(reduced(axis) != outer, fmt::format("v{} combines kept and reduced axes", i));
    const bool combines = instr.kind == InstrKind::reduce || instr.kind == InstrKind::contract;
    require(combines != instr.axes.empty(), fmt::format("v{} and its combined axes", i));
  }
  for (const Store& store : kernel.stores) {
    require(store.value >= 0 && static_cast<std::size_t>(store.value) < kernel.body.size(), "a store of no value");
    require(kernel.operands[static_cast<std::size_t>(store.access.operand)].written, "a store to an input");
  }
  if (kernel.kernel_class == ir::KernelClass::attend) verify_attention(kernel);
}

}  // namespace tenon::codegen
