// Views that end in memory, windows written as slices, gathers.
#include <algorithm>
#include <iterator>

#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

std::int64_t at(const Ints& shape, std::int64_t axis) { return shape[static_cast<std::size_t>(axis)]; }

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

// What `take` gives of the neighbours of each place, folded: windows of `size` in steps of `step` along `axes`.
struct Window {
  Ints axes;
  std::int64_t size, step;
};
template <typename Fold>
Tensor over_window(const Tensor& x, const Window& window, const Fold& fold) {
  Tensor result = x;
  for (const std::int64_t axis : window.axes) {  // an axis at a time
    const std::int64_t n = at(extents(result), axis), places = (n - window.size) / window.step + 1;
    Tensor folded;
    for (std::int64_t i = 0; i < window.size; ++i) {
      const Tensor shifted = slice(result, axis, i, i + (places - 1) * window.step + 1, window.step);
      folded = i == 0 ? shifted : fold(folded, shifted, i);
    }
    result = folded;
  }
  return result;
}

// All places of a window at once, as a pool over two axes is written by hand.
template <typename Fold>
Tensor over_square(const Tensor& x, const Window& window, const Fold& fold) {
  const Ints shape = extents(x);
  const std::int64_t a = window.axes[0], b = window.axes[1];
  const std::int64_t rows = (at(shape, a) - window.size) / window.step + 1,
                     columns = (at(shape, b) - window.size) / window.step + 1;
  Tensor folded;
  for (std::int64_t i = 0; i < window.size * window.size; ++i) {
    const std::int64_t up = i / window.size, by = i % window.size;
    const Tensor row = slice(x, a, up, up + (rows - 1) * window.step + 1, window.step);
    const Tensor place = slice(row, b, by, by + (columns - 1) * window.step + 1, window.step);
    folded = i == 0 ? place : fold(folded, place, i);
  }
  return folded;
}

// The axes of space, framed where `frame` > 0, at least a window long.
Tensor framed(const Tensor& x, const Ints& axes, std::int64_t frame, double value) {
  Ints width(static_cast<std::size_t>(x.rank()), 0);
  for (const std::int64_t axis : axes) width[static_cast<std::size_t>(axis)] = frame;
  return frame == 0 ? x : pad(x, dims(width), dims(width), value);
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

void draw_window(Sketch& s) {
  const DType dtype = s.real();
  const int space = 1 + static_cast<int>(s.weighted({3, 6, 1}));
  const std::size_t kind = s.weighted({4, 4, 2, 2, 2, 2});
  const bool last = s.chance(0.2), square = s.chance(0.5);
  const std::int64_t size = s.pick(std::vector<std::int64_t>{2, 2, 3, 3, 3, 5}),
                     step = s.chance(0.4) ? size : s.uniform(1, 2);
  const std::int64_t frame = s.chance(0.4) ? size / 2 : 0;
  Ints shape = s.images(space);
  Ints axes;
  for (std::int64_t axis = 2; axis < static_cast<std::int64_t>(shape.size()); ++axis) {
    axes.push_back(last ? axis - 1 : axis);
    shape[static_cast<std::size_t>(axis)] = std::max(shape[static_cast<std::size_t>(axis)], 2 * size);
  }
  if (last) {
    shape.push_back(shape[1]);
    shape.erase(shape.begin() + 1);
  }
  const Tensor x = s.input(dtype, shape);
  const int after = static_cast<int>(s.weighted({6, 3}));
  const Window window{axes, size, step};
  const bool whole = axes.size() == 2 && square;
  if (kind == 0) {
    const Tensor wide = framed(x, axes, frame, dtype == DType::f16 ? -6e4 : -1e30);
    const auto larger = [](const Tensor& a, const Tensor& b, std::int64_t) { return maximum(a, b); };
    return s.output(maps(s, whole ? over_square(wide, window, larger) : over_window(wide, window, larger), after));
  }
  if (kind == 1) {
    const Tensor wide = framed(x, axes, frame, 0);
    const auto plus = [](const Tensor& a, const Tensor& b, std::int64_t) { return a + b; };
    double places = 1;
    for (std::size_t i = 0; i < axes.size(); ++i) places *= static_cast<double>(size);
    return s.output(
        maps(s, (whole ? over_square(wide, window, plus) : over_window(wide, window, plus)) * (1 / places), after));
  }
  if (kind == 2) {  // a weight for each place and channel
    const Tensor wide = framed(x, {axes[0]}, size / 2, 0);
    const std::int64_t channel = last ? x.rank() - 1 : 1;
    Ints parameters = only(shape, {channel});
    const std::int64_t places = at(extents(wide), axes[0]) - size + 1;
    Tensor folded;
    for (std::int64_t i = 0; i < size; ++i) {
      const Tensor w = s.input(dtype, parameters), shifted = slice(wide, axes[0], i, i + places);
      folded = i == 0 ? shifted * w : folded + shifted * w;
    }
    return s.output(maps(s, folded, after));
  }
  if (kind == 3) {  // differences
    const std::int64_t n = at(shape, axes.back());
    return s.output(maps(s, slice(x, axes.back(), 1, n) - slice(x, axes.back(), 0, n - 1), after));
  }
  if (kind == 4) {  // Laplace
    const Tensor wide = framed(x, axes, 1, 0);
    Tensor folded = x * (-2.0 * static_cast<double>(axes.size()));
    for (const std::int64_t axis : axes) {
      Tensor inner = wide;
      for (const std::int64_t other : axes)
        if (other != axis) inner = slice(inner, other, 1, 1 + at(shape, other));
      folded = folded + slice(inner, axis, 0, at(shape, axis)) + slice(inner, axis, 2, 2 + at(shape, axis));
    }
    return s.output(folded);
  }
  // A pool of whole windows, by reshape and mean.
  Ints cut;
  Ints pooled;
  Tensor inner = x;
  for (std::int64_t axis = 0; axis < x.rank(); ++axis) {
    const bool is_space = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (is_space && at(shape, axis) % size != 0) inner = slice(inner, axis, 0, at(shape, axis) / size * size);
    cut.push_back(is_space ? at(shape, axis) / size : at(shape, axis));
    if (!is_space) continue;
    pooled.push_back(static_cast<std::int64_t>(cut.size()));
    cut.push_back(size);
  }
  const Tensor parts = reshape(inner, dims(cut));
  const Tensor y = s.chance(0.5) ? mean(parts, pooled) : max(parts, pooled);
  s.output(maps(s, y, after));
}

void draw_gather(Sketch& s) {
  const DType dtype = s.real();
  const bool wide_ids = s.chance(0.7);
  const DType index = wide_ids ? DType::i64 : DType::i32;
  const std::int64_t row = s.usual_extent(std::min(8192.0, s.elements()));
  const double tokens = std::max(1.0, s.elements() / static_cast<double>(row));
  const std::int64_t table = s.any_extent(std::min(2e5, 4 * tokens)), length = s.any_extent(tokens);
  const Ints ids{s.extent(std::max(1.0, tokens / static_cast<double>(length))), length};
  const int after = static_cast<int>(s.weighted({4, 2, 1}));
  switch (s.weighted({5, 2, 2, 2, 2})) {
    case 0: {  // an embedding
      const Tensor t = s.input(dtype, {table, row}), i = s.input(index, ids);
      return s.output(maps(s, take(t, i), after));
    }
    case 1: {  // of tokens and positions, normalised
      const Tensor t = s.input(dtype, {table, row}), i = s.input(index, ids), p = s.input(dtype, {length, row});
      const Tensor w = s.input(dtype, {row}), b = s.input(dtype, {row});
      return s.output(layer_norm(take(t, i) + p, w, b));
    }
    case 2: {  // a bag of embeddings
      const Tensor t = s.input(dtype, {table, row}), i = s.input(index, ids);
      return s.output(s.chance(0.5) ? mean(take(t, i), 1) : sum(take(t, i), 1));
    }
    case 3: {  // columns
      const Tensor x = s.input(dtype, {ids[0], table}), i = s.input(index, {length});
      return s.output(maps(s, take(x, i, 1), after));
    }
    default: {  // rows beside others
      const Tensor t = s.input(dtype, {table, row}), i = s.input(index, {ids[0] * length}),
                   x = s.input(dtype, {ids[0] * length, row});
      return s.output(s.chance(0.5) ? x * take(t, i) : x + sigmoid(take(t, i)));
    }
  }
}

}  // namespace tenon::tools::sweep
