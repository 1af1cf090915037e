// What is said when arrays do not fit a graph: the message and the remedy, word for word.
#include <gtest/gtest.h>

#include "ir/interpret/interpret.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

using Shapes = std::vector<std::vector<std::int64_t>>;

constexpr const char* kGraph = R"(
graph f(x: f32[rows, 4], y: f32[2*cols + 1, rows]) where rows in [1, 64], cols % 8 == 0 {
  return x, y
}
)";

template <typename F>
std::string report(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::argument);
    return error.message() + " | " + error.remedy();
  }
  return "no error";
}

std::string bind_report(const std::string& text, const Shapes& shapes, const Bindings& given = {}) {
  const Graph graph = parse(text);
  return report([&] { bind_symbols(graph, shapes, given); });
}

TEST(BindErrors, FittingShapesBind) {
  EXPECT_EQ(bind_symbols(parse(kGraph), {{5, 4}, {17, 5}}), (Bindings{{"rows", 5}, {"cols", 8}}));
  EXPECT_EQ(bind_symbols(parse(kGraph), {{5, 4}, {17, 5}}, {{"rows", 5}}), (Bindings{{"rows", 5}, {"cols", 8}}));
}

TEST(BindErrors, OneUnknownIsDecidedByAnother) {
  const Graph graph = parse("graph f(x: f32[n*m], y: f32[n]) where m >= 0 { return x, y }");
  EXPECT_EQ(bind_symbols(graph, {{12}, {4}}), (Bindings{{"n", 4}, {"m", 3}}));
}

TEST(BindErrors, CountOfInputs) {
  EXPECT_EQ(bind_report(kGraph, {{5, 4}}),
            "graph 'f' takes 2 inputs, 1 given | give one array for each input, in the graph's order");
}

TEST(BindErrors, Rank) {
  EXPECT_EQ(bind_report(kGraph, {{5, 4, 1}, {17, 5}}),
            "input 'x' has rank 3, f32[rows, 4] has rank 2 | give it as f32[rows, 4]");
}

TEST(BindErrors, NegativeExtent) {
  EXPECT_EQ(bind_report(kGraph, {{-5, 4}, {17, 5}}), "input 'x' has the shape [-5, 4] | extents are 0 or more");
}

TEST(BindErrors, ConstantExtent) {
  EXPECT_EQ(bind_report(kGraph, {{5, 3}, {17, 5}}),
            "input 'x': axis 1 has extent 3, the graph says 4 | give it as f32[rows, 4]");
}

TEST(BindErrors, ExtentThatTheExpressionNeverHas) {
  EXPECT_EQ(
      bind_report(kGraph, {{5, 4}, {16, 5}}),
      "input 'y': axis 0 has extent 16, which 2*cols + 1 never is | give an extent that is 2*cols + 1 for a whole "
      "cols");
}

TEST(BindErrors, SameSymbolTwice) {
  EXPECT_EQ(bind_report(kGraph, {{5, 4}, {17, 6}}),
            "input 'y': axis 1 has extent 6, but rows is 5 | the same symbol must have the same value wherever it "
            "stands");
}

TEST(BindErrors, GivenValueAgainstShape) {
  EXPECT_EQ(bind_report(kGraph, {{5, 4}, {17, 5}}, {{"rows", 7}}),
            "input 'x': axis 0 has extent 5, but rows is 7 | the same symbol must have the same value wherever it "
            "stands");
}

TEST(BindErrors, GivenValueAgainstExpression) {
  EXPECT_EQ(bind_report(kGraph, {{5, 4}, {17, 5}}, {{"cols", 16}}),
            "input 'y': axis 0 has extent 17, but 2*cols + 1 is 33 with cols = 16 | the same symbol must have the same "
            "value wherever it stands");
}

TEST(BindErrors, BelowTheMinimum) {
  EXPECT_EQ(bind_report(kGraph, {{0, 4}, {17, 0}}),
            "dimension 'rows' is 0, the graph wants at least 1 | give inputs with rows >= 1");
}

TEST(BindErrors, AboveTheMaximum) {
  EXPECT_EQ(bind_report(kGraph, {{65, 4}, {17, 65}}),
            "dimension 'rows' is 65, the graph wants at most 64 | give inputs with rows <= 64");
}

TEST(BindErrors, NegativeSymbol) {
  EXPECT_EQ(bind_report("graph f(x: f32[n + 3]) where n >= 0 { return x }", {{2}}),
            "dimension 'n' is -1, the graph wants at least 0 | give inputs with n >= 0");
}

TEST(BindErrors, Divisor) {
  EXPECT_EQ(bind_report(kGraph, {{5, 4}, {15, 5}}),
            "dimension 'cols' is 7, the graph wants a multiple of 8 | pad it to 8");
}

TEST(BindErrors, UnknownName) {
  EXPECT_EQ(bind_report(kGraph, {{5, 4}, {17, 5}}, {{"row", 5}}),
            "graph 'f' has no dimension 'row' | its dimensions are cols, rows");
}

TEST(BindErrors, NameWhereAllIsConstant) {
  EXPECT_EQ(bind_report("graph f(x: f32[4]) { return x }", {{4}}, {{"n", 4}}),
            "graph 'f' has no dimension 'n' | all its dimensions are constant");
}

TEST(BindErrors, NothingDecidesASymbol) {
  Graph graph = parse("graph f(x: f32[4]) { return x }");
  graph.symbols["n"] = {};
  EXPECT_EQ(report([&] { bind_symbols(graph, {{4}}); }),
            "no input's shape decides the dimension 'n' | give it a value in the bindings");
  EXPECT_EQ(bind_symbols(graph, {{4}}, {{"n", 3}}), (Bindings{{"n", 3}}));
}

TEST(BindErrors, ProductOfTwoUnknowns) {
  const Graph graph = parse("graph f(x: f32[n*m], y: f32[n], z: f32[m]) { return x }");
  EXPECT_EQ(bind_symbols(graph, {{6}, {2}, {3}}), (Bindings{{"n", 2}, {"m", 3}}));
  EXPECT_EQ(report([&] { bind_symbols(graph, {{7}, {2}, {3}}); }),
            "input 'x': axis 0 has extent 7, but m*n is 6 with m = 3, n = 2 | the same symbol must have the same value "
            "wherever it stands");
}

TEST(InterpretErrors, Dtype) {
  EXPECT_EQ(report([] { interpret(parse("graph f(x: f32[2]) { return x }"), {make_array(DType::f64, {2})}); }),
            "input 'x' is f64, the graph says f32 | convert it to f32");
}

TEST(InterpretErrors, Bytes) {
  HostArray array = make_array(DType::f32, {2});
  array.bytes.resize(7);
  EXPECT_EQ(report([&] { interpret(parse("graph f(x: f32[2]) { return x }"), {array}); }),
            "input 'x' holds 7 bytes, f32[2] needs 8 | give the whole array, row-major");
}

TEST(CompareErrors, CountOfResults) {
  const Graph graph = parse("graph f(x: f32[2]) { return x }");
  EXPECT_EQ(report([&] { compare_with_interpreter(graph, {make_array(DType::f32, {2})}, {}); }),
            "graph 'f' has 1 results, 0 given | give one array for each result, in the graph's order");
}

TEST(CompareErrors, TypeOfAResult) {
  const Graph graph = parse("graph f(x: f32[2]) { return x }");
  EXPECT_EQ(
      report([&] { compare_with_interpreter(graph, {make_array(DType::f32, {2})}, {make_array(DType::f16, {3})}); }),
      "result 'x' is f16[3], the graph gives f32[2] | compare with the results of the same graph on the same "
      "inputs");
}

// ---- sizes of values ------------------------------------------------------------------------------------------------

// Once 8 bytes were allocated for the result.
TEST(BindErrors, AValueWhoseBytesLeave64Bits) {
  const Graph graph = parse(R"(graph f(x: f32[n]) {
    y = broadcast_to(full(shape=[], value=1.0, dtype=f32), shape=[n*1537228672809129302])
    return y
  })");
  for (const std::int64_t n : {3, 6, 9}) try {
      bind_symbols(graph, {{n}});
      ADD_FAILURE() << "no error at " << n;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::resource);
      EXPECT_EQ(error.message(),
                "output 'y' is f32[1537228672809129302*n] with n = " + std::to_string(n) + ": more than 2^50 bytes");
      EXPECT_EQ(error.place().line, 2);
      EXPECT_EQ(error.remedy(), "run at other sizes");
    }
}

TEST(BindErrors, AnIntermediateWhoseBytesLeave64BitsAlsoBesideAnExtentOf0) {
  const Graph graph = parse(R"(graph f(x: f32[n, m]) {
    y = sum(broadcast_to(reshape(x, shape=[n, m, 1]), shape=[n, m, 9000000000*n]))
    return y
  })");
  for (const std::int64_t m : {0, 1, 5}) EXPECT_THROW(bind_symbols(graph, {{1 << 30, m}}), Error) << m;
  EXPECT_NO_THROW(bind_symbols(graph, {{1, 5}}));
}

TEST(BindErrors, BindingsAreCheckedForSizesToo) {
  const Graph graph = parse("graph f(x: f64[n, n]) {\n  y = neg(x)\n  return y\n}\n");
  EXPECT_NO_THROW(check_bindings(graph, {{"n", 1 << 20}}));
  EXPECT_THROW(check_bindings(graph, {{"n", std::int64_t{1} << 30}}), Error);
  EXPECT_THROW(check_bindings(graph, {{"n", std::int64_t{1} << 62}}), Error);
}

}  // namespace
}  // namespace tenon::ir
