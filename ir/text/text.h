// The text form (.tn) and the JSON form of a graph, both ways: parse(print(g)) == g.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// Reads one graph. `file` names the source in errors. Error(parse) or Error(type) with line, column and remedy.
Graph parse(std::string_view text, const std::string& file = "");
/// Writes the graph so that parse gives an equal graph; literals of rank 0 stand inline.
std::string print(const Graph& graph);
/// By node its line of that text without types, "v1 = sum(x, axis=-1)"; empty for inputs and literals.
std::vector<std::string> statements(const Graph& graph);

/// The text form laid out canonically, with its comments, nested calls and blank lines kept: what `tenon fmt` writes.
/// Throws what parse throws. format(format(t)) == format(t), and parse(format(t)) equals parse(t).
std::string format(std::string_view text, const std::string& file = "");

Graph parse_json(std::string_view text, const std::string& file = "");
std::string print_json(const Graph& graph);

/// A graph file's content, and which form it has.
struct GraphText {
  std::string text;
  std::string name;  ///< for errors: the path, or "<stdin>"
  bool json = false;
};

/// Reads a `.tn` or `.json` file ("-" is standard input, text form unless it starts with '{') without parsing it.
GraphText read_text(const std::string& path);

/// read_text, then parse or parse_json.
Graph read_file(const std::string& path);

/// Equal up to unnamed values' numbering, dead nodes, and places.
bool same(const Graph& a, const Graph& b);

}  // namespace tenon::ir
