// What einsum, tril and one_hot say of a mistake.
#include <gtest/gtest.h>

#include "tests/errors/message_of.h"

namespace tenon {
namespace {

struct EinsumErrors : testing::Test {
  Graph g{"g"};
  Tensor a = g.input("a", DType::f32, {4, 8});
  Tensor b = g.input("b", DType::f32, {6, 2});
  Tensor s = g.input("s", DType::f32, {g.dim("n"), g.dim("n")});
  Tensor i = g.input("i", DType::i32, {8});
};

TEST_F(EinsumErrors, ExtentsThatDifferNameTheLabelAndTheOperands) {
  EXPECT_EQ(MESSAGE_OF(einsum("ij,jk->ik", {a, b})),
            "type error: einsum: label 'j' has extents 8 and 6 in operands 1 and 2, f32[4, 8] and f32[6, 2]\n"
            "  at HERE\n  help: make them equal or one of them 1");
  EXPECT_EQ(MESSAGE_OF(einsum("ii", {a})),
            "type error: einsum: label 'i' has extents 4 and 8 in operand 1, f32[4, 8]\n"
            "  at HERE\n  help: make them equal or one of them 1");
  EXPECT_EQ(MESSAGE_OF(einsum("ij,jk", {a, s})),
            "type error: einsum: label 'j' has extents 8 and n in operands 1 and 2, f32[4, 8] and f32[n, n]\n"
            "  at HERE\n  help: use one symbol for both, or make one of them 1");
  EXPECT_EQ(
      MESSAGE_OF(einsum("...i,...k", {a, b})),
      "type error: einsum: axis -1 of the ellipsis has extents 4 and 6 in operands 1 and 2, f32[4, 8] and f32[6, 2]\n"
      "  at HERE\n  help: make them equal or one of them 1");
}

TEST_F(EinsumErrors, LabelsThatDoNotFitTheRank) {
  EXPECT_EQ(MESSAGE_OF(einsum("ijk->i", {a})),
            "type error: einsum: 'ijk' has 3 labels for the 2 axes of operand 1, f32[4, 8]\n"
            "  at HERE\n  help: give each axis a label, or let an ellipsis stand for the rest");
  EXPECT_EQ(MESSAGE_OF(einsum("ij,k", {a, b})),
            "type error: einsum: 'k' has 1 label for the 2 axes of operand 2, f32[6, 2]\n"
            "  at HERE\n  help: give each axis a label, or let an ellipsis stand for the rest");
}

TEST_F(EinsumErrors, OperandsThatDoNotFitTheSubscripts) {
  EXPECT_EQ(MESSAGE_OF(einsum("ij", {a, b})),
            "type error: einsum: 2 operands, and \"ij\" has subscripts for 1\n"
            "  at HERE\n  help: give each its own, with commas between them");
  EXPECT_EQ(MESSAGE_OF(einsum("", {})),
            "argument error: einsum: no tensor is given\n  at HERE\n  help: give at least one");
  EXPECT_EQ(MESSAGE_OF(einsum("ij,jk", {a, Tensor()})),
            "argument error: einsum: operand 2 is an empty Tensor\n  at HERE\n  help: assign it before it is used");
}

TEST_F(EinsumErrors, CharactersThatAreNoLabels) {
  EXPECT_EQ(MESSAGE_OF(einsum("i1->i", {a})),
            "type error: einsum: '1' in \"i1->i\" is no label\n"
            "  at HERE\n  help: label axes with letters, and separate operands with ',' and the result with '->'");
  EXPECT_EQ(MESSAGE_OF(einsum("...i...", {a})),
            "type error: einsum: two ellipses in '...i...' of \"...i...\"\n  at HERE\n  help: give one");
}

TEST_F(EinsumErrors, ResultsThatTheOperandsDoNotGive) {
  EXPECT_EQ(MESSAGE_OF(einsum("ij->ik", {a})),
            "type error: einsum: label 'k' of the result of \"ij->ik\" is in no operand\n"
            "  at HERE\n  help: name axes of the operands; broadcast_to makes others");
  EXPECT_EQ(
      MESSAGE_OF(einsum("ij->ii", {a})),
      "type error: einsum: label 'i' is twice in the result of \"ij->ii\"\n  at HERE\n  help: name each axis once");
  EXPECT_EQ(MESSAGE_OF(einsum("...i->i", {a})),
            "type error: einsum: the result of \"...i->i\" has no ellipsis, and an operand's stands for axes\n"
            "  at HERE\n  help: write ... in the result too, or label these axes");
}

TEST_F(EinsumErrors, ADiagonalOfSymbolicExtent) {
  EXPECT_EQ(MESSAGE_OF(einsum("ii->i", {s})),
            "type error: einsum: label 'i' is twice in operand 1, and its extent n is symbolic\n"
            "  at HERE\n  help: a diagonal needs a constant extent: label the axes apart, and mask with where before");
}

TEST_F(EinsumErrors, DTypes) {
  EXPECT_EQ(MESSAGE_OF(einsum("ij,j", {a, i})),
            "type error: einsum: operands have different dtypes: f32[4, 8] and i32[8]\n"
            "  at HERE\n  help: cast one side: cast(x, dtype=f32)");
  EXPECT_EQ(MESSAGE_OF(einsum("ij,kj", {cast(a, DType::f16), cast(a, DType::f16)}, {}, true)),
            "type error: matmul: tf32 is for f32 operands, not f16\n  at HERE\n  help: leave tf32 out");
}

TEST_F(EinsumErrors, Masks) {
  EXPECT_EQ(MESSAGE_OF(tril(i)),
            "type error: tril: takes rank 2 or more, not i32[8]\n"
            "  at HERE\n  help: give it two axes, e.g. with broadcast_to");
  EXPECT_EQ(MESSAGE_OF(triu(3)),
            "argument error: triu: no operand is a tensor\n  at HERE\n  help: make one with Graph::literal");
  EXPECT_EQ(MESSAGE_OF(one_hot(a, 3)),
            "type error: one_hot: indices must be integers, not f32[4, 8]\n"
            "  at HERE\n  help: cast them: cast(indices, dtype=i64)");
  EXPECT_EQ(MESSAGE_OF(outer(i, Tensor())),
            "argument error: outer: operand 2 is an empty Tensor\n  at HERE\n  help: assign it before it is used");
  EXPECT_EQ(MESSAGE_OF(outer(i, a)),
            "type error: mul: operands have different dtypes: i32[8, 1] and f32[1, 32]\n"
            "  at HERE\n  help: cast one side: cast(x, dtype=f32)");
}

}  // namespace
}  // namespace tenon
