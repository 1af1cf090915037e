// See names.h.
#include "codegen/emit/cuda/text/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/text/writer.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {
namespace {

std::string symbol_name(const Names& names, const std::string& symbol) {
  const std::vector<std::string>& dims = names.kernel->dims;
  const auto found = std::find(dims.begin(), dims.end(), symbol);
  TENON_CHECK(found != dims.end(), "symbol is not among the kernel's dims");
  return fmt::format("{}n{}", names.widened ? "(i64)" : "", found - dims.begin());
}

std::string constant_text(std::int64_t value) {
  return value > INT32_MAX || value < INT32_MIN ? fmt::format("{}ll", value) : std::to_string(value);
}

// "a + b" or "a - b" for b = "-…".
void append_summand(std::string& sum, const std::string& text) {
  if (sum.empty()) {
    sum = text;
  } else if (text.front() == '-') {
    sum += " - " + text.substr(1);
  } else {
    sum += " + " + text;
  }
}

std::string atom_text(const IndexAtom& atom, const Names& names) {
  const auto divided = [&](const char* operation, const char* function) {
    const std::string operand = index_text(atom.operand, names);
    const std::string divisor = dim_text(atom.divisor, names);
    if (bounds(atom.operand, names.kernel->context()).min < 0)
      return fmt::format("{}({}, {})", function, operand, divisor);
    return fmt::format("{} {} {}", parenthesized(operand), operation, parenthesized(divisor));
  };
  switch (atom.kind) {
    case IndexAtom::Kind::axis: return names.axes[static_cast<std::size_t>(atom.id)];
    case IndexAtom::Kind::value:
      return fmt::format("({}){}", names.widened ? "i64" : index_type(*names.kernel),
                         value_name(*names.kernel, atom.id));
    case IndexAtom::Kind::floor_div: return divided("/", "floor_div");
    case IndexAtom::Kind::mod: return divided("%", "floor_mod");
  }
  return {};
}

std::string term_text(const IndexTerm& term, const Names& names) {
  const std::string atom = atom_text(*term.atom, names);
  if (term.coefficient.is(1)) return atom;
  const std::string factor = atom.find(' ') == std::string::npos ? atom : parenthesized(atom);
  if (term.coefficient.is(-1)) return "-" + factor;
  const std::string coefficient = dim_text(term.coefficient, names);
  const bool constant = term.coefficient.is_constant();
  return fmt::format("{} * {}", constant ? coefficient : parenthesized(coefficient), factor);
}

}  // namespace

Names names_of(const Kernel& kernel) {
  Names names{&kernel, {}};
  for (const Axis& axis : kernel.axes) names.axes.push_back(axis.name);
  return names;
}

Names widened(Names names) {
  if (names.kernel->wide_index || names.widened) return names;
  names.widened = true;
  for (std::string& axis : names.axes) axis = "(i64)" + axis;
  return names;
}

std::string index_type(const Kernel& kernel) { return kernel.wide_index ? "i64" : "int"; }
std::string unsigned_index_type(const Kernel& kernel) { return kernel.wide_index ? "u64" : "u32"; }

const std::string& operand_name(const Kernel& kernel, int operand) {
  return kernel.operands[static_cast<std::size_t>(operand)].name;
}

const Operand& operand_at(const Kernel& kernel, const Access& access) {
  return kernel.operands[static_cast<std::size_t>(access.operand)];
}

DType stored_dtype(const Kernel& kernel, const Access& access) { return operand_at(kernel, access).dtype; }

const Store& store_at(const Kernel& kernel, int store) { return kernel.stores[static_cast<std::size_t>(store)]; }

std::string value_name(const Kernel& kernel, InstrId instr) {
  const Instr& what = kernel.instr(instr);
  return what.kind == InstrKind::literal ? parenthesized(literal(what.literal, what.dtype)) : fmt::format("v{}", instr);
}

std::string keys_name(InstrId seed) { return fmt::format("keys{}", seed); }

std::string dim_text(const Dim& dim, const Names& names) {
  if (dim.is_constant()) return constant_text(dim.constant());
  // Dim's own text is canonical: words are symbols, or "floordiv" before a parenthesis.
  const std::string text = dim.str();
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    if (end == i) {
      result += text[i] == '*' ? std::string(" * ") : std::string(1, text[i]);
      ++end;
    } else if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      result += word.size() > 9 ? word + "ll" : word;
    } else {
      result += end < text.size() && text[end] == '(' ? "floor_div" : symbol_name(names, word);
    }
    i = end;
  }
  for (std::size_t at = 0; (at = result.find(" + -", at)) != std::string::npos;) result.replace(at, 4, " - ");
  return result;
}

std::string index_text(const Index& index, const Names& names) {
  std::string sum;
  for (const IndexTerm& term : index.terms()) append_summand(sum, term_text(term, names));
  if (sum.empty() || !index.constant().is(0)) append_summand(sum, dim_text(index.constant(), names));
  return sum;
}

std::string guard_text(const std::vector<Guard>& guards, const Names& names) {
  const IndexContext context = names.kernel->context();
  std::string conjunction;
  const auto require = [&](const std::string& text) { conjunction += (conjunction.empty() ? "" : " && ") + text; };
  for (const Guard& guard : guards) {
    if (proven_inside(guard.index, guard.bound, context)) continue;
    const std::string index = index_text(guard.index, names);
    const SymbolBounds range = bounds(guard.index, context);
    if (range.min < 0) require(fmt::format("{} >= 0", index));
    if (!(guard.bound.is_constant() && range.max < guard.bound.constant()))
      require(guard.bound.is(1) ? index + " == 0" : fmt::format("{} < {}", index, dim_text(guard.bound, names)));
  }
  return conjunction;
}

std::vector<std::string> dimension_definitions(const Kernel& kernel) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < kernel.dims.size(); ++i)
    lines.push_back(kernel.wide_index ? fmt::format("const i64 n{0} = dim{0};", i)
                                      : fmt::format("const int n{0} = (int)dim{0};", i));
  return lines;
}

// What is read through const and __restrict__ the compiler takes for constant while the kernel runs (ld.global.nc), and
// ptxas moves such loads up, ahead of griddepcontrol.wait too, where a kernel ahead may still be writing. That written
// pointers are __restrict__ says as much about what overlaps.
std::string pointer_parameter(const Kernel& kernel, const Operand& operand, const std::string& name) {
  const bool restricted = operand.written || (takes_inputs_for_constant(kernel) && !operand.of_run);
  return fmt::format("{}{}*{} {}", operand.written ? "" : "const ", storage_type(operand.dtype),
                     restricted ? " __restrict__" : "", name);
}

// Loads should come ahead of barriers that stand before their use; a map without a tile has none.
bool takes_inputs_for_constant(const Kernel& kernel) {
  const auto* map = std::get_if<MapSchedule>(&kernel.schedule);
  return map == nullptr || map->tile.has_value();
}

std::string parameters(const Kernel& kernel, bool scratch, bool zeroed) {
  std::string list;
  for (const Operand& operand : kernel.operands)
    list += (list.empty() ? "" : ", ") + pointer_parameter(kernel, operand, operand.name);
  if (scratch) list += fmt::format("{}u8* scratch", list.empty() ? "" : ", ");
  if (zeroed) list += fmt::format("{}u8* zeroed", list.empty() ? "" : ", ");
  for (std::size_t i = 0; i < kernel.dims.size(); ++i) list += fmt::format("{}i64 dim{}", list.empty() ? "" : ", ", i);
  return list;
}

}  // namespace tenon::codegen::cuda
