// What the fuzz targets of both readers ask of one input.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/graph/build.h"
#include "ir/text/text.h"

namespace tenon::ir {

/// Stops the program with the reason and what belongs to it.
[[noreturn]] inline void finding(const char* reason, const std::string& detail) {
  std::fprintf(stderr, "FINDING: %s\n%s\n", reason, detail.c_str());
  std::abort();
}

inline void check_round_trip(const Graph& graph) {
  verify(graph);
  const std::string text = print(graph);
  const Graph from_text = parse(text);
  if (!same(graph, from_text)) finding("parse(print(g)) differs from g", text + "\n" + print(from_text));
  if (print(from_text) != text) finding("printing is not stable", text + "\n" + print(from_text));
  const std::string json = print_json(graph);
  const Graph from_json = parse_json(json);
  if (!same(graph, from_json)) finding("parse_json(print_json(g)) differs from g", json + "\n" + print_json(from_json));
  if (print_json(from_json) != json) finding("printing JSON is not stable", json + "\n" + print_json(from_json));
}

template <typename Parse>
void fuzz_reader(std::string_view input, Parse parse_form) {
  Graph graph;
  try {
    graph = parse_form(input, "fuzz");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) finding("an internal error", error.what());
    return;
  }
  try {
    check_round_trip(graph);
  } catch (const Error& error) {
    finding("what was printed is not read back", error.what() + ("\n" + print(graph)));
  }
}

inline void fuzz_format(std::string_view input) {
  std::string tidy;
  try {
    tidy = format(input);
  } catch (const Error&) {
    return;  // parse's, which fuzz_reader has judged
  }
  try {
    if (!same(parse(tidy), parse(input))) finding("formatting changes the graph", tidy);
    if (format(tidy) != tidy) finding("formatting is not stable", tidy + "\n" + format(tidy));
  } catch (const Error& error) {
    finding("what was formatted is not read back", error.what() + ("\n" + tidy));
  }
}

}  // namespace tenon::ir
