// Windows written as slices, and gathers.
#include <algorithm>

#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

// x of (batch, channels, space…) or (batch, space…, channels), and windows of `size` in steps of `step` along its
// space.
struct Windows {
  Tensor x;
  Ints shape, axes;
  std::int64_t channel, size, step, frame;
};

Windows drawn_windows(Sketch& s) {
  const DType dtype = s.real();
  const int space = 1 + static_cast<int>(s.weighted({3, 6, 1}));
  const bool last = s.chance(0.2), apart = s.chance(0.4), is_framed = s.chance(0.4);
  const std::int64_t size = s.pick(std::vector<std::int64_t>{2, 2, 3, 3, 3, 5}), step = s.uniform(1, 2);
  Windows w{{}, s.images(space), {}, 1, size, apart ? size : step, is_framed ? size / 2 : 0};
  const auto rank = static_cast<std::int64_t>(w.shape.size());
  for (std::int64_t axis = 2; axis < rank; ++axis) {
    std::int64_t& extent = w.shape[static_cast<std::size_t>(axis)];
    extent = std::max(extent, 2 * size);
    w.axes.push_back(last ? axis - 1 : axis);
  }
  if (last) {
    std::rotate(w.shape.begin() + 1, w.shape.begin() + 2, w.shape.end());
    w.channel = rank - 1;
  }
  w.x = s.input(dtype, w.shape);
  return w;
}

// `width` elements of `value` around x along some axes.
Tensor framed(const Tensor& x, const Ints& axes, std::int64_t width, double value) {
  Ints widths(static_cast<std::size_t>(x.rank()), 0);
  for (const std::int64_t axis : axes) widths[static_cast<std::size_t>(axis)] = width;
  return width == 0 ? x : pad(x, dims(widths), dims(widths), value);
}

// Element i of each window along one axis.
Tensor element(const Tensor& x, const Windows& w, std::int64_t axis, std::int64_t i) {
  const std::int64_t last = (at(extents(x), axis) - w.size) / w.step * w.step;
  return slice(x, axis, i, i + last + 1, w.step);
}

// An axis at a time.
template <typename Fold>
Tensor folded_by_axis(Tensor x, const Windows& w, const Fold& fold) {
  for (const std::int64_t axis : w.axes) {
    Tensor folded = element(x, w, axis, 0);
    for (std::int64_t i = 1; i < w.size; ++i) folded = fold(folded, element(x, w, axis, i));
    x = folded;
  }
  return x;
}

// All elements of a window over two axes at once.
template <typename Fold>
Tensor folded_at_once(const Tensor& x, const Windows& w, const Fold& fold) {
  Tensor folded;
  for (std::int64_t i = 0; i < w.size * w.size; ++i) {
    const Tensor one = element(element(x, w, w.axes[0], i / w.size), w, w.axes[1], i % w.size);
    folded = i == 0 ? one : fold(folded, one);
  }
  return folded;
}

template <typename Fold>
Tensor folded(Sketch& s, const Tensor& x, const Windows& w, const Fold& fold) {
  const bool at_once = s.chance(0.5) && w.axes.size() == 2;
  return at_once ? folded_at_once(x, w, fold) : folded_by_axis(x, w, fold);
}

Tensor largest(Sketch& s, const Windows& w) {
  const double least = w.x.dtype() == DType::f16 ? -6e4 : -1e30;
  return folded(s, framed(w.x, w.axes, w.frame, least), w,
                [](const Tensor& a, const Tensor& b) { return maximum(a, b); });
}

Tensor averages(Sketch& s, const Windows& w) {
  double places = 1;
  for (std::size_t i = 0; i < w.axes.size(); ++i) places *= static_cast<double>(w.size);
  return folded(s, framed(w.x, w.axes, w.frame, 0), w, [](const Tensor& a, const Tensor& b) { return a + b; }) *
         (1 / places);
}

// A depthwise convolution along one axis: a weight for each place and channel.
Tensor convolved(Sketch& s, const Windows& w) {
  const std::int64_t axis = w.axes[0];
  const Tensor x = framed(w.x, {axis}, w.size / 2, 0);
  const std::int64_t places = at(extents(x), axis) - w.size + 1;
  Tensor total;
  for (std::int64_t i = 0; i < w.size; ++i) {
    const Tensor weight = s.input(x.dtype(), only(w.shape, {w.channel}));
    const Tensor product = slice(x, axis, i, i + places) * weight;
    total = i == 0 ? product : total + product;
  }
  return total;
}

Tensor differences(Sketch&, const Windows& w) {
  const std::int64_t axis = w.axes.back(), n = at(w.shape, axis);
  return slice(w.x, axis, 1, n) - slice(w.x, axis, 0, n - 1);
}

// Laplace's, by finite differences.
Tensor curvature(Sketch&, const Windows& w) {
  const Tensor wide = framed(w.x, w.axes, 1, 0);
  Tensor total = w.x * (-2.0 * static_cast<double>(w.axes.size()));
  for (const std::int64_t axis : w.axes) {
    Tensor line = wide;
    for (const std::int64_t other : w.axes)
      if (other != axis) line = slice(line, other, 1, 1 + at(w.shape, other));
    total = total + slice(line, axis, 0, at(w.shape, axis));
    total = total + slice(line, axis, 2, 2 + at(w.shape, axis));
  }
  return total;
}

// Windows that do not overlap, as axes of their own.
Tensor pooled_by_reshape(Sketch& s, const Windows& w) {
  Ints cut, pooled;
  Tensor whole = w.x;
  for (std::int64_t axis = 0; axis < w.x.rank(); ++axis) {
    const bool is_space = std::find(w.axes.begin(), w.axes.end(), axis) != w.axes.end();
    const std::int64_t n = at(w.shape, axis), windows = n / w.size;
    cut.push_back(is_space ? windows : n);
    if (!is_space) continue;
    if (n % w.size != 0) whole = slice(whole, axis, 0, windows * w.size);
    pooled.push_back(static_cast<std::int64_t>(cut.size()));
    cut.push_back(w.size);
  }
  const Tensor parts = reshape(whole, dims(cut));
  return s.chance(0.5) ? mean(parts, pooled) : max(parts, pooled);
}

}  // namespace

void draw_window(Sketch& s) {
  constexpr Tensor (*kKinds[])(Sketch&, const Windows&) = {largest,     averages,  convolved,
                                                           differences, curvature, pooled_by_reshape};
  const Windows windows = drawn_windows(s);
  const auto kind = kKinds[s.weighted({4, 4, 2, 2, 2, 2})];
  const int after = static_cast<int>(s.weighted({6, 3}));
  const Tensor y = kind(s, windows);
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
