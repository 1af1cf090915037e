// What the verifier refuses: graphs that no pass may leave behind.
#include <gtest/gtest.h>

#include "ir/graph/build.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

std::string refusal_of(const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    return error.message().substr(0, error.message().find(" (check"));
  }
  return "no error";
}

TEST(Verify, AGraphReturnsSomething) {
  Graph graph = parse("graph f(x: f32[4]) {\n  y = exp(x)\n  return y\n}\n");
  EXPECT_EQ(refusal_of(graph), "no error");
  graph.outputs.clear();
  graph.outputs_names.clear();
  graph.updates.clear();
  EXPECT_EQ(refusal_of(graph), "invalid graph: it returns nothing");
}

}  // namespace
}  // namespace tenon::ir
