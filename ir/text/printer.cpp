// Graph to text, in the one canonical layout: names as given where they can be read back, every result with its type.
#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "ir/text/literal.h"
#include "ir/text/naming.h"
#include "ir/text/read_checks.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

constexpr std::size_t kLineWidth = 120;

// A list of one is written bare where that reads better: axis=1, but shape=[4].
template <typename T, typename Format>
std::string list_text(const std::vector<T>& items, bool bare, Format format) {
  std::string text;
  for (const T& item : items) text.append(text.empty() ? "" : ", ").append(format(item));
  return bare && items.size() == 1 ? text : fmt::format("[{}]", text);
}

class Printer {
 public:
  explicit Printer(const Graph& graph)
      : graph_(graph), inlined_(inline_literals(graph)), names_(printed_names(graph, inlined_)) {}

  std::string run() {
    header();
    for (const Node& node : graph_.nodes)
      if (node.op != Op::input && !is_inlined(node)) statement(node);
    returns();
    text_ += "}\n";
    return std::move(text_);
  }

  std::vector<std::string> statements() const {
    std::vector<std::string> texts(graph_.nodes.size());
    for (std::size_t id = 0; id < texts.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.op == Op::input || is_inlined(node)) continue;
      for (ValueId result : node.results) texts[id] += (texts[id].empty() ? "" : ", ") + name(result);
      texts[id] += " = " + call(node);
    }
    return texts;
  }

 private:
  bool is_inlined(const Node& node) const { return inlined_[static_cast<std::size_t>(node.results.front())]; }
  const std::string& name(ValueId value) const { return names_.values[static_cast<std::size_t>(value)]; }
  std::string declaration(ValueId value) const { return fmt::format("{}: {}", name(value), str(graph_.type(value))); }

  void header() {
    std::string inputs, broken;
    for (ValueId input : graph_.inputs) {
      const std::string text = declaration(input);
      inputs += (inputs.empty() ? "" : ", ") + text;
      broken += (broken.empty() ? "\n  " : ",\n  ") + text;
    }
    const std::string tail = constraints();
    const std::string line = fmt::format("graph {}({}){} {{", names_.graph, inputs, tail);
    text_ = line.size() <= kLineWidth ? line : fmt::format("graph {}({}\n){} {{", names_.graph, broken, tail);
    text_ += "\n";
  }

  std::string constraints() const {
    std::vector<std::string> items;
    const std::set<std::string> decided = decided_symbols(graph_);
    for (const auto& [symbol, bounds] : graph_.symbols) {
      const std::size_t before = items.size();
      if (bounds.max != std::numeric_limits<std::int64_t>::max()) {
        items.push_back(fmt::format("{} in [{}, {}]", symbol, bounds.min, bounds.max));
      } else if (bounds.min != 0) {
        items.push_back(fmt::format("{} >= {}", symbol, bounds.min));
      }
      if (bounds.divisor != 1) items.push_back(fmt::format("{} % {} == 0", symbol, bounds.divisor));
      if (items.size() == before && !decided.contains(symbol)) items.push_back(fmt::format("{} >= 0", symbol));
    }
    return items.empty() ? "" : fmt::format(" where {}", fmt::join(items, ", "));
  }

  void statement(const Node& node) {
    std::string results;
    for (ValueId result : node.results) results += (results.empty() ? "" : ", ") + declaration(result);
    fmt::format_to(std::back_inserter(text_), "  {} = {}\n", results, call(node));
  }

  std::string call(const Node& node) const {
    std::string arguments;
    for (ValueId operand : node.operands) arguments += (arguments.empty() ? "" : ", ") + operand_text(operand);
    for (const AttrSpec& spec : info(node.op).attributes)
      if (const AttrValue* value = node.attrs.find(spec.name))
        fmt::format_to(std::back_inserter(arguments), "{}{}={}", arguments.empty() ? "" : ", ", spec.name,
                       attr_text(node, spec, *value));
    return fmt::format("{}({})", name_of(node.op), arguments);
  }

  std::string operand_text(ValueId operand) const {
    if (!inlined_[static_cast<std::size_t>(operand)]) return name(operand);
    return format_scalar(graph_.producer(operand).attrs.get<Scalar>("value"), graph_.type(operand).dtype);
  }

  std::string attr_text(const Node& node, const AttrSpec& spec, const AttrValue& value) const {
    switch (spec.type) {
      case AttrType::integer: return std::to_string(std::get<std::int64_t>(value));
      case AttrType::integers:
        return list_text(std::get<std::vector<std::int64_t>>(value), spec.name == "axis",
                         [](std::int64_t i) { return std::to_string(i); });
      case AttrType::real: return format_real(std::get<double>(value));
      case AttrType::boolean: return std::get<bool>(value) ? "true" : "false";
      case AttrType::string: return fmt::format("\"{}\"", std::get<std::string>(value));
      case AttrType::dtype: return std::string(tenon::name_of(std::get<DType>(value)));
      case AttrType::dims:
        return list_text(std::get<std::vector<Dim>>(value), false, [](const Dim& dim) { return dim.str(); });
      case AttrType::scalar: return format_scalar(std::get<Scalar>(value), graph_.type(node.results.front()).dtype);
    }
    return {};
  }

  void returns() {
    std::string items;
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      items += (items.empty() ? "" : ", ") + name(graph_.outputs[i]);
      if (names_.outputs[i] != name(graph_.outputs[i])) items += " as " + names_.outputs[i];
      if (graph_.updates[i] >= 0) items += " into " + name(graph_.inputs[static_cast<std::size_t>(graph_.updates[i])]);
    }
    text_ += "  return " + items + "\n";
  }

  const Graph& graph_;
  std::vector<bool> inlined_;
  Names names_;
  std::string text_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).run(); }

std::vector<std::string> statements(const Graph& graph) { return Printer(graph).statements(); }

}  // namespace tenon::ir
