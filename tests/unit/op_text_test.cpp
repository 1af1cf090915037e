// The op table's expressions as text: what the emitters will write.
#include <gtest/gtest.h>

#include "ir/ops/op.h"

namespace tenon::ir {
namespace {

TEST(OpText, ExpressionsAreTheTablesOwn) {
  EXPECT_EQ(info(Op::add).real.meaning, "a + b");
  EXPECT_EQ(info(Op::add).integer.meaning, "wrapping_add(a, b)");
  EXPECT_EQ(info(Op::where).real.meaning, "a ? b : c");
  EXPECT_EQ(info(Op::clamp).integer.meaning, "minimum(maximum(a, b), c)");
  EXPECT_EQ(info(Op::less_equal).real.meaning, "a <= b");
  EXPECT_EQ(info(Op::max).identity_real, "-inf");
  EXPECT_EQ(info(Op::max).identity_integer, "min_value");
  EXPECT_EQ(info(Op::isnan).real.meaning, "isnan(a)");
}

TEST(OpText, UndefinedMeaningsAreEmpty) {
  EXPECT_EQ(info(Op::exp).integer.meaning, "");
  EXPECT_EQ(info(Op::exp).integer.llvm, "");
  EXPECT_EQ(info(Op::logical_and).real.meaning, "");
  EXPECT_EQ(info(Op::argmax).identity_real, "");
  EXPECT_EQ(info(Op::cast).real.meaning, "");
}

}  // namespace
}  // namespace tenon::ir
