// Patterns of views: what windows, heads and image layouts do around products, attentions and reductions.
#include "ir/ops/op.h"
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Op;
using ir::ValueId;

// A result whose elements a kernel cannot compute at any place it likes: of a product, an attention or a reduction.
ValueId heavy_value(Generator& g) {
  const auto old = g.value_where([&](ValueId value) {
    const Op op = g.graph().producer(value).op;
    const ir::Kind kind = ir::kind_of(op);
    return (kind == ir::Kind::contract || kind == ir::Kind::reduce || op == Op::attention || op == Op::softmax ||
            op == Op::layer_norm) &&
           g.rank(value) > 0;
  });
  if (old && g.chance(0.7)) return *old;
  const Dim m(4 * g.uniform(1, 6)), k(g.uniform(1, 16)), n(4 * g.uniform(1, 6)), batch(2 * g.uniform(1, 3));
  const DType dtype = g.real_dtype();
  if (g.chance(0.25)) {
    const ValueId x = g.new_input(dtype, {batch, m, n});
    return g.chance(0.5) ? g.make(Op::softmax, {x}) : g.make(Op::sum, {x}, {{"axis", Ints{g.uniform(0, 2)}}});
  }
  if (g.chance(0.25))
    return g.make(Op::attention, {g.new_input(dtype, {batch, m, n}), g.new_input(dtype, {batch, m, n}),
                                  g.new_input(dtype, {batch, m, n})});
  return g.make(Op::matmul, {g.new_input(dtype, {batch, m, k}), g.new_input(dtype, {batch, k, n})});
}

// One step of a chain.
ValueId moved(Generator& g, ValueId x) {
  if (g.chance(0.6)) return regrouped(g, x);
  if (g.chance(0.3) && g.rank(x) > 0) return g.make(Op::flip, {x}, {{"axis", g.random_axes(g.rank(x))}});
  return append_view(g, x) ? static_cast<ValueId>(g.graph().values.size() - 1) : x;
}

void use(Generator& g, ValueId x) {
  const ir::Type type = g.type(x);
  const int what = g.uniform(0, 3);
  if (what == 0 && is_real(type.dtype) && !type.shape.empty())
    g.append(Op::matmul, {x, g.new_input(type.dtype, {type.shape.back(), g.uniform(1, 17)})});
  if (what == 1 && is_real(type.dtype) && !type.shape.empty()) g.append(Op::softmax, {x});
  if (what == 2 && type.dtype != DType::bool_) g.append(Op::mul, {x, g.partner(type.dtype, type.shape)});
  if (what == 3) g.must_return(x);
}

}  // namespace

bool draw_view_chain(Generator& g) {
  ValueId x = g.chance(0.75) ? heavy_value(g) : g.random_value();
  if (g.chance(0.3) && is_real(g.type(x).dtype)) x = g.make(Op::mul, {x, g.partner(g.type(x).dtype, g.shape(x))});
  for (int steps = g.uniform(1, 3); steps > 0; --steps) x = moved(g, x);
  use(g, x);
  return true;
}

// Multi-head attention as it is written: x W cut in heads, positions before or after heads, and joined behind it.
bool draw_heads(Generator& g) {
  const DType dtype = g.real_dtype();
  const Dim batch(g.uniform(1, 3)), positions(g.uniform(1, 20)), heads(g.uniform(1, 4)), depth(4 * g.uniform(1, 4));
  const Dim width = heads * depth;
  const ValueId x = g.new_input(dtype, {batch, positions, width});
  std::vector<ValueId> parts;
  if (g.chance(0.5)) {  // one product for all three, the number of the part ahead of the heads or behind them
    const bool ahead = g.chance(0.5);
    const ValueId all = g.make(Op::matmul, {x, g.new_input(dtype, {width, width * Dim(3)})});
    const ValueId cut = g.make(
        Op::reshape, {all},
        {{"shape", ahead ? Shape{batch, positions, 3, heads, depth} : Shape{batch, positions, heads, 3, depth}}});
    const ValueId turned = g.make(Op::transpose, {cut}, {{"perm", ahead ? Ints{2, 0, 3, 1, 4} : Ints{3, 0, 2, 1, 4}}});
    for (int part = 0; part < 3; ++part) {
      const ValueId one =
          g.make(Op::slice, {turned},
                 {{"axis", Ints{0}}, {"start", std::vector{Dim(part)}}, {"stop", std::vector{Dim(part + 1)}}});
      parts.push_back(g.make(Op::reshape, {one}, {{"shape", Shape{batch, heads, positions, depth}}}));
    }
  } else {
    for (int part = 0; part < 3; ++part) {
      const ValueId one = g.make(Op::matmul, {x, g.new_input(dtype, {width, width})});
      const ValueId cut = g.make(Op::reshape, {one}, {{"shape", Shape{batch, positions, heads, depth}}});
      parts.push_back(g.make(Op::transpose, {cut}, {{"perm", Ints{0, 2, 1, 3}}}));
    }
  }
  const ValueId mixed = g.make(Op::attention, parts, {{"causal", g.chance(0.5)}});
  const ValueId turned = g.make(Op::transpose, {mixed}, {{"perm", Ints{0, 2, 1, 3}}});
  const ValueId joined = g.make(Op::reshape, {turned}, {{"shape", Shape{batch, positions, width}}});
  if (g.chance(0.6)) g.make(Op::linear, {joined, g.new_input(dtype, {width, width})});
  return true;
}

bool draw_seen_twice(Generator& g) {
  const ValueId a = g.random_value();
  const ir::Type type = g.type(a);
  ValueId c = a;
  if (type.dtype == DType::bool_) {
    c = g.make(Op::logical_not, {a});
  } else if (g.chance(0.5)) {
    c = g.make(Op::greater_equal, {g.partner(type.dtype, type.shape), a});
  } else if (is_real(type.dtype)) {
    c = g.make(Op::tan, {a});
  }
  for (int shapes = g.uniform(1, 2); shapes > 0; --shapes)
    g.must_return(g.make(Op::reshape, {c}, {{"shape", split_axes(g, join_axes(g, g.shape(c)))}}));
  const ValueId across = g.make(Op::transpose, {a}, {{"perm", g.permutation(g.rank(a))}});
  if (g.chance(0.5) && type.dtype != DType::bool_) {
    g.must_return(g.make(Op::maximum, {across, g.partner(type.dtype, g.shape(across))}));
  } else {
    g.must_return(across);
  }
  return true;
}

}  // namespace tenon::test
