// Views that end in memory.
#include <algorithm>
#include <iterator>

#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

// A part of one axis, in steps or not.
Tensor sliced(Sketch& s, const Tensor& x) {
  const Ints shape = extents(x);
  const std::int64_t axis = s.uniform(0, x.rank() - 1), n = at(shape, axis);
  const double low = s.unit() * 0.5, high = 0.5 + s.unit() * 0.5;
  const std::int64_t step = s.pick(std::vector<std::int64_t>{1, 1, 1, 2, 3});
  const auto start = static_cast<std::int64_t>(low * static_cast<double>(n));
  const std::int64_t stop = std::max(start + 1, static_cast<std::int64_t>(high * static_cast<double>(n)));
  return slice(x, axis, start, stop, step);
}

Tensor padded(Sketch& s, const Tensor& x) {
  Ints low(static_cast<std::size_t>(x.rank()), 0), high = low;
  for (std::size_t axis = 0; axis < low.size(); ++axis) {
    const int before = s.uniform(0, 3), after = s.uniform(0, 3);
    if (s.chance(0.6)) continue;
    low[axis] = before;
    high[axis] = after;
  }
  high.back() += 1;
  return pad(x, dims(low), dims(high));
}

Tensor joined(Sketch& s, const Tensor& x) {
  const Ints shape = extents(x);
  const std::int64_t axis = s.uniform(0, x.rank() - 1);
  const double share = s.unit();
  Ints other = shape;
  other[static_cast<std::size_t>(axis)] =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(at(shape, axis))));
  const Tensor y = s.input(x.dtype(), other);
  return concat({x, y}, axis);
}

Tensor rolled(Sketch& s, const Tensor& x) {
  const std::int64_t axis = s.uniform(0, x.rank() - 1), n = at(extents(x), axis);
  const double share = s.unit();
  if (n < 2) return flip(x);
  const std::int64_t by = 1 + static_cast<std::int64_t>(share * static_cast<double>(n - 1));
  return concat({slice(x, axis, by, n), slice(x, axis, 0, by)}, axis);
}

// (…, heads * depth) to (…, heads, depth) with the heads before the last axis of rows.
Tensor heads(Sketch& s, const Tensor& x) {
  Ints shape = extents(x);
  const std::int64_t depth = s.pick(std::vector<std::int64_t>{32, 64, 80, 128});
  if (shape.size() < 2 || shape.size() > 5 || shape.back() % depth != 0) return transpose(x);
  shape.back() /= depth;
  shape.push_back(depth);
  Ints perm;
  for (std::size_t i = 0; i < shape.size(); ++i) perm.push_back(static_cast<std::int64_t>(i));
  std::swap(perm[perm.size() - 2], perm[perm.size() - 3]);
  return transpose(reshape(x, dims(shape)), perm);
}

// (n, c r r, h, w) to (n, c, h r, w r), or back.
Tensor shuffled_pixels(Sketch& s) {
  Ints image = s.images(2);
  const std::int64_t r = s.pick(std::vector<std::int64_t>{2, 2, 3, 4}), n = image[0], c = image[1], h = image[2],
                     w = image[3];
  const DType dtype = s.any_dtype();
  if (s.chance(0.5)) {
    const Tensor x = s.input(dtype, {n, c * r * r, h, w});
    return reshape(transpose(reshape(x, {n, c, r, r, h, w}), {0, 1, 4, 2, 5, 3}), {n, c, h * r, w * r});
  }
  const Tensor x = s.input(dtype, {n, c, h * r, w * r});
  return reshape(transpose(reshape(x, {n, c, h, r, w, r}), {0, 2, 4, 1, 3, 5}), {n, h * w, c * r * r});
}

// Rotary embeddings of (batch, heads, length, depth).
Tensor rotated(Sketch& s) {
  const DType dtype = s.real();
  const std::int64_t depth = s.pick(std::vector<std::int64_t>{64, 80, 128}), half = depth / 2;
  const Ints shape = s.rows(depth, 4);
  const Tensor x = s.input(dtype, shape), c = s.input(dtype, {shape[2], depth}), n = s.input(dtype, {shape[2], depth});
  if (s.chance(0.7)) {
    const Tensor turned = concat({-slice(x, 3, half, depth), slice(x, 3, 0, half)}, 3);
    return x * c + turned * n;
  }
  const Tensor pairs = reshape(x, {shape[0], shape[1], shape[2], half, 2});
  const Tensor turned = stack({-slice(pairs, 4, 1, 2), slice(pairs, 4, 0, 1)}, 4);
  return x * c + reshape(turned, dims(shape)) * n;
}

Tensor repeated(Sketch& s, const Tensor& x) {
  Ints shape = extents(x), wide = shape;
  const std::int64_t axis = s.uniform(0, x.rank() - 1), times = s.pick(std::vector<std::int64_t>{2, 3, 4, 8});
  const bool each = s.chance(0.5);
  if (shape.size() > 6) return x;
  wide.insert(wide.begin() + axis + (each ? 1 : 0), times);
  shape[static_cast<std::size_t>(axis)] *= times;
  return reshape(broadcast_to(expand_dims(x, axis + (each ? 1 : 0)), dims(wide)), dims(shape));
}

Tensor viewed(Sketch& s, const Tensor& x) {
  const Ints perm = s.permutation(x.rank());
  switch (s.weighted({8, 3, 3, 3, 2, 2, 2, 2})) {
    case 0: return transpose(x, perm);
    case 1: return sliced(s, x);
    case 2: return padded(s, x);
    case 3: return joined(s, x);
    case 4: return flip(x, s.uniform(0, x.rank() - 1));
    case 5: return rolled(s, x);
    case 6: return heads(s, x);
    default: return repeated(s, x);
  }
}

}  // namespace

void draw_view(Sketch& s) {
  switch (s.weighted({8, 1, 1})) {
    case 1: return s.output(shuffled_pixels(s));
    case 2: return s.output(rotated(s));
    default: break;
  }
  const DType dtype = s.any_dtype();
  const int rank = std::min(6, s.rank() + 1);
  Tensor x = s.input(dtype, s.shape(rank));
  const int views = 1 + static_cast<int>(s.weighted({5, 3, 1})), before = static_cast<int>(s.weighted({7, 2})),
            after = static_cast<int>(s.weighted({6, 3, 1}));
  if (is_real(dtype)) x = maps(s, x, before);
  for (int i = 0; i < views; ++i) x = viewed(s, x);
  if (s.chance(0.1) && extents(x).back() % 2 == 0) {  // a half for each result
    const std::int64_t half = extents(x).back() / 2;
    const std::vector<Tensor> halves = tenon::split(x, {half, half}, -1);
    s.output(halves[0]);
    return s.output(is_real(dtype) ? activation(s, halves[1]) : halves[1]);
  }
  const bool added = s.chance(0.15);
  if (added) x = x + s.input(x.dtype(), extents(x));
  s.output(is_real(dtype) ? maps(s, x, after) : x);
}

}  // namespace tenon::tools::sweep
