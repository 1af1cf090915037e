// Attention written by hand, with what exporters put between a softmax and the second product.
#include <cmath>

#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Op;
using ir::ValueId;

struct Rows {
  ValueId scores;
  Dim queries, keys;
  ValueId mask = -1;  ///< what may be seen, where there is one
};

ValueId scores_of(Generator& g, DType dtype, const Shape& batch, const Dim& queries, const Dim& keys) {
  const Dim depth(g.pick(Ints{4, 8, 16, 1, 5}));
  Shape q = batch, k = batch;
  q.insert(q.end(), {queries, depth});
  k.insert(k.end(), {depth, keys});
  const ValueId scores = g.make(Op::matmul, {g.new_input(dtype, q), g.new_input(dtype, k)},
                                {{"dtype", g.chance(0.5) ? dtype : DType::f32}});
  return g.chance(0.6) ? g.make(Op::mul, {scores, g.literal(0.25, g.type(scores).dtype)}) : scores;
}

ValueId mask_of(Generator& g, const Dim& queries, const Dim& keys) {
  if (g.chance(0.4)) return g.new_input(DType::bool_, g.chance(0.5) ? Shape{queries, keys} : Shape{keys});
  const ValueId row = g.make(Op::iota, {}, {{"shape", Shape{queries, 1}}, {"dtype", DType::i32}});
  const ValueId column = g.make(Op::iota, {}, {{"shape", Shape{keys}}, {"dtype", DType::i32}});
  return g.make(Op::less_equal, {column, row});
}

// Masked by -inf, or by a bias that is -inf in places.
void mask(Generator& g, Rows& rows) {
  if (!g.chance(0.7)) return;
  const DType dtype = g.type(rows.scores).dtype;
  rows.mask = mask_of(g, rows.queries, rows.keys);
  const ValueId hidden = g.literal(-INFINITY, dtype);
  if (g.chance(0.6)) {
    rows.scores = g.make(Op::where, {rows.mask, rows.scores, hidden});
  } else {
    rows.scores = g.make(Op::add, {rows.scores, g.make(Op::where, {rows.mask, g.literal(0, dtype), hidden})});
  }
}

ValueId weights_of(Generator& g, ValueId scores) {
  if (g.chance(0.6)) return g.make(Op::softmax, {scores});
  const ValueId top = g.make(Op::max, {scores}, {{"axis", Ints{-1}}, {"keepdims", true}});
  const ValueId weight = g.make(Op::exp, {g.make(Op::sub, {scores, top})});
  return g.make(Op::div, {weight, g.make(Op::sum, {weight}, {{"axis", Ints{-1}}, {"keepdims", true}})});
}

// A condition of the row, of the weight, or of neither.
ValueId condition(Generator& g, const Rows& rows, ValueId weight) {
  const DType dtype = g.type(weight).dtype, of_scores = g.type(rows.scores).dtype;
  const auto of_row = [&](Op op, ValueId each) { return g.make(op, {each}, {{"axis", Ints{-1}}, {"keepdims", true}}); };
  switch (g.uniform(0, 6)) {
    case 0: return g.make(Op::isnan, {weight});
    case 1:
      return g.make(Op::logical_not,
                    {of_row(Op::any, g.make(Op::not_equal, {rows.scores, g.literal(-INFINITY, of_scores)}))});
    case 2: return of_row(Op::all, g.make(Op::equal, {rows.scores, g.literal(-INFINITY, of_scores)}));
    case 3: return g.make(Op::less, {weight, g.literal(0.125, dtype)});
    case 4: return rows.mask >= 0 ? g.make(Op::logical_not, {rows.mask}) : g.make(Op::isinf, {weight});
    case 5: return g.new_input(DType::bool_, {rows.queries, 1});
    default: return g.make(Op::less, {of_row(Op::max, weight), g.literal(0.5, dtype)});
  }
}

// What looks like an attention and is none, or not quite: planning has a rule for each.
ValueId nearly(Generator& g, const Rows& rows, ValueId scores) {
  const DType dtype = g.type(scores).dtype;
  const auto row_sum = [&](ValueId x) { return g.make(Op::sum, {x}, {{"axis", Ints{-1}}, {"keepdims", true}}); };
  switch (g.uniform(0, 4)) {
    case 0: return g.make(Op::softmax, {scores}, {{"axis", Ints{-2}}});
    case 1: {  // shifted by something that is not the maximum
      const ValueId shift =
          g.chance(0.5) ? g.make(Op::max, {g.make(Op::mul, {scores, scores})}, {{"axis", Ints{-1}}, {"keepdims", true}})
                        : g.new_input(dtype, {rows.queries, 1});
      const ValueId weight = g.make(Op::exp, {g.make(Op::sub, {scores, shift})});
      return g.make(Op::div, {weight, row_sum(weight)});
    }
    case 2: return g.make(Op::matmul, {g.make(Op::softmax, {scores}), g.new_input(dtype, {rows.keys, rows.keys})});
    case 3: {  // sums of other exponentials
      const ValueId weight = g.make(Op::exp, {scores});
      return g.make(Op::div, {weight, row_sum(g.make(Op::exp, {g.make(Op::neg, {scores})}))});
    }
    default: {  // of scores that are no product
      const ValueId given = g.new_input(dtype, g.shape(scores));
      return g.make(Op::softmax, {g.make(Op::add, {given, scores})});
    }
  }
}

// The second product: of matrices, sometimes twice, or of a vector.
void mix(Generator& g, const Shape& batch, const Rows& rows, ValueId weight) {
  const DType dtype = g.type(weight).dtype;
  if (g.chance(0.1)) {
    g.make(Op::matmul, {weight, g.new_input(dtype, {rows.keys})});
    return;
  }
  for (int products = g.chance(0.1) ? 2 : 1; products > 0; --products) {
    Shape v = batch;
    v.insert(v.end(), {rows.keys, Dim(g.pick(Ints{8, 16, 1, 5}))});
    g.make(Op::matmul, {weight, g.new_input(dtype, v)});
  }
}

}  // namespace

bool draw_weights(Generator& g) {
  const DType dtype = g.real_dtype();
  const Shape batch = g.chance(0.5) ? Shape{} : Shape{Dim(g.uniform(1, 3))};
  Rows rows{-1, Dim(g.uniform(1, 24)), Dim(g.chance(0.1) ? 1 : g.uniform(2, 40))};
  rows.scores = scores_of(g, dtype, batch, rows.queries, rows.keys);
  mask(g, rows);
  ValueId weight = g.chance(0.2) ? nearly(g, rows, rows.scores) : weights_of(g, rows.scores);
  for (int conditions = g.uniform(0, 2); conditions > 0; --conditions) {
    const ValueId replaced = g.literal(g.chance(0.8) ? 0 : 0.5, g.type(weight).dtype);
    const ValueId when = condition(g, rows, weight);
    weight = g.make(Op::where, {when, replaced, weight});
  }
  if (g.type(weight).dtype != dtype) weight = g.make(Op::cast, {weight}, {{"dtype", dtype}});
  if (g.chance(0.15)) g.must_return(weight);
  mix(g, batch, rows, weight);
  return true;
}

}  // namespace tenon::test
