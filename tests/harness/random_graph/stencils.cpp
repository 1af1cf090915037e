// Patterns of overlapping views that meet again: stencils, rolls, flips, bounded in what one element takes.
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Op;
using ir::ValueId;

ValueId slice(Generator& g, ValueId x, int axis, const Dim& start, const Dim& stop) {
  return g.make(Op::slice, {x}, {{"axis", Ints{axis}}, {"start", std::vector{start}}, {"stop", std::vector{stop}}});
}

// A number with a few axes, each of 3 elements or more.
ValueId grid(Generator& g, int rank) {
  const auto old = g.value_where([&](ValueId value) {
    if (g.type(value).dtype == DType::bool_ || g.rank(value) != rank) return false;
    for (const Dim& extent : g.shape(value))
      if (!extent.is_constant() || extent.constant() < 3) return false;
    return true;
  });
  if (old && g.chance(0.6)) return *old;
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) shape.push_back(Dim(g.uniform(3, rank == 1 ? 100 : 20)));
  return g.new_input(g.chance(0.8) ? g.real_dtype() : DType::i32, shape);
}

// The element and its neighbours along each axis, in a frame of zeros or of the number that pads.
ValueId neighbours(Generator& g, ValueId x) {
  const Shape shape = g.shape(x);
  const std::vector<Dim> one(shape.size(), Dim(1));
  const ValueId framed =
      g.make(Op::pad, {x}, {{"low", one}, {"high", one}, {"value", ir::Scalar(std::int64_t{g.uniform(0, 1)})}});
  ValueId sum = -1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    for (int side = 0; side < 2; ++side) {
      std::vector<Dim> start(shape.size(), Dim(1)), stop;
      Ints axes;
      start[axis] = Dim(2 * side);
      for (std::size_t i = 0; i < shape.size(); ++i) {
        axes.push_back(static_cast<std::int64_t>(i));
        stop.push_back(start[i] + shape[i]);
      }
      const ValueId shifted = g.make(Op::slice, {framed}, {{"axis", axes}, {"start", start}, {"stop", stop}});
      sum = sum < 0 ? shifted : g.make(Op::add, {sum, shifted});
    }
  return sum;
}

ValueId differences(Generator& g, ValueId x, int axis) {
  const Dim n = g.shape(x)[static_cast<std::size_t>(axis)];
  const ValueId ahead = slice(g, x, axis, 1, n), behind = slice(g, x, axis, 0, n - Dim(1));
  return g.make(g.chance(0.5) ? Op::sub : Op::maximum, {ahead, behind});
}

ValueId rolled(Generator& g, ValueId x, int axis) {
  const Dim n = g.shape(x)[static_cast<std::size_t>(axis)];
  const Dim by(g.uniform(1, static_cast<int>(n.constant()) - 1));
  return g.make(Op::concat, {slice(g, x, axis, by, n), slice(g, x, axis, 0, by)}, {{"axis", std::int64_t{axis}}});
}

}  // namespace

bool draw_stencil(Generator& g) {
  const int rank = g.uniform(1, 2);
  ValueId x = grid(g, rank);
  const bool whole = g.chance(0.6);
  for (int steps = g.uniform(1, rank == 1 ? 4 : 3); steps > 0; --steps) {
    const int axis = g.uniform(0, rank - 1);
    if (!whole && g.shape(x)[static_cast<std::size_t>(axis)].constant() < 2) break;
    x = whole ? neighbours(g, x) : differences(g, x, axis);
    if (is_real(g.type(x).dtype) && g.chance(0.7)) x = g.make(Op::mul, {x, g.literal(0.25, g.type(x).dtype)});
  }
  return true;
}

bool draw_roll(Generator& g) {
  ValueId x = grid(g, g.uniform(1, 2));
  const int axis = g.uniform(0, g.rank(x) - 1);
  const Dim n = g.shape(x)[static_cast<std::size_t>(axis)];
  const bool flips = g.chance(0.4);
  for (int steps = g.uniform(1, 4); steps > 0; --steps) {
    if (flips) {
      const ValueId both =
          g.make(Op::concat, {x, g.make(Op::flip, {x}, {{"axis", Ints{axis}}})}, {{"axis", std::int64_t{axis}}});
      const Dim start(g.uniform(0, static_cast<int>(n.constant())));
      x = slice(g, both, axis, start, start + n);
    } else {
      x = g.make(g.chance(0.7) ? Op::add : Op::minimum, {x, rolled(g, x, axis)});
    }
  }
  return true;
}

}  // namespace tenon::test
