// The text and JSON forms: what is written is read back equal, and printing is canonical.
#include "ir/text/text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "ir/graph/build.h"
#include "ir/ops/suggest.h"
#include "tests/harness/sample_calls.h"

namespace tenon::ir {
namespace {

void expect_round_trip(const Graph& graph) {
  const std::string text = print(graph);
  SCOPED_TRACE(text);
  const Graph from_text = parse(text);
  EXPECT_TRUE(same(graph, from_text));
  EXPECT_EQ(print(from_text), text);
  verify(from_text);
  const std::string json = print_json(graph);
  const Graph from_json = parse_json(json);
  EXPECT_TRUE(same(graph, from_json)) << json;
  EXPECT_EQ(print_json(from_json), json);
  EXPECT_EQ(print(from_json), text);
}

// What a graph with this body prints.
std::string printed(const std::string& text) {
  const Graph graph = parse(text);
  expect_round_trip(graph);
  return print(graph);
}

TEST(Text, PrintsOneStatementALineWithTypes) {
  EXPECT_EQ(printed("graph f(x: f32[rows, 4], s: f32) { return div(mul(x, s), 2) }"),
            "graph f(x: f32[rows, 4], s: f32[]) {\n"
            "  v0: f32[rows, 4] = mul(x, s)\n"
            "  out0: f32[rows, 4] = div(v0, 2.0)\n"
            "  return out0\n"
            "}\n");
}

TEST(Text, KeepsNamesAndMakesUpOthersAroundThem) {
  EXPECT_EQ(printed("graph f(v0: f32[4]) {\n  v2 = exp(neg(abs(v0)))\n  return v2 as y, neg(v2)\n}"),
            "graph f(v0: f32[4]) {\n"
            "  v1: f32[4] = abs(v0)\n"
            "  v3: f32[4] = neg(v1)\n"
            "  v2: f32[4] = exp(v3)\n"
            "  out1: f32[4] = neg(v2)\n"
            "  return v2 as y, out1\n"
            "}\n");
}

TEST(Text, ReadsCommentsBlankLinesAndSemicolons) {
  EXPECT_EQ(
      printed("\xEF\xBB\xBF# head\r\n\ngraph f ( # inputs\n  x : f32 [ 4 ] ,\n )\n where n in [ 1 , 2 ]\n{ # ü\n\n"
              "  y = add(x, # one\n      1); z = exp(y)\n\n  return y,\n    z ; # done\n}\n# end"),
      "graph f(x: f32[4]) where n in [1, 2] {\n"
      "  y: f32[4] = add(x, 1.0)\n"
      "  z: f32[4] = exp(y)\n"
      "  return y, z\n"
      "}\n");
}

TEST(Text, LiteralsTakeTheirPartnersDType) {
  EXPECT_EQ(printed("graph f(x: bf16[4], i: i8[4], m: bool[4], n: i64) {\n"
                    "  a = fma(1, x, 0x1.8p-1)\n"
                    "  b = add(-128, i)\n"
                    "  c = where(true, -inf, x)\n"
                    "  d = logical_and(m, false)\n"
                    "  e = take(x, -1)\n"
                    "  g = dropout(x, 42, p=0.25)\n"
                    "  h = random_uniform(0x7fffffffffffffff, shape=[2])\n"
                    "  return a, b, c, d, e, g, h\n}"),
            "graph f(x: bf16[4], i: i8[4], m: bool[4], n: i64[]) {\n"
            "  a: bf16[4] = fma(1.0, x, 0.75)\n"
            "  b: i8[4] = add(-128, i)\n"
            "  c: bf16[4] = where(true, -inf, x)\n"
            "  d: bool[4] = logical_and(m, false)\n"
            "  e: bf16[] = take(x, -1)\n"
            "  g: bf16[4] = dropout(x, 42, p=0.25)\n"
            "  h: f32[2] = random_uniform(9223372036854775807, shape=[2])\n"
            "  return a, b, c, d, e, g, h\n"
            "}\n");
}

TEST(Text, LiteralsThatCannotStandInlineGetALine) {
  EXPECT_EQ(
      printed("graph f() {\n  return add(full(shape=[], value=1, dtype=f32), full(shape=[], value=2, dtype=f32))\n}"),
      "graph f() {\n"
      "  v0: f32[] = full(shape=[], value=1.0, dtype=f32)\n"
      "  out0: f32[] = add(v0, 2.0)\n"
      "  return out0\n"
      "}\n");
  EXPECT_EQ(printed("graph f(x: f32[4]) {\n  y = take(x, full(shape=[], value=1, dtype=i32))\n  return y\n}"),
            "graph f(x: f32[4]) {\n"
            "  v0: i32[] = full(shape=[], value=1, dtype=i32)\n"
            "  y: f32[] = take(x, v0)\n"
            "  return y\n"
            "}\n");
}

TEST(Text, RealsKeepEveryBit) {
  const double values[] = {0.1,      -0.0,       1.0 / 3, 5e-324, 1.7976931348623157e308, 0x1.fffffep127,
                           0x1p-149, 16777217.0, 1e22};
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (double value : values) {
      if (dtype == DType::f16 && std::fabs(value) > 65504) continue;
      if (dtype != DType::f64 && std::fabs(value) > 3.3e38) continue;
      Graph graph;
      const ValueId x = append_input(graph, "x", dtype, {4});
      const ValueId y = append_one(graph, Op::mul, {x, append_literal(graph, value, dtype)});
      append_output(graph, y, "y");
      expect_round_trip(graph);
    }
}

TEST(Text, ShortRealsStayShort) {
  EXPECT_NE(printed("graph f(x: f32[4]) { return mul(x, 0.1) }").find("mul(x, 0.1)"), std::string::npos);
  EXPECT_NE(printed("graph f(x: f64[4]) { return mul(x, 0.1) }").find("mul(x, 0.1)"), std::string::npos);
  EXPECT_NE(printed("graph f(x: f32[4]) { return mul(x, nan) }").find("mul(x, nan)"), std::string::npos);
}

TEST(Text, DimensionsAreExpressions) {
  EXPECT_EQ(printed("graph f(x: f32[n, m], y: f32[2*n + m*n - 3, floordiv(n + 1, 2)])\n"
                    "    where n in [2, 64], n % 2 == 0, m >= 1, m <= 8, k >= 0 {\n"
                    "  return x, broadcast_to(sum(y), shape=[-(1 - n), (m + 1)*k])\n}"),
            "graph f(x: f32[n, m], y: f32[m*n + 2*n + -3, floordiv(n + 1, 2)]) where k >= 0, m in [1, 8], n in [2, "
            "64], n % 2 == 0 {\n"
            "  v0: f32[] = sum(y)\n"
            "  out1: f32[n + -1, k + k*m] = broadcast_to(v0, shape=[n + -1, k + k*m])\n"
            "  return x, out1\n"
            "}\n");
}

TEST(Text, LongSignaturesAreBroken) {
  std::string inputs;
  for (int i = 0; i < 12; ++i) inputs += "input_" + std::to_string(i) + ": f32[4], ";
  const std::string text = printed("graph f(" + inputs + ") { return input_3 }");
  EXPECT_EQ(text.substr(0, 39), "graph f(\n  input_0: f32[4],\n  input_1: ");
  EXPECT_NE(text.find("  input_11: f32[4]\n) {\n"), std::string::npos);
}

TEST(Text, NamesThatCannotBeReadBackAreReplaced) {
  Graph graph;
  graph.name = "f(){} */";
  const ValueId x = append_input(graph, "x\n#include <a>", DType::f32, {4});
  const ValueId y = append_one(graph, Op::exp, {x});
  graph.values[static_cast<std::size_t>(y)].name = "return";
  append_output(graph, y, "out put");
  EXPECT_EQ(print(graph), "graph main(v0: f32[4]) {\n  out0: f32[4] = exp(v0)\n  return out0\n}\n");
}

TEST(Text, EveryOpComesBackAsWritten) {
  for (const OpInfo& op : all_ops()) {
    const std::vector<std::string> calls = sample_calls(op);
    EXPECT_EQ(calls.empty(), op.op == Op::input) << op.name;
    for (const std::string& text : calls) expect_round_trip(parse(text, text));
  }
}

TEST(Text, ExamplesComeBackAsWritten) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TENON_SOURCE_DIR) + "/examples")) {
    if (entry.path().extension() != ".tn") continue;
    expect_round_trip(read_file(entry.path()));
    ++files;
  }
  EXPECT_GE(files, 12);
}

TEST(Text, TwentyThousandNodesAreReadQuickly) {
  std::string text = "graph f(x: f32[rows, 4096]) {\n  y0 = exp(x)\n";
  for (int i = 1; i < 20000; ++i) text += "  y" + std::to_string(i) + " = mul(y" + std::to_string(i - 1) + ", 0.5)\n";
  text += "  return y19999\n}\n";
  const auto start = std::chrono::steady_clock::now();
  const Graph graph = parse(text);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(graph.nodes.size(), 40000U);  // 19999 literals, 20000 calls, the input
  RecordProperty("milliseconds", static_cast<int>(seconds.count() * 1e3));
  EXPECT_LT(seconds.count(), 2.0);  // 0.1 in a release build; this only catches what is not linear
}

TEST(Format, TidiesSpacesAndKeepsCommentsNestingAndBreaks) {
  const std::string tidy = format(
      "# head  \n\n\ngraph f( # inputs\n x:f32[rows ,2 * rows+1,- 1+rows],\n    # the scale\n s :f32 )where rows "
      "in[1,9],rows%2==0{\n\n"
      "y:f32[rows,2*rows+1, rows-1]=add( mul(x,s),-1.5)#why\n\n\n  z=sum( y,axis=[ -1,0 ],\n keepdims = true); return "
      "y,z as t\n\n}# end\n");
  EXPECT_EQ(tidy,
            "# head\n"
            "\n"
            "graph f(  # inputs\n"
            "  x: f32[rows, 2*rows + 1, -1 + rows],\n"
            "  # the scale\n"
            "  s: f32) where rows in [1, 9], rows % 2 == 0 {\n"
            "  y: f32[rows, 2*rows + 1, rows - 1] = add(mul(x, s), -1.5)  #why\n"
            "\n"
            "  z = sum(y, axis=[-1, 0],\n"
            "    keepdims=true)\n"
            "  return y, z as t\n"
            "}  # end\n");
  EXPECT_EQ(format(tidy), tidy);
}

TEST(Format, LeavesTheExamplesAsTheyAre) {
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TENON_SOURCE_DIR) + "/examples")) {
    if (entry.path().extension() != ".tn") continue;
    std::ifstream stream(entry.path());
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    EXPECT_EQ(format(text), text) << entry.path();
  }
}

TEST(Format, LeavesPrintedGraphsAsTheyAre) {
  for (const OpInfo& op : all_ops())
    for (const std::string& call : sample_calls(op)) {
      const std::string text = print(parse(call));
      EXPECT_EQ(format(text), text);
      EXPECT_TRUE(same(parse(format(call)), parse(call)));
    }
}

TEST(Same, SeesWhatDiffers) {
  const Graph graph = parse("graph f(x: f32[n]) { y = add(x, 1); return y }");
  for (const char* other :
       {"graph g(x: f32[n]) { y = add(x, 1); return y }", "graph f(z: f32[n]) { y = add(z, 1); return y }",
        "graph f(x: f64[n]) { y = add(x, 1); return y }", "graph f(x: f32[n]) { y = add(x, 2); return y }",
        "graph f(x: f32[n]) { y = sub(x, 1); return y }", "graph f(x: f32[n]) { y = add(1, x); return y }",
        "graph f(x: f32[n]) { y = add(x, 1); return y as z }", "graph f(x: f32[n]) { y = add(x, 1); return y, x }",
        "graph f(x: f32[n]) where n >= 1 { y = add(x, 1); return y }",
        "graph f(x: f32[n]) { z = add(x, 1); return z as y }"})
    EXPECT_FALSE(same(graph, parse(other))) << other;
}

TEST(Same, OverlooksDeadNodesAndMadeUpNames) {
  const Graph graph = parse("graph f(x: f32[n]) { y = exp(neg(x)); return y }");
  EXPECT_TRUE(same(graph, parse("graph f(x: f32[n]) { dead = log(x); v7 = neg(x); y = exp(v7); return y }")));
}

TEST(Json, IsOneNodeALine) {
  EXPECT_EQ(print_json(parse("graph f(x: f32[rows, 4]) where rows % 16 == 0 { y = clamp(x, -inf, 1); return y }")),
            R"({
  "format": "tenon-graph",
  "version": 1,
  "name": "f",
  "symbols": {"rows":{"divisor":16}},
  "inputs": [
    {"name":"x","dtype":"f32","shape":["rows",4]}
  ],
  "nodes": [
    {"op":"clamp","operands":["x",{"value":"-inf","dtype":"f32"},{"value":1.0,"dtype":"f32"}],"attrs":{},"results":[{"name":"y","dtype":"f32","shape":["rows",4]}]}
  ],
  "outputs": [
    {"name":"y","value":"y"}
  ]
}
)");
}

TEST(Json, TakesWhatAProgramWouldWrite) {
  const Graph graph = parse_json(R"({"version": 1, "format": "tenon-graph",
      "inputs": [{"name": "x", "dtype": "f32", "shape": ["n", 4]}],
      "nodes": [{"op": "sum", "operands": ["x"], "attrs": {"axis": -1, "keepdims": true}, "results": [{"name": "s"}]},
                {"op": "pad", "operands": ["s"], "attrs": {"low": [0, 1], "high": [0, "n"], "value": "0x1p-1"}, "results": [{"name": "y"}]}],
      "outputs": [{"name": "result", "value": "y"}]})");
  EXPECT_EQ(print(graph),
            "graph main(x: f32[n, 4]) {\n"
            "  s: f32[n, 1] = sum(x, axis=-1, keepdims=true)\n"
            "  y: f32[n, n + 2] = pad(s, low=[0, 1], high=[0, n], value=0.5)\n"
            "  return y as result\n"
            "}\n");
}

TEST(Suggest, FindsSlipsAndForeignNames) {
  EXPECT_EQ(suggest_op("sofmtax"), "softmax");
  EXPECT_EQ(suggest_op("permute"), "transpose");
  EXPECT_EQ(suggest_op("qqqqqq"), "");
  EXPECT_EQ(suggest_dtype("Float32"), "f32");
  EXPECT_EQ(edit_distance("abcd", "abdc"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

}  // namespace
}  // namespace tenon::ir
