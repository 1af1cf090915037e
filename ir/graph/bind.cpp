// Symbols from concrete shapes: extents that are linear in one unknown decide it; then everything is checked.
#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/sizes.h"
#include "ir/interpret/interpret.h"

namespace tenon::ir {
namespace {

using Extents = std::vector<std::int64_t>;

[[noreturn]] void refuse(const std::string& message, const std::string& remedy) {
  throw Error(ErrorKind::argument, message, {}, remedy);
}

std::string shape_text(const Extents& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

void check_shapes(const Graph& graph, const std::vector<Extents>& shapes) {
  if (shapes.size() != graph.inputs.size())
    refuse(fmt::format("graph '{}' takes {} inputs, {} given", graph.name, graph.inputs.size(), shapes.size()),
           "give one array for each input, in the graph's order");
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    for (const std::int64_t extent : shapes[i])
      if (extent < 0)
        refuse(fmt::format("input '{}' has the shape {}", input.name, shape_text(shapes[i])), "extents are 0 or more");
    if (shapes[i].size() != input.type.shape.size())
      refuse(fmt::format("input '{}' has rank {}, {} has rank {}", input.name, shapes[i].size(), str(input.type),
                         input.type.shape.size()),
             fmt::format("give it as {}", str(input.type)));
  }
}

void check_given(const Graph& graph, const Bindings& given) {
  for (const auto& [name, value] : given)
    if (!graph.symbols.contains(name)) {
      std::string known;
      for (const auto& [symbol, bounds] : graph.symbols) known += (known.empty() ? "" : ", ") + symbol;
      refuse(fmt::format("graph '{}' has no dimension '{}'", graph.name, name),
             known.empty() ? "all its dimensions are constant" : "its dimensions are " + known);
    }
}

// The value of the only unknown of `dim` for which it equals `extent`; nothing when it is not linear in one unknown.
struct Solution {
  std::string symbol;
  std::int64_t value;
};
std::optional<Solution> solve(const Dim& dim, std::int64_t extent, const std::string& input, std::size_t axis) {
  std::set<std::string> unknown;
  dim.collect_symbols(unknown);
  if (unknown.size() != 1) return std::nullopt;
  const std::string& name = *unknown.begin();
  const std::int64_t offset = dim.evaluate({{name, 0}});
  std::int64_t slope = 0;
  if (__builtin_sub_overflow(dim.evaluate({{name, 1}}), offset, &slope) || slope == 0 ||
      !(Dim(slope) * Dim::symbol(name) + Dim(offset) == dim))
    return std::nullopt;
  std::int64_t distance = 0;
  if (__builtin_sub_overflow(extent, offset, &distance) || distance % slope != 0)
    refuse(fmt::format("input '{}': axis {} has extent {}, which {} never is", input, axis, extent, dim.str()),
           fmt::format("give an extent that is {} for a whole {}", dim.str(), name));
  return Solution{name, distance / slope};
}

// One round over all extents; whether a symbol was found.
bool solve_some(const Graph& graph, const std::vector<Extents>& shapes, Bindings& bindings) {
  bool found = false;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    for (std::size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const Dim dim = input.type.shape[axis].substitute(bindings);
      if (dim.is_constant()) continue;
      if (const auto solution = solve(dim, shapes[i][axis], input.name, axis)) {
        bindings.emplace(solution->symbol, solution->value);
        found = true;
      }
    }
  }
  return found;
}

// " with n = 3", for an expression that is more than a symbol.
std::string where_text(const Dim& dim, const Bindings& bindings) {
  std::set<std::string> names;
  dim.collect_symbols(names);
  if (names.size() == 1 && dim.str() == *names.begin()) return "";
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}{} = {}", text.empty() ? " with " : ", ", name, bindings.at(name));
  return text;
}

void check_extents(const Graph& graph, const std::vector<Extents>& shapes, const Bindings& bindings) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    for (std::size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const Dim& dim = input.type.shape[axis];
      const std::int64_t expected = dim.evaluate(bindings);
      if (expected == shapes[i][axis]) continue;
      if (dim.is_constant())
        refuse(fmt::format("input '{}': axis {} has extent {}, the graph says {}", input.name, axis, shapes[i][axis],
                           expected),
               fmt::format("give it as {}", str(input.type)));
      refuse(fmt::format("input '{}': axis {} has extent {}, but {} is {}{}", input.name, axis, shapes[i][axis],
                         dim.str(), expected, where_text(dim, bindings)),
             "the same symbol must have the same value wherever it stands");
    }
  }
}

void check_bounds(const Graph& graph, const Bindings& bindings) {
  for (const auto& [name, bounds] : graph.symbols) {
    const auto found = bindings.find(name);
    if (found == bindings.end())
      throw Error(ErrorKind::argument, fmt::format("no input's shape decides the dimension '{}'", name),
                  Place{{}, 0, 0, {}, fmt::format("bindings[{}]", name)}, "give it a value in the bindings");
    const std::int64_t value = found->second;
    if (value < bounds.min)
      refuse(fmt::format("dimension '{}' is {}, the graph wants at least {}", name, value, bounds.min),
             fmt::format("give inputs with {} >= {}", name, bounds.min));
    if (value > bounds.max)
      refuse(fmt::format("dimension '{}' is {}, the graph wants at most {}", name, value, bounds.max),
             fmt::format("give inputs with {} <= {}", name, bounds.max));
    if (value % bounds.divisor != 0)
      refuse(fmt::format("dimension '{}' is {}, the graph wants a multiple of {}", name, value, bounds.divisor),
             fmt::format("pad it to {}", static_cast<std::uint64_t>(value - value % bounds.divisor) +
                                             static_cast<std::uint64_t>(bounds.divisor)));
  }
}

// "output 'y'", "'h'", "the result of add".
std::string described(const Graph& graph, ValueId value) {
  const auto output = std::find(graph.outputs.begin(), graph.outputs.end(), value);
  if (output != graph.outputs.end())
    return fmt::format("output '{}'", graph.outputs_names[static_cast<std::size_t>(output - graph.outputs.begin())]);
  if (graph.producer(value).op == Op::input) return fmt::format("input '{}'", graph.value(value).name);
  if (!graph.value(value).name.empty()) return fmt::format("'{}'", graph.value(value).name);
  return fmt::format("the result of {}", name_of(graph.producer(value).op));
}

std::string where_text(const Shape& shape, const Bindings& bindings) {
  std::set<std::string> names;
  for (const Dim& extent : shape) extent.collect_symbols(names);
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}{} = {}", text.empty() ? " with " : ", ", name, bindings.at(name));
  return text;
}

// The extents as numbers; nothing when one leaves 64 bits.
std::optional<Extents> evaluated(const Shape& shape, const Bindings& bindings) {
  Extents extents;
  try {
    for (const Dim& extent : shape) extents.push_back(extent.evaluate(bindings));
  } catch (const Error&) {
    return std::nullopt;
  }
  return extents;
}

// The bytes of every value are a number, also where an extent of 0 hides how large the others are: whoever multiplies
// the extents of a bound graph later need not look.
void check_sizes(const Graph& graph, const Bindings& bindings) {
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const Type& type = graph.values[i].type;
    std::optional<Extents> extents = evaluated(type.shape, bindings);
    if (extents) {
      Extents filled = *extents;
      std::replace(filled.begin(), filled.end(), std::int64_t{0}, std::int64_t{1});
      if (byte_count(type.dtype, filled)) continue;
    }
    const auto value = static_cast<ValueId>(i);
    const bool negative = extents && std::any_of(extents->begin(), extents->end(), [](auto e) { return e < 0; });
    throw Error(negative ? ErrorKind::argument : ErrorKind::resource,
                fmt::format("{} is {}{}: {}", described(graph, value), str(type), where_text(type.shape, bindings),
                            negative ? fmt::format("the shape {}", shape_text(*extents)) : "more than 2^50 bytes"),
                graph.producer(value).place, "run at other sizes");
  }
}

}  // namespace

Bindings bind_symbols(const Graph& graph, const std::vector<Extents>& shapes, const Bindings& given) {
  check_shapes(graph, shapes);
  check_given(graph, given);
  Bindings bindings = given;
  while (solve_some(graph, shapes, bindings)) {
  }
  check_bounds(graph, bindings);
  check_extents(graph, shapes, bindings);
  check_sizes(graph, bindings);
  return bindings;
}

void check_bindings(const Graph& graph, const Bindings& bindings) {
  check_given(graph, bindings);
  check_bounds(graph, bindings);
  check_sizes(graph, bindings);
}

}  // namespace tenon::ir
