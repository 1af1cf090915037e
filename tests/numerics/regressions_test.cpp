// The smallest graphs that once went wrong, most of them shrunk from random ones. Each says what was special about it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/ops/formats.h"
#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class Regressions : public OnTarget {
 protected:
  void check(const char* text, const std::vector<Bindings>& sizes = {{}}) {
    expect_right(ir::parse(text), GetParam(), sizes);
  }
};

TEST_P(Regressions, ResultsOfRankZero) {
  check(R"(graph scalars(x: f32[7, 3]) {
    s = sum(x)
    y = mul(s, 2.0)
    i = argmax(x)
    return s, y, i
  })");
}

TEST_P(Regressions, ReductionsOverAxesOfOneElement) {
  check(R"(graph one(x: f32[5, 1, 3]) {
    a = sum(x, axis=1)
    b = softmax(x, axis=1)
    c = argmin(x, axis=1)
    return a, b, c
  })");
}

// Places were found once for a thread's whole vector of columns, by the first of them.
TEST_P(Regressions, GathersOfColumnsAtPlacesOfTheirOwn) {
  check(R"(graph gathers(x: bf16[65], i: i32[16, n]) {
    y = take(x, i, axis=0)
    p = prod(i, axis=0)
    s = sum(cast(y, dtype=f32), axis=0)
    return y, p, s
  })",
        {{{"n", 64}}, {{"n", 5}}});
}

// A compiler for the GPU gave 1 for -1 to the power -1.
TEST_P(Regressions, NegativePowersOfWhatIsInverted) {
  check(R"(graph powers(x: i64[65], n: i32[65]) {
    v = bitwise_not(x)
    y = pow(v, v)
    m = bitwise_not(n)
    z = pow(m, m)
    return y, z
  })");
}

TEST_P(Regressions, AxesWithoutElements) {
  check(R"(graph empty(x: f32[4, 0], y: bf16[0, 4]) {
    a = sum(x, axis=1)
    b = max(x, axis=1)
    c = softmax(x, axis=1)
    d = softmax(y, axis=1)
    e = argmax(x, axis=1)
    return a, b, c, d, e
  })");
}

// The one column of b stands still along both of its axes, so its load once stood ahead of the loop over no depth.
TEST_P(Regressions, ProductsWithoutDepth) {
  check(R"(graph no_depth(a: f64[0], b: f64[1, 0], x: f8e4m3[0], w: f8e4m3[1, 0], m: f32[3, n], k: f32[n, 5]) {
    y = linear(a, b)
    z = linear(x, w)
    t = matmul(m, k)
    return y, z, t
  })",
        {{{"n", 0}}, {{"n", 1}}, {{"n", 3}}});
}

TEST_P(Regressions, AttentionOverNoKeys) {
  check(R"(graph no_keys(q: f32[2, 1, 8], k: f32[2, n, 8], v: f32[2, n, 8], e: f32[2, 3, n], f: f32[2, 5, n]) {
    y = attention(q, k, v)
    z = matmul(softmax(matmul(e, transpose(f, perm=[0, 2, 1]))), f)
    return y, z
  })",
        {{{"n", 0}}, {{"n", 1}}, {{"n", 3}}});
}

TEST_P(Regressions, IntermediatesWithoutElements) {
  check(R"(graph nothing(x: f32[n, 8], w: f32[8, 4]) {
    h = matmul(x, w)
    s = softmax(h)
    t = matmul(s, transpose(w))
    return t
  })",
        {{{"n", 0}}, {{"n", 3}}});
}

TEST_P(Regressions, MatmulOfVectors) {
  check(R"(graph vectors(a: f32[33], b: f32[33], w: f32[33, 5]) {
    dot = matmul(a, b)
    row = matmul(a, w)
    column = matmul(transpose(w), b)
    return dot, row, column
  })");
}

TEST_P(Regressions, AnOutputTwice) {
  check(R"(graph twice(x: f32[9, 1]) {
    y = exp(x)
    z = reshape(y, shape=[9])
    return y, z
  })");
}

TEST_P(Regressions, TakeFromOneElementBeforeAMatmul) {
  check(R"(graph gathered(table: f32[1, 8], index: i32[6], w: f32[8, 4]) {
    y = matmul(take(table, index, axis=0), w)
    return y
  })");
}

// Some orders of the factors meet infinity before zero, others zero first.
TEST_P(Regressions, ProductsThatLeaveTheRangeOnTheWay) {
  check(R"(graph product() {
    y = prod(iota(shape=[7, 5, 64], axis=2, dtype=f32))
    return y
  })");
  check(R"(graph product(x: f32[300]) {
    y = prod(mul(x, 100.0))
    z = prod(mul(x, 0.01))
    return y, z
  })");
}

TEST_P(Regressions, SumsThatOverflowOnTheWay) {
  check(R"(graph sum(x: f32[64]) {
    y = sum(mul(x, 0x1p127))
    return y
  })");
}

// Keys that a mask excludes need not be read.
TEST_P(Regressions, MaskedKeysThatHoldNaN) {
  const ir::Graph graph = ir::parse(R"(graph masked(q: f64[2, 23, 8], k: f64[2, 23, 8], v: f64[2, 23, 8]) {
    y = attention(q, k, v, causal=true)
    return y
  })");
  std::vector<ir::HostArray> inputs = data_for(graph, {});
  for (const double special : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    ir::set_real(inputs[2], 22 * 8 + 7, special);
    expect_right_on(graph, GetParam(), inputs);
  }
}

TEST_P(Regressions, PowersNearExponentMinusOne) {
  check(R"(graph powers(x: f32[100]) {
    a = pow(abs(x), -0x1.000002p0)
    b = pow(abs(x), -0x1.fffffep-1)
    return a, b
  })");
}

// Fused, the power has an exponent that was not rounded, and is then stored: it overflows where neither a plan that
// rounds everything does nor one that rounds nothing. f8e4m3 has no infinity, so the overflow is NaN.
TEST_P(Regressions, ResultsThatOverflowOnlyWhereSomeAreStored) {
  check(R"(graph powers(x: f8e4m3[65, 64], w: f8e4m3[64, 4]) {
    y = matmul(pow(softplus(x), x), w)
    return y
  })");
}

TEST_P(Regressions, TheSumOfOneNegativeZeroIsPositive) {
  const ir::Graph graph = ir::parse(R"(graph one(x: bf16[3, 1]) {
    y = reciprocal(sum(x, axis=1))
    return y
  })");
  std::vector<ir::HostArray> inputs = data_for(graph, {});
  ir::set_real(inputs[0], 1, -0.0);
  expect_right_on(graph, GetParam(), inputs);
}

// NVRTC 13.0 forgot to extend the sign of such bytes where they are the lowest of a loaded word.
TEST_P(Regressions, ComparedSumsOfBytes) {
  check(R"(graph bytes(x: i8[64], y: i8[64]) {
    a = sign(neg(x))
    b = maximum(add(x, y), y)
    c = minimum(sub(x, y), x)
    d = sign(cast(add(cast(x, dtype=i32), cast(y, dtype=i32)), dtype=i8))
    return a, b, c, d
  })");
}

// Where a row begins is known only when the index was read.
TEST_P(Regressions, RowsOfAGatheredTable) {
  check(R"(graph gathered(x: bool[n, n, n, n], i: i32[]) {
    y = all(take(x, i, axis=0), axis=-1, keepdims=true)
    return y
  })",
        {{{"n", 2}}, {{"n", 5}}});
}

// Rows and columns of the same tensors, which a GPU reduces in one kernel.
TEST_P(Regressions, ReductionsInMixedOrder) {
  check(R"(graph gradients(dy: bf16[rows, 512], x: bf16[rows, 512], w: bf16[512], rstd: f32[rows, 1]) {
    g = cast(dy, dtype=f32)
    n = mul(cast(x, dtype=f32), rstd)
    s = mul(g, cast(w, dtype=f32))
    dx = cast(mul(rstd, sub(s, mul(n, mean(mul(s, n), axis=1, keepdims=true)))), dtype=bf16)
    dw = cast(sum(mul(g, n), axis=0), dtype=bf16)
    db = sum(g, axis=0)
    return dx, dw, db
  })",
        {{{"rows", 1}}, {{"rows", 37}}, {{"rows", 1000}}});
  check(R"(graph whole_rows(dy: f32[rows, 2048], x: f32[rows, 2048], rstd: f32[rows, 1]) {
    g = mul(dy, rstd)
    dx = sub(g, mul(x, mean(mul(x, g), axis=1, keepdims=true)))
    dw = sum(mul(g, x), axis=0)
    return dx, dw
  })",
        {{{"rows", 3}}, {{"rows", 600}}});
}

// One sum, or one product, chosen from two places that are the same place: kernels hold it once.
TEST_P(Regressions, OneElementChosenFromCopiesOfItself) {
  check(R"(graph chosen(a: f32[100], b: f32[100, 1], i: i32[], j: i32[]) {
    product = matmul(a, b)
    y = take(concat(product, exp(product), axis=0), i, axis=0)
    padded = pad(product, low=[1], high=[1], value=7.0)
    z = take(padded, j, axis=0)
    total = broadcast_to(sum(a, axis=0, keepdims=true), shape=[3])
    t = take(pad(concat(total, neg(total), axis=0), low=[2], high=[0]), j, axis=0)
    return y, z, t
  })");
}

// Each element stands in a whole row of the two that are reduced, so that its exponential was computed ahead of the
// shift that a sum and a maximum in one sweep find row by row.
TEST_P(Regressions, AnOnlineSumOfElementsThatStandForWholeRows) {
  check(R"(graph online(x: f32[64, 1], i: i64[31]) {
    y = logsumexp(take(tanh(x), i, axis=1))
    z = logsumexp(take(exp(x), i, axis=1), axis=1)
    return y, z
  })");
}

// Products in f64 whose softmax is in f32: an attention has one place for both.
TEST_P(Regressions, AttentionOfProductsThatAreRoundedToAnotherType) {
  check(R"(graph mixed(q: f64[3, 16], k: f64[16, 100], v: f32[100, 2]) {
    y = matmul(softmax(matmul(q, k, dtype=f32)), v)
    return y
  })");
}

// A cast between the shifted scores and their exponential was once taken for scores without a shift.
TEST_P(Regressions, AttentionWhoseExponentialsAreWiderThanItsScores) {
  check(R"(graph wider(q: f16[33, 16], k: f16[16, 100], v: f16[100, 8]) {
    s = matmul(q, k)
    m = max(s, axis=-1, keepdims=true)
    e = exp(cast(sub(s, m), dtype=f32))
    y = matmul(cast(div(e, sum(e, axis=-1, keepdims=true)), dtype=f16), v)
    return y, m
  })");
}

// Weights that are truncated do not commute with the sum over keys: no attention.
TEST_P(Regressions, AttentionWhoseWeightsAreTruncated) {
  check(R"(graph truncated(q: f32[33, 16], k: f32[16, 100], v: f32[100, 8]) {
    p = cast(mul(softmax(matmul(q, k)), 100.0), dtype=i32)
    y = matmul(cast(p, dtype=f32), v)
    return y
  })");
}

// The planner's number of a place that a view moves to is made of those of the views behind it: it once overflowed.
TEST_P(Regressions, APaddedDifferenceOfRows) {
  check(R"(graph padded(x: f16[8, 2, 17]) {
    a = log_softmax(acos(x))
    y = pad(sub(a, a), low=[3, 0, 0], high=[0, 3, 2])
    return y
  })");
}

// The rows' number, by which an index is divided, is 0: a processor traps.
TEST_P(Regressions, APaddedTransposeOfNoRows) {
  check(R"(graph padded(x: f32[1, rows, 100]) {
    y = pad(transpose(x, perm=[1, 2, 0]), low=[1, 0, 0], high=[0, 3, 3])
    return y
  })",
        {{{"rows", 0}}, {{"rows", 2}}});
}

// Windows: the digits of a product's rows in another order, cut at other places.
TEST_P(Regressions, ViewsBehindAProductThatCutItsRows) {
  check(R"(graph windows(a: f32[2, 4, 4], b: f32[2, 4, 4], c: f32[n, 4, 6], d: f32[6, 8]) {
    y = matmul(a, b)
    w = reshape(transpose(reshape(y, shape=[2, 2, 2, 4]), perm=[1, 2, 0, 3]), shape=[2, 16])
    z = matmul(c, d)
    v = reshape(transpose(reshape(tanh(z), shape=[n, 2, 2, 4, 2]), perm=[1, 3, 0, 2, 4]), shape=[8, 4*n])
    return w, v
  })",
        {{{"n", 1}}, {{"n", 3}}});
}

TEST_P(Regressions, ViewsAroundAnAttentionThatCutItsRows) {
  check(R"(graph windows(x: f32[n, 4, 4, 6], wq: f32[6, 6], bias: f32[2, 4, 4], mask: f32[4, 1, 4, 4]) {
    w = reshape(transpose(reshape(x, shape=[n, 2, 2, 2, 2, 6]), perm=[0, 1, 3, 2, 4, 5]), shape=[4*n, 4, 6])
    q = transpose(reshape(matmul(w, wq), shape=[4*n, 4, 2, 3]), perm=[0, 2, 1, 3])
    s = add(matmul(q, transpose(q, perm=[0, 1, 3, 2])), bias)
    m = reshape(add(reshape(s, shape=[n, 4, 2, 4, 4]), mask), shape=[4*n, 2, 4, 4])
    o = reshape(transpose(matmul(softmax(m), q), perm=[0, 2, 1, 3]), shape=[4*n, 4, 6])
    y = reshape(transpose(reshape(o, shape=[n, 2, 2, 2, 2, 6]), perm=[0, 1, 3, 2, 4, 5]), shape=[n, 4, 4, 6])
    return y
  })",
        {{{"n", 1}}, {{"n", 3}}});
}

TEST_P(Regressions, AttentionOfDepthZero) {
  check(R"(graph no_depth(q: f32[1, 3, n], k: f32[1, 3, n], v: f32[1, 3, 5], w: f32[1, 3, n]) {
    y = attention(q, k, v)
    z, lse = attention(k, q, w, lse=true)
    return y, z, lse
  })",
        {{{"n", 0}}, {{"n", 2}}});
  check(R"(graph no_depth(q: f32[3, 32, 0], k: f32[3, 4, 0], v: f32[3, 4, 6], e: f32[3, 4, 0]) {
    y, a = attention(q, k, v, lse=true)
    z, b = attention(q, k, e, lse=true)
    return y, a, z, b
  })");
}

// Scores that stand still along the keys once hid which operand is the score, and which the weight.
TEST_P(Regressions, AttentionOverCopiesOfOneKey) {
  check(R"(graph copies(q: f32[2, 5, 8], key: f32[2, 1, 8], v: f32[2, 7, 4]) {
    k = broadcast_to(key, shape=[2, 7, 8])
    y = attention(q, k, v)
    p = softmax(matmul(q, transpose(k, perm=[0, 2, 1])))
    z = matmul(mul(2.0, p), v)
    return y, z
  })");
}

TEST_P(Regressions, AxesOfNothingBehindProductsAndReductions) {
  check(R"(graph nothing(x: f32[2, 1, 3, 2], w: f32[2, n], a: f32[3, n], b: f32[n, 4]) {
    i = argmax(x, axis=-1)
    y = matmul(x, w)
    t = transpose(y, perm=[0, 3, 2, 1])
    r = reshape(transpose(reshape(matmul(a, b), shape=[3, 2, 2]), perm=[1, 0, 2]), shape=[6, 2])
    s = sum(transpose(a), axis=0)
    u = softmax(reshape(transpose(a), shape=[3*n]))
    return i, y, t, r, s, u
  })",
        {{{"n", 0}}, {{"n", 1}}, {{"n", 5}}});
}

// Results of one point in rows of different lengths, and one that lies across them: no loops run along all of them.
TEST_P(Regressions, ResultsInSeveralShapesBesideATransposedOne) {
  check(R"(graph shapes(a: f32[16, 5], b: f32[16, 5]) {
    c = greater_equal(b, a)
    flat = reshape(c, shape=[80])
    pairs = reshape(c, shape=[40, 2])
    t = transpose(a)
    return flat, pairs, t
  })");
  check(R"(graph shapes(x: f32[33, 4], c: f32[4, 33]) {
    y = reshape(tan(x), shape=[22, 2, -1, 3])
    z = mod(transpose(x), c)
    return y, z
  })");
}

// Rows that lie across memory, beside a reduction over them: elements of the next row wait one by one.
TEST_P(Regressions, OuterReductionsOfTransposedRows) {
  check(R"(graph across(x: f32[500, 1, 5]) {
    t = transpose(x, perm=[2, 1, 0])
    s = softmax(t, axis=2)
    y = concat(t, mean(s, axis=-3, keepdims=true), axis=0)
    return y
  })");
}

// It is an infinity, which this dtype does not have: what decides is the NaN that would be stored.
TEST_P(Regressions, TheMinimumOfNothingInADtypeWithoutInfinity) {
  check(R"(graph nothing(x: f8e4m3[0, 16]) {
    m = min(x)
    y = equal(m, m)
    z = neg(max(x, axis=0))
    return y, z
  })");
}

// What y makes of the attention is at the attention's own points, which its views cut in fours and put together again.
TEST_P(Regressions, ViewsBehindAnAttentionThatCutItUnevenly) {
  check(R"(graph uneven(q: f64[4, 24, 12], k: f64[4, 24, 12], v: f64[4, 24, 12]) {
    a = reshape(attention(q, k, v), shape=[576, 2])
    b = transpose(reshape(a, shape=[144, 4, 1, 1, 2]), perm=[0, 2, 1, 3, 4])
    c = reshape(reshape(b, shape=[144, 4, 2]), shape=[72, 2, 4, 2])
    y = reshape(transpose(c, perm=[3, 0, 1, 2]), shape=[2, 144, 4])
    e = expm1(sin(a))
    z = reshape(greater_equal(e, flip(e, axis=[0, 1])), shape=[1152])
    return y, z
  })");
}

// n - 3 columns are none at a size that no kernel is specialised for; the rows have their sums all the same.
TEST_P(Regressions, AnAttentionWithoutColumnsHasItsRows) {
  check(R"(graph rows(q: f32[2, 5, 8], k: f32[2, 7, 8], v: f32[2, 7, n]) where n >= 3 {
    y, l = attention(q, k, slice(v, axis=[2], start=[3], stop=[n]), lse=true)
    return y, l
  })",
        {{{"n", 3}}, {{"n", 4}}});
  check(R"(graph rows(q: f32[2, 5, 8], k: f32[2, 7, 8], v: f32[2, 7, 2*n]) where n >= 0 {
    y, l = attention(q, k, v, lse=true)
    return y, l
  })",
        {{{"n", 0}}, {{"n", 1}}, {{"n", 2}}});
}

// 48 columns are cut in eights of sixes, moved as one, and put together again.
TEST_P(Regressions, ViewsBehindAProductThatCutItUnevenly) {
  check(R"(graph uneven(a: f64[4, 24, 14], b: f64[4, 14, 8]) {
    x = transpose(reshape(matmul(a, b), shape=[4, 4, 6, 8]), perm=[0, 2, 3, 1])
    y = transpose(reshape(x, shape=[4, 8, 6, 4]), perm=[0, 3, 1, 2])
    z = reshape(y, shape=[4, 192])
    return z
  })");
}

// Whether all of a row is -inf is asked of its maximum, which the softmax alone may take without looking for NaN.
TEST_P(Regressions, ASoftmaxsMaximumThatDecidesSomething) {
  const ir::Graph graph = ir::parse(R"(graph decides(x: f32[6, 15]) {
    nothing = all(equal(x, -inf), axis=-1, keepdims=true)
    y = where(nothing, 0.5, softmax(x))
    return y
  })");
  std::vector<ir::HostArray> inputs = data_for(graph, {});
  for (std::int64_t i = 0; i < 30; ++i) ir::set_real(inputs[0], i, -std::numeric_limits<double>::infinity());
  ir::set_real(inputs[0], 20, std::numeric_limits<double>::quiet_NaN());
  expect_right_on(graph, GetParam(), inputs);
}

// Of an empty table zeros are taken, whatever would be computed of an element, and nothing is read.
TEST_P(Regressions, NothingIsTakenOfAnEmptyTable) {
  check(R"(graph empty(x: bf16[rows], tokens: i16[8, 1]) {
    y = take(flip(log2(x), axis=0), tokens)
    z = take(isfinite(x), tokens)
    w = take(x, tokens)
    return y, z, w
  })",
        {{{"rows", 0}}, {{"rows", 1}}, {{"rows", 5}}});
}

// What is added to a position wraps in its dtype: all rows but the first are below 0, and see every column.
TEST_P(Regressions, APositionThatWrapsBoundsNoProduct) {
  check(R"(graph wraps(a: f32[64, 32], b: f32[32, 64]) {
    row = iota(shape=[64, 1], axis=0, dtype=i32)
    column = iota(shape=[64], axis=0, dtype=i32)
    y = where(less(add(row, 2147483647), column), matmul(a, b), 0)
    return y
  })");
}

TENON_ON_EACH_TARGET(Regressions);

}  // namespace
}  // namespace tenon::test
