// What x[...] says of a mistake.
#include <gtest/gtest.h>

#include "tests/errors/message_of.h"

namespace tenon {
namespace {

struct IndexErrors : testing::Test {
  Graph g{"g"};
  Tensor x = g.input("x", DType::f32, {4, 8});
  Tensor y = g.input("y", DType::bf16, {g.dim("n", {.min = 1, .max = 9}), 0});
};

TEST_F(IndexErrors, TooManyIndices) {
  EXPECT_EQ(MESSAGE_OF((x[{0, ellipsis, Range{}, 0}])),
            "type error: index: 3 indices for f32[4, 8] of rank 2\n"
            "  at HERE\n  help: give at most one for each axis; newaxis and ellipsis need none");
  EXPECT_EQ(MESSAGE_OF(x[0][0][0]),
            "type error: index: 1 index for f32[] of rank 0\n"
            "  at HERE\n  help: give at most one for each axis; newaxis and ellipsis need none");
}

TEST_F(IndexErrors, TwoEllipses) {
  EXPECT_EQ(MESSAGE_OF((x[{ellipsis, 0, ellipsis}])),
            "type error: index: 2 ellipses\n"
            "  at HERE\n  help: give one: it stands for all axes that the other indices leave");
}

TEST_F(IndexErrors, OutOfRange) {
  EXPECT_EQ(MESSAGE_OF(x[4]),
            "type error: index: 4 is out of range for axis 0 of f32[4, 8]\n"
            "  at HERE\n  help: indices run from -4 to 3");
  EXPECT_EQ(MESSAGE_OF((x[{0, -9}])),
            "type error: index: -9 is out of range for axis 1 of f32[4, 8]\n"
            "  at HERE\n  help: indices run from -8 to 7");
  EXPECT_EQ(MESSAGE_OF(x[std::numeric_limits<std::int64_t>::min()]),
            "type error: index: -9223372036854775808 is out of range for axis 0 of f32[4, 8]\n"
            "  at HERE\n  help: indices run from -4 to 3");
  EXPECT_EQ(MESSAGE_OF((y[{ellipsis, 0}])),
            "type error: index: 0 is out of range for axis 1 of bf16[n, 0]\n"
            "  at HERE\n  help: an axis of extent 0 has no elements");
  EXPECT_EQ(MESSAGE_OF(y[9]),
            "type error: index: 9 is out of range for axis 0 of bf16[n, 0]\n"
            "  at HERE\n  help: use an index within the extent's bounds");
}

TEST_F(IndexErrors, WhatTheSymbolsDoNotDecide) {
  EXPECT_EQ(MESSAGE_OF(y[1]),
            "type error: index: cannot tell whether 1 lies on axis 0 of bf16[n, 0]\n"
            "  at HERE\n  help: give the symbols bounds by which it is known to be inside");
  EXPECT_EQ(MESSAGE_OF((y[-2])),
            "type error: index: cannot tell whether -2 lies on axis 0 of bf16[n, 0]\n"
            "  at HERE\n  help: give the symbols bounds by which it is known to be inside");
}

TEST_F(IndexErrors, OfWhatItRecords) {
  EXPECT_EQ(MESSAGE_OF((x[Range{.step = 0}])),
            "type error: slice: step 0\n"
            "  at HERE\n  help: use a step other than 0 and within 2^62; negative steps go backwards");
  EXPECT_EQ(MESSAGE_OF(Tensor()[0]),
            "argument error: index: operand 1 is an empty Tensor\n  at HERE\n  help: assign it before it is used");
}

}  // namespace
}  // namespace tenon
