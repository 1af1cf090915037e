// Results that update inputs, on every target: what is left in the inputs' memory is what the interpreter gives, fused
// or not, in place or copied.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class Updates : public OnTarget {
 protected:
  void expect_right(const std::string& text, const std::vector<Bindings>& sizes = {{}}) const {
    test::expect_right(ir::parse("graph g" + text), GetParam(), sizes);
  }
};

TEST_P(Updates, ElementByElement) {
  expect_right(R"((p: f32[n], m: bf16[n], d: f32[n]) {
  next = add(mul(m, 0.9), cast(d, dtype=bf16))
  return sub(p, mul(cast(next, dtype=f32), 0.1)) into p, next into m
})",
               {{{"n", 1}}, {{"n", 1000}}, {{"n", 1003}}});
}

TEST_P(Updates, SumsOfRowsAndColumns) {
  expect_right(R"((rows: f32[n], columns: f32[70], x: f32[n, 70]) {
  return add(rows, sum(x, axis=1)) into rows, maximum(columns, max(x, axis=0)) into columns
})",
               {{{"n", 1}}, {{"n", 300}}});
  expect_right("(t: f32[], x: f32[90000]) {\n  return add(t, sum(x)) into t\n}");
  expect_right("(t: f32[16], x: f32[40000, 16]) {\n  return add(t, sum(x, axis=0)) into t\n}");
}

TEST_P(Updates, ProductsAndTransposes) {
  expect_right(
      "(g: f32[40, 50], x: f32[30, 40], d: f32[30, 50]) {\n"
      "  return add(g, matmul(transpose(x), d)) into g\n}");
  expect_right("(x: f16[70, 70], y: f16[70, 70]) {\n  return transpose(y) as a into x, transpose(x) as b into y\n}");
}

TEST_P(Updates, RowsThatAreNeededAgain) {
  expect_right("(x: f32[20, 130]) {\n  return softmax(x) into x\n}");
  expect_right(R"((x: f32[64, 33], y: f32[33]) {
  next = add(y, sum(x, axis=0))
  return next into y, mul(x, next) into x, softmax(x, axis=0)
})");
}

TEST_P(Updates, PlacesThatRowsAreTakenFrom) {
  expect_right(R"((x: f32[5, 9], at: i32[4]) {
  return log_softmax(take(x, at)), right_shift(at, at) into at
})");
  expect_right(R"((x: f32[50], at: i32[40]) {
  return exp(take(x, at)), sub(at, at) into at
})");
  expect_right(R"((x: f32[50], at: f32[40]) {
  return exp(take(x, cast(at, dtype=i32))), mul(at, 0.5) into at
})");
  expect_right(R"((x: f32[50, 9], at: f32[40]) {
  return softmax(take(x, cast(at, dtype=i32))), mul(at, 0.5) into at
})");
}

INSTANTIATE_TEST_SUITE_P(On, Updates, ::testing::Values("cpu", "cpu_avx2", "cpu_sse", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test
