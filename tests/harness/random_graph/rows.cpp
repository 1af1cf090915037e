// Patterns of rows: what is joined, gathered or multiplied before a norm or a softmax, and reductions in steps.
#include "ir/ops/op.h"
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Op;
using ir::ValueId;

// Rows out of several pieces, or gathered from a table.
ValueId joined(Generator& g, ValueId x) {
  const ir::Type type = g.type(x);
  const int last = static_cast<int>(type.shape.size()) - 1;
  switch (g.uniform(0, 3)) {
    case 0: {
      Shape other = type.shape;
      const int axis = g.chance(0.7) ? last : g.uniform(0, last);
      other[static_cast<std::size_t>(axis)] = g.random_dim();
      std::vector<ValueId> pieces{x, g.new_input(type.dtype, other)};
      if (g.chance(0.4)) pieces.push_back(x);
      g.shuffle(pieces);
      return g.make(Op::concat, pieces, {{"axis", std::int64_t{axis}}});
    }
    case 1: {
      const ValueId index = g.new_input(g.chance(0.5) ? DType::i32 : DType::i64, {g.random_dim()});
      return g.make(Op::take, {x, index}, {{"axis", std::int64_t{g.chance(0.7) ? 0 : last}}});
    }
    case 2: {
      std::vector<Dim> low(type.shape.size(), Dim(0)), high = low;
      low.back() = Dim(g.uniform(0, 3));
      high.back() = Dim(g.uniform(0, 3));
      return g.make(Op::pad, {x}, {{"low", low}, {"high", high}, {"value", ir::Scalar(std::int64_t{0})}});
    }
    default: {
      const ValueId positions = g.make(Op::take, {x, g.new_input(DType::i32, {g.random_dim()})});
      return g.make(Op::add, {positions, g.partner(type.dtype, g.shape(positions))});
    }
  }
}

ValueId reduced(Generator& g, ValueId x) {
  const std::vector<Op> kinds{Op::layer_norm, Op::rms_norm, Op::softmax, Op::log_softmax, Op::logsumexp,
                              Op::mean,       Op::var,      Op::sum,     Op::max,         Op::argmax};
  const Op op = g.pick(kinds);
  std::vector<ValueId> operands{x};
  if ((op == Op::layer_norm || op == Op::rms_norm) && g.chance(0.6))
    operands.push_back(g.new_input(g.type(x).dtype, {g.shape(x).back()}));
  ir::Attrs attrs{{"axis", Ints{-1}}};
  return g.make(op, operands, std::move(attrs));
}

}  // namespace

bool draw_joined_rows(Generator& g) {
  const ValueId rows = joined(g, g.real_value(1));
  const ValueId result = reduced(g, rows);
  if (g.chance(0.2)) g.must_return(rows);
  if (g.chance(0.3) && g.rank(result) > 0) reduced(g, joined(g, result));
  return true;
}

// What the maximum is taken of and what it is subtracted from have to be one number, whatever rounds the product.
bool draw_shifted_product(Generator& g) {
  const ValueId a = g.real_value(1);
  const ir::Type type = g.type(a);
  const ValueId b = g.partner(type.dtype, type.shape);
  const std::vector<Op> products{Op::mul, Op::mul, Op::swiglu, Op::add, Op::div};
  const ValueId x = g.make(g.pick(products), {a, b});
  if (g.chance(0.3)) g.must_return(x);
  if (g.chance(0.2)) {
    Shape rows = g.shape(x);
    rows.pop_back();
    return g.append(Op::cross_entropy, {x, g.new_input(DType::i64, rows)},
                    {{"reduction", g.pick(std::vector<std::string>{"none", "mean"})}});
  }
  const std::vector<Op> shifted{Op::softmax, Op::log_softmax, Op::logsumexp};
  const ValueId y = g.make(g.pick(shifted), {x}, {{"axis", Ints{-1}}});
  if (g.rank(y) > 0 && g.chance(0.4)) g.append(g.chance(0.5) ? Op::max : Op::sum, {y}, {{"axis", Ints{0}}});
  return true;
}

// Over the rows and over the columns of the same tensors, as the gradients of a norm.
bool draw_both_ways(Generator& g) {
  const ValueId x = g.real_value(2);
  const ir::Type type = g.type(x);
  const ValueId weighted = g.make(Op::mul, {x, g.new_input(type.dtype, {type.shape.back()})});
  const ValueId row = g.make(Op::sum, {weighted}, {{"axis", Ints{-1}}, {"keepdims", true}});
  g.must_return(g.make(Op::sub, {weighted, row}));
  Ints outer;
  for (int axis = 0; axis + 1 < static_cast<int>(type.shape.size()); ++axis) outer.push_back(axis);
  g.must_return(g.make(Op::sum, {g.chance(0.5) ? x : g.make(Op::mul, {x, x})}, {{"axis", outer}}));
  if (g.chance(0.5)) g.must_return(g.make(Op::max, {weighted}, {{"axis", outer}}));
  return true;
}

// First over pieces of an axis, then over the rest; over axes of extent 1 in between.
bool draw_split_reductions(Generator& g) {
  ValueId x = g.real_value(1);
  const Shape cut = split_axes(g, g.shape(x));
  x = g.make(Op::reshape, {x}, {{"shape", cut}});
  const std::vector<Op> reductions{Op::max, Op::sum, Op::mean, Op::min};
  for (int steps = g.uniform(1, 3); steps > 0 && g.rank(x) > 0; --steps) {
    ir::Attrs attrs{{"axis", g.random_axes(g.rank(x))}};
    if (g.chance(0.5)) attrs.set("keepdims", true);
    x = g.make(g.pick(reductions), {x}, std::move(attrs));
    if (g.chance(0.3)) x = g.make(Op::mul, {x, x});
  }
  return true;
}

}  // namespace tenon::test
