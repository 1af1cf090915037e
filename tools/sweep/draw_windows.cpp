// Windows written as slices, and gathers.
#include <algorithm>

#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

std::int64_t at(const Ints& shape, std::int64_t axis) { return shape[static_cast<std::size_t>(axis)]; }

// Windows of `size` in steps of `step` along `axes`.
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
