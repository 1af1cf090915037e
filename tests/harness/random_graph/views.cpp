// Draws of one view, and the regrouping of axes of which chains are made.
#include <algorithm>

#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Attrs;
using ir::Op;
using ir::ValueId;

Shape broadcast_of(Generator& g, Shape shape) {
  for (Dim& extent : shape)
    if (extent.is(1) && g.chance(0.7)) extent = g.random_dim();
  if (g.chance(0.5)) shape.insert(shape.begin(), g.random_dim());
  return shape;
}

struct Range {
  Dim start, stop;
  std::int64_t step;
};

Range constant_range(Generator& g, int n) {
  const std::int64_t step = g.chance(0.6) ? 1 : g.chance(0.5) ? g.uniform(1, 3) : g.uniform(-3, -1);
  if (g.chance(0.3)) return {g.uniform(-n - 1, n + 1), g.uniform(-n - 1, n + 1), step};
  if (step < 0) return {n - 1, -n - 1, step};
  return {g.uniform(0, n / 2), g.uniform(n / 2, n), step};
}

Range symbolic_range(Generator& g, const Dim& n) {
  const std::vector<Range> ranges{{0, n, 2}, {n.floor_div(2), n, 1}, {0, n.floor_div(2), 1}, {0, n, 1}};
  return g.pick(ranges);
}

bool append_slice(Generator& g, ValueId x) {
  const Shape shape = g.shape(x);
  Ints axes, steps;
  std::vector<Dim> starts, stops;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!g.chance(shape[i].is_constant() ? 0.6 : 0.25)) continue;
    const Range range =
        shape[i].is_constant() ? constant_range(g, static_cast<int>(shape[i].constant())) : symbolic_range(g, shape[i]);
    axes.push_back(static_cast<std::int64_t>(i));
    starts.push_back(range.start);
    stops.push_back(range.stop);
    steps.push_back(range.step);
  }
  return !axes.empty() &&
         g.append(Op::slice, {x}, {{"axis", axes}, {"start", starts}, {"stop", stops}, {"step", steps}});
}

ir::Scalar pad_value(Generator& g, DType dtype) {
  if (!is_real(dtype) || g.chance(0.6)) return ir::Scalar(std::int64_t{g.uniform(0, 1)});
  return ir::Scalar(g.pick(std::vector<double>{0.5, -1.0, 3.0, -2.0}));
}

bool append_pad(Generator& g, ValueId x) {
  std::vector<Dim> low, high;
  for (int i = 0; i < g.rank(x); ++i) {
    low.push_back(g.chance(0.5) ? 0 : g.uniform(0, 3));
    high.push_back(g.chance(0.5) ? 0 : g.uniform(0, 3));
  }
  return g.append(Op::pad, {x}, {{"low", low}, {"high", high}, {"value", pad_value(g, g.type(x).dtype)}});
}

bool append_concat(Generator& g, ValueId x) {
  const ir::Type type = g.type(x);
  if (type.shape.empty()) return false;
  const int axis = g.uniform(0, static_cast<int>(type.shape.size()) - 1);
  std::vector<ValueId> pieces{x};
  for (int more = g.uniform(0, 2); more > 0; --more) {
    const auto fits = g.value_where([&](ValueId value) {
      const ir::Type& other = g.type(value);
      if (other.dtype != type.dtype || other.shape.size() != type.shape.size()) return false;
      for (std::size_t i = 0; i < other.shape.size(); ++i)
        if (static_cast<int>(i) != axis && !(other.shape[i] == type.shape[i])) return false;
      return true;
    });
    pieces.push_back(fits ? *fits : x);
  }
  g.shuffle(pieces);
  return g.append(Op::concat, pieces, {{"axis", std::int64_t{axis}}});
}

bool append_take(Generator& g, ValueId x) {
  const int rank = g.rank(x);
  if (rank == 0) return false;
  const DType dtype = g.chance(0.5) ? DType::i32 : DType::i64;
  const auto old = g.value_where([&](ValueId value) { return is_integer(g.type(value).dtype) && g.rank(value) <= 2; });
  Shape shape;
  for (int axes = g.chance(0.3) ? 0 : g.chance(0.8) ? 1 : 2; axes > 0; --axes) shape.push_back(g.random_dim());
  const ValueId index = old && g.chance(0.5) ? *old : g.new_input(dtype, shape);
  return g.append(Op::take, {x, index}, {{"axis", std::int64_t{g.uniform(0, rank - 1)}}});
}

}  // namespace

Shape split_axes(Generator& g, const Shape& shape) {
  Shape split;
  for (const Dim& extent : shape) {
    const std::int64_t divisor = extent.is_constant() && extent.constant() > 1 && g.chance(0.6) ? g.uniform(2, 8) : 0;
    if (divisor > 0 && extent.constant() % divisor == 0) {
      split.push_back(extent.constant() / divisor);
      split.push_back(divisor);
    } else {
      split.push_back(extent);
    }
  }
  if (g.chance(0.2)) split.insert(split.begin() + g.uniform(0, static_cast<int>(split.size())), Dim(1));
  return split;
}

Shape join_axes(Generator& g, const Shape& shape) {
  Shape joined;
  for (const Dim& extent : shape) {
    if (!joined.empty() && g.chance(0.4)) {
      joined.back() = joined.back() * extent;
    } else {
      joined.push_back(extent);
    }
  }
  return joined;
}

ValueId regrouped(Generator& g, ValueId x) {
  const ValueId cut = g.make(Op::reshape, {x}, {{"shape", split_axes(g, g.shape(x))}});
  Ints perm = g.permutation(g.rank(cut));
  if (perm.size() > 1 && g.chance(0.5)) {  // two neighbours change places, as windows and heads do
    std::sort(perm.begin(), perm.end());
    const auto at = static_cast<std::size_t>(g.uniform(0, static_cast<int>(perm.size()) - 2));
    std::swap(perm[at], perm[at + 1]);
  }
  const ValueId moved = g.make(Op::transpose, {cut}, {{"perm", perm}});
  return g.make(Op::reshape, {moved}, {{"shape", join_axes(g, g.shape(moved))}});
}

bool append_view(Generator& g, ValueId x) {
  const int rank = g.rank(x);
  switch (g.uniform(0, 8)) {
    case 0: return g.append(Op::transpose, {x}, {{"perm", g.permutation(rank)}});
    case 1: return g.append(Op::reshape, {x}, {{"shape", split_axes(g, join_axes(g, g.shape(x)))}});
    case 2: return g.append(Op::broadcast_to, {x}, {{"shape", broadcast_of(g, g.shape(x))}});
    case 3: return append_slice(g, x);
    case 4: return rank > 0 && g.append(Op::flip, {x}, {{"axis", g.random_axes(rank)}});
    case 5: return append_pad(g, x);
    case 6: return append_concat(g, x);
    case 7: return append_take(g, x);
    default: return g.append(Op::expand_dims, {x}, {{"axis", Ints{g.uniform(0, rank)}}});
  }
}

bool draw_view(Generator& g) { return append_view(g, g.random_value()); }

}  // namespace tenon::test
