// What the C++ API says of a mistake, word for word: what, where (the caller's line), and the remedy.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tenon/tenon.h"
#include "tests/errors/message_of.h"

namespace tenon {
namespace {

std::string message_of(const std::function<void()>& mistake) { return tenon::message_of(__FILE__, mistake); }

struct ApiErrors : testing::Test {
  Graph g{"g"};
  Tensor x = g.input("x", DType::f32, {4, 8});
  Tensor i = g.input("i", DType::i32, {4, 8});
  Tensor m = g.input("m", DType::bool_, {4, 8});
};

TEST_F(ApiErrors, NamesTheCallersLine) {
  try {
    x + i;
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.place().file, __FILE__);
    EXPECT_EQ(error.place().line, __LINE__ - 4);
  }
}

TEST_F(ApiErrors, DifferentDTypes) {
  EXPECT_EQ(message_of([&] { x + i; }),
            "type error: add: operands have different dtypes: f32[4, 8] and i32[4, 8]\n"
            "  at HERE\n  help: cast one side: cast(x, dtype=f32)");
}

TEST_F(ApiErrors, ShapesThatDoNotBroadcast) {
  EXPECT_EQ(message_of([&] { mul(x, slice(x, 1, 0, 7)); }),
            "type error: mul: shapes [4, 8] and [4, 7] do not broadcast: axis -1 has extents 8 and 7\n"
            "  at HERE\n  help: make them equal or one of them 1, e.g. with expand_dims or reshape");
}

TEST_F(ApiErrors, AnUnknownSwitchOrLevel) {
  g.output("y", x + 1);
  Options options = default_options();
  options.disable = {"late_store"};
  EXPECT_EQ(message_of([&] { compile(g, "cpu", options); }),
            "argument error: 'late_store' is nothing that can be switched off\n"
            "  help: did you mean 'late_stores'? Options::disable (TENON_DISABLE) takes canonicalize, pools, row_sums, "
            "fold, powers, "
            "cse, "
            "window_order, dce, fuse, attention, siblings, mixed_order, duplicate, places, windows, pad_rows, "
            "turn_few, turn_f8, "
            "split_depth, pair_products, split_pieces, rows_apart, turned_apart, packing, calibration, "
            "hoist, plans, streaming, "
            "online, "
            "contraction, hold_rows, interior, product_bounds, block_mask, clusters, grid_rows, box_results, split_k, "
            "dependent_launch, "
            "keep_reads, "
            "bulk_copies, overlaps, moments, "
            "read_ahead, score_boxes, wgmma, split_f32, "
            "narrow, "
            "interleave, compose, "
            "late_stores, "
            "tuned, nvtx");
  options.disable.clear();
  options.print = {"everything"};
  EXPECT_EQ(message_of([&] { compile(g, "cpu", options); }),
            "argument error: 'everything' is nothing that can be printed\n"
            "  help: Options::print (TENON_PRINT) takes graph, plan, schedule, kernel, source");
}

TEST_F(ApiErrors, NumbersThatTheDTypeCannotHold) {
  EXPECT_EQ(message_of([&] { i * 1.5; }),
            "type error: mul: literal 1.5 is not representable as i32\n"
            "  at HERE\n  help: write an integer, or cast the other operand to a real dtype");
  EXPECT_EQ(message_of([&] { bitwise_and(cast(i, DType::u8), 300); }),
            "type error: bitwise_and: literal 300 is out of range for u8\n  at HERE\n  help: u8 holds 0 to 255");
  EXPECT_EQ(message_of([&] { m & 1; }),
            "type error: bitwise_and: literal 1 is a number, not bool\n  at HERE\n  help: write true or false");
}

TEST_F(ApiErrors, NumbersAlone) {
  EXPECT_EQ(message_of([] { add(1, 2); }),
            "argument error: add: no operand is a tensor\n  at HERE\n  help: make one with Graph::literal");
  EXPECT_EQ(message_of([] { where(true, 1.0, 0.0); }),
            "argument error: where: no operand is a tensor\n  at HERE\n  help: make one with Graph::literal");
  EXPECT_EQ(message_of([] { where(true, 1.0, 0.0, DType::f16); }),
            "argument error: where: no operand is a tensor\n  at HERE\n  help: make one with Graph::literal");
  EXPECT_EQ(message_of([&] { where(m, 1.5, 0, DType::i32); }),
            "type error: where: literal 1.5 is not representable as i32\n"
            "  at HERE\n  help: write an integer, or cast the other operand to a real dtype");
  EXPECT_EQ(message_of([&] { where(m, true, 0); }),
            "type error: where: literal true is a bool, not i64\n  at HERE\n  help: write 1 or 0");
}

TEST_F(ApiErrors, CompoundAssignmentNamesTheCallersLineAndLeavesTheTensor) {
  Tensor y = x;
  EXPECT_EQ(message_of([&] { y += i; }),
            "type error: add: operands have different dtypes: f32[4, 8] and i32[4, 8]\n"
            "  at HERE\n  help: cast one side: cast(x, dtype=f32)");
  EXPECT_EQ(str(y.shape()), "[4, 8]");
  Tensor empty;
  EXPECT_EQ(message_of([&] { empty *= 2; }),
            "argument error: mul: operand 1 is an empty Tensor\n  at HERE\n  help: assign it before it is used");
}

TEST_F(ApiErrors, LogicalOperatorsOfNumbers) {
  EXPECT_EQ(message_of([&] { x&& m; }),
            "type error: logical_and: takes bools, not f32[4, 8]\n  at HERE\n  help: compare first: not_equal(x, 0)");
  EXPECT_EQ(message_of([&] { !i; }),
            "type error: logical_not: takes bools, not i32[4, 8]\n  at HERE\n  help: compare first: not_equal(x, 0)");
}

TEST_F(ApiErrors, EmptyTensors) {
  EXPECT_EQ(message_of([&] { matmul(x, Tensor()); }),
            "argument error: matmul: operand 2 is an empty Tensor\n  at HERE\n  help: assign it before it is used");
  EXPECT_EQ(message_of([] { Tensor().shape(); }),
            "argument error: the tensor is empty\n  help: assign it before it is used");
}

TEST_F(ApiErrors, TensorsOfTwoGraphs) {
  Graph other;
  const Tensor y = other.input("y", DType::f32, {4, 8});
  EXPECT_EQ(
      message_of([&] { x + y; }),
      "argument error: add: operands belong to different graphs\n  at HERE\n  help: record all of them in one Graph");
  EXPECT_EQ(message_of([&] { g.output("y", y); }),
            "argument error: output 'y' is a value of another graph\n  at HERE\n  help: record it in this Graph");
}

TEST_F(ApiErrors, WrongKindOfOperand) {
  EXPECT_EQ(message_of([&] { exp(i); }),
            "type error: exp: takes reals, not i32[4, 8]\n  at HERE\n  help: cast the operand: cast(x, dtype=f32)");
  EXPECT_EQ(message_of([&] { where(x, x, x); }),
            "type error: where: the condition must be bool, not f32[4, 8]\n"
            "  at HERE\n  help: compare first: not_equal(x, 0)");
}

TEST_F(ApiErrors, InnerDimensionsThatDiffer) {
  EXPECT_EQ(message_of([&] { matmul(x, x); }),
            "type error: matmul: inner dimensions differ: 8 and 4 in f32[4, 8] x f32[4, 8]\n"
            "  at HERE\n  help: transpose one operand or check its shape");
}

TEST_F(ApiErrors, AxesOutOfRange) {
  EXPECT_EQ(message_of([&] { sum(x, 2); }),
            "type error: sum: axis 2 is out of range for rank 2\n  at HERE\n  help: axes run from -2 to 1");
  EXPECT_EQ(message_of([&] { sum(x, std::size_t{0} - 1); }),
            "type error: sum: axis 9223372036854775807 is out of range for rank 2\n"
            "  at HERE\n  help: axes run from -2 to 1");
  EXPECT_EQ(message_of([&] { max(x, {1, -1}); }),
            "type error: max: axis -1 is named twice\n  at HERE\n  help: name each axis once");
  EXPECT_EQ(message_of([&] { expand_dims(x, {}); }),
            "type error: expand_dims: attribute 'axis' is missing\n  at HERE\n  help: write axis=[0, 1]");
}

TEST_F(ApiErrors, ReshapeToAnotherCount) {
  EXPECT_EQ(message_of([&] { reshape(x, {5, -1}); }),
            "type error: reshape: cannot work out the -1 in [5, -1]: f32[4, 8] has 32 elements, not a multiple of 5\n"
            "  at HERE\n  help: give the extent itself");
}

TEST_F(ApiErrors, NothingToJoin) {
  EXPECT_EQ(message_of([] { concat({}); }),
            "argument error: concat: no tensor is given\n  at HERE\n  help: give at least one");
}

TEST_F(ApiErrors, ABiasWithoutAWeight) {
  EXPECT_EQ(message_of([&] { layer_norm(x, {}, x); }),
            "argument error: layer_norm: a bias without a weight\n"
            "  at HERE\n  help: give a weight of ones, or add the bias to the result");
}

TEST_F(ApiErrors, UnknownWords) {
  EXPECT_EQ(message_of([&] { gelu(x, "fast"); }),
            "type error: gelu: approximate=\"fast\" is unknown\n  at HERE\n  help: use \"none\" or \"tanh\"");
}

TEST_F(ApiErrors, NamesTakenOrIllFormed) {
  exp(x).named("h");
  EXPECT_EQ(message_of([&] { sin(x).named("h"); }),
            "type error: there are two values named 'h'\n  at HERE (value h)\n  help: give each value its own name");
  EXPECT_EQ(message_of([&] { sin(x).named("2nd"); }),
            "type error: value '2nd' is no name\n  at HERE\n  help: use a letter or '_', then letters, digits and '_'");
  EXPECT_EQ(
      message_of([&] { g.input("x", DType::f32, {}); }),
      "type error: input 'x': another value has this name\n  at HERE (value x)\n  help: give each value its own name");
  EXPECT_EQ(message_of([&] { g.input("nan", DType::f32, {}); }),
            "type error: input 'nan' is a word of the text form\n  at HERE\n  help: use another name");
  EXPECT_EQ(message_of([&] { x.named("z"); }),
            "type error: input 'x' cannot be renamed 'z'\n  at HERE (value z)\n  help: name it where Graph::input "
            "declares it");
  EXPECT_EQ(message_of([&] { Graph(std::string(65, 'a')); }),
            "type error: graph name of 65 characters\n  at HERE\n  help: use at most 64");
}

TEST_F(ApiErrors, TwoOutputsOfOneName) {
  g.output("y", x);
  EXPECT_EQ(message_of([&] { g.output("y", i); }),
            "type error: there are two results named 'y'\n  at HERE (value y)\n  help: give each result its own name");
}

TEST_F(ApiErrors, BoundsThatNothingSatisfies) {
  EXPECT_EQ(message_of([&] { g.dim("n", {.min = 9, .max = 15, .divisor = 8}); }),
            "type error: dimension 'n': no multiple of 8 lies in [9, 15]\n  at HERE\n  help: widen the bounds");
  g.dim("rows", {.min = 1});
  EXPECT_EQ(message_of([&] { g.dim("rows"); }),
            "type error: dimension 'rows' has other bounds already\n  at HERE\n  help: declare it once, before its "
            "first use");
}

TEST_F(ApiErrors, QuotientsOfDimensionsThatAreNotKnownToBeWhole) {
  const Dim n = g.dim("n", {.divisor = 8});
  EXPECT_EQ(message_of([&] { (2 * n + 1) / 2; }),
            "type error: 2*n + 1 is not known to be a multiple of 2\n"
            "  help: floor_div(2) rounds down; or name the quotient with a symbol and write 2 times it here");
  EXPECT_EQ(message_of([&] { n / 4; }),
            "type error: n is not known to be a multiple of 4\n"
            "  help: floor_div(4) rounds down; or name the quotient with a symbol and write 4 times it here");
  for (const Dim& divisor : {Dim(0), Dim(-2), n})
    EXPECT_EQ(message_of([&] { n / divisor; }),
              "type error: division of a dimension by " + divisor.str() + "\n  help: divide by a positive constant");
}

TEST_F(ApiErrors, NegativeExtents) {
  EXPECT_EQ(message_of([&] { g.input("y", DType::f32, {-1}); }),
            "type error: input: extent -1 of f32[-1] is negative\n  at HERE (value y)\n  help: extents are 0 or more");
}

TEST_F(ApiErrors, ArraysOfTheWrongSize) {
  EXPECT_EQ(message_of([] { Array::from({1, 2, 3}, {2, 2}); }),
            "argument error: 3 values for an array of f32[2, 2]\n  help: give 4 values");
  EXPECT_EQ(message_of([] { Array::zeros({2, -2}); }),
            "argument error: an array of shape [2, -2]\n  help: extents are 0 or more");
  EXPECT_EQ(message_of([] { Array::zeros({2}).to<double>(); }),
            "argument error: the array is f32, not f64\n  help: convert it first: cast(DType::f64)");
  EXPECT_EQ(message_of([] { str(Array{DType::f32, {2}, {}}); }),
            "argument error: an array of f32[2] has 0 bytes, not 8\n  help: make it with Array::from or Array::zeros");
}

TEST_F(ApiErrors, AGraphWithoutOutputs) {
  EXPECT_EQ(message_of([&] { compile(g, "cpu"); }),
            "argument error: graph 'g' returns nothing\n  help: name at least one output");
  g.output("y", x);
  compile(g, "cpu");
}

TEST_F(ApiErrors, ASizeBeyondWhatADimensionHoldsNamesItsValue) {
  Dim power = g.dim("n");
  for (int k = 1; k < 17; ++k) power = power * g.dim("n");
  g.output("z", exp(g.input("y", DType::f32, {power, power})));
  EXPECT_EQ(message_of([&] { compile(g, "cpu"); }),
            "resource error: a dimension has a term of more than 32 factors\n"
            "  at value y\n  help: name the dimension with a symbol of its own");
}

TEST_F(ApiErrors, SpeakOfTheApiAndSayWhatArgumentIsAtFault) {
  const auto argument_of = [](const std::function<void()>& mistake) {
    try {
      mistake();
    } catch (const Error& error) {
      for (const char* word : {"--", "where clause", "file"})
        EXPECT_EQ(std::string(error.what()).find(word), std::string::npos) << error.what();
      return error.place().argument;
    }
    return std::string("no error");
  };
  const Dim n = g.dim("n");
  const Tensor y = g.input("y", DType::f32, {n});
  EXPECT_EQ(argument_of([&] { slice(y, 0, 3, n); }), "symbols");
  EXPECT_EQ(argument_of([&] { n.evaluate({}); }), "bindings[n]");
  EXPECT_EQ(argument_of([&] { compile(g, "cpu"); }), "graph.outputs");
  g.output("z", y + 1);
  EXPECT_EQ(argument_of([&] { compile(g, "cpu").prepare({}); }), "bindings[n]");
  Options disabled = default_options(), threads = disabled;
  disabled.disable = {"everything"};
  threads.threads = -1;
  EXPECT_EQ(argument_of([&] { compile(g, "cpu", disabled); }), "options.disable");
  EXPECT_EQ(argument_of([&] { compile(g, "cpu", threads); }), "options.threads");
}

TEST_F(ApiErrors, FilesThatAreNotThere) {
  EXPECT_EQ(
      message_of([] { Graph::load("/nowhere/g.tn"); }),
      "i/o error: cannot open '/nowhere/g.tn': No such file or directory\n  help: check the path and its permissions");
}

}  // namespace
}  // namespace tenon
