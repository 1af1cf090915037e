// Softmax and norms, as composites and written out, and gradients of norms.
#include <algorithm>
#include <cmath>

#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

Tensor written_out(const Tensor& x, const Axes& axes) {
  const Tensor e = exp(x - max(x, axes, true));
  return e / sum(e, axes, true);
}

Tensor scores(Sketch& s, Tensor x, const Ints& shape) {
  if (s.chance(0.35)) x = x * 0.125;
  switch (s.weighted({6, 1, 1, 1})) {
    case 1: {
      const Tensor mask = s.bias(DType::bool_, shape);
      return where(mask, x, -1e4);
    }
    case 2: {
      const auto rank = static_cast<std::int64_t>(shape.size());
      if (rank < 2) return x;
      const Tensor key = iota(s.graph(), {Dim(shape.back())}),
                   query = iota(s.graph(), {Dim(shape[static_cast<std::size_t>(rank - 2)]), Dim(1)});
      return where(key <= query, x, -INFINITY);
    }
    case 3: {
      const Tensor bias = s.bias(x.dtype(), shape);
      return x + bias;
    }
    default: return x;
  }
}

// x with mean 0 and deviation 1 over some axes, and what it was shifted and multiplied by.
struct Normalised {
  Tensor value, mean, deviation;
};
Normalised normalised(const Tensor& x, const Axes& axes) {
  const Tensor m = mean(x, axes, true);
  const Tensor inverse = rsqrt(var(x, axes, true, 0) + 1e-5);
  return {(x - m) * inverse, m, inverse};
}

Ints last_axes(std::int64_t rank, std::int64_t count) {
  Ints axes;
  for (std::int64_t axis = rank - count; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

enum class Norm : std::uint8_t { batch, group, instance, inference };

// x of (batch, channels, space…) or (batch, space…, channels), in f32 or as it is stored.
struct Channels {
  Norm kind = Norm::batch;
  DType dtype = DType::f32;  // as it is stored
  std::int64_t groups = 1;
  Ints shape, axes;  // that are normalised
  Ints parameters;   // the shape of a number for each channel
  Tensor x;
};

Channels drawn_channels(Sketch& s) {
  Channels c;
  c.dtype = s.real();
  const int space = static_cast<int>(s.weighted({1, 2, 7, 1}));  // axes of space
  const bool wide = s.chance(0.5), last = s.chance(0.2);
  c.kind = static_cast<Norm>(s.weighted({5, 3, 2, 2}));
  c.groups = s.pick(std::vector<std::int64_t>{2, 4, 8, 16, 32});
  c.shape = s.images(space);
  if (space == 0 && c.kind != Norm::inference) c.kind = Norm::batch;
  const auto rank = static_cast<std::int64_t>(c.shape.size());
  std::int64_t channel = 1;
  if (c.kind == Norm::group) {
    c.shape[1] = std::max<std::int64_t>(1, c.shape[1] / c.groups) * c.groups;
  } else if (last) {
    std::rotate(c.shape.begin() + 1, c.shape.begin() + 2, c.shape.end());
    channel = rank - 1;
  }
  for (std::int64_t axis = c.kind == Norm::instance ? 1 : 0; axis < rank; ++axis)
    if (axis != channel) c.axes.push_back(axis);
  c.parameters = Ints(static_cast<std::size_t>(rank - channel), 1);
  c.parameters[0] = at(c.shape, channel);
  c.x = s.input(c.dtype, c.shape);
  if (wide) c.x = as(c.x, Sketch::wide(c.dtype));
  return c;
}

Tensor grouped(const Channels& c) {
  Ints cut{c.shape[0], c.groups, c.shape[1] / c.groups};
  cut.insert(cut.end(), c.shape.begin() + 2, c.shape.end());
  const auto rank = static_cast<std::int64_t>(cut.size());
  return reshape(normalised(reshape(c.x, dims(cut)), last_axes(rank, rank - 2)).value, dims(c.shape));
}

}  // namespace

void draw_softmax(Sketch& s) {
  const Ints shape = s.shape();
  const auto rank = static_cast<int>(shape.size());
  const DType dtype = s.real();
  const bool last = s.chance(0.65);
  const Ints axes = last ? Ints{rank - 1} : s.axes(rank);
  const bool wide = s.chance(0.3);
  Tensor x = s.input(dtype, shape);
  if (wide) x = as(x, Sketch::wide(dtype));
  const std::size_t kind = s.weighted({10, 4, 3, 3});
  if (kind == 3) {  // the gradient
    const Tensor g = s.input(x.dtype(), shape), gx = g * x;
    return s.output(s.chance(0.5) ? gx - x * sum(gx, axes, true) : g - exp(x) * sum(g, axes, true));
  }
  x = scores(s, x, shape);
  const Tensor y = kind == 0 ? softmax(x, axes) : kind == 1 ? log_softmax(x, axes) : written_out(x, axes);
  const int after = static_cast<int>(s.weighted({6, 1}));
  s.output(maps(s, wide ? as(y, dtype) : y, after));
}

void draw_row_norm(Sketch& s) {
  const DType dtype = s.real();
  const std::size_t kind = s.weighted({5, 5, 2});
  const int rank = s.uniform(2, 4);
  const auto over = static_cast<std::int64_t>(1 + s.weighted({8, 1, 1}));
  const bool any = s.chance(0.3), weights = s.chance(0.85), bias = s.chance(0.7), residual = s.chance(0.35);
  const std::int64_t usual = s.usual_extent(s.elements());
  const Ints free = s.split(s.elements(), rank), usual_rows = s.rows(usual, rank);
  const Ints shape = any ? free : usual_rows;
  const Ints axes = last_axes(rank, std::min<std::int64_t>(over, rank - 1));
  Ints row(shape.end() - static_cast<std::ptrdiff_t>(axes.size()), shape.end());
  Tensor x = s.input(dtype, shape);
  if (residual) x = x + s.input(dtype, shape);
  const int after = static_cast<int>(s.weighted({6, 2, 1}));
  if (residual && s.chance(0.6)) s.output(x);
  Tensor y;
  if (kind == 2) {  // lengths of 1
    y = x / maximum(sqrt(sum(x * x, axes, true)), 1e-4);
  } else if (kind == 1) {
    std::optional<Tensor> w;
    if (weights) w = s.input(dtype, row);
    y = rms_norm(x, w, axes);
  } else {
    std::optional<Tensor> w, b;
    if (weights) w = s.input(dtype, row);
    if (weights && bias) b = s.input(dtype, row);
    y = layer_norm(x, w, b, axes);
  }
  s.output(maps(s, y, after));
}

void draw_channel_norm(Sketch& s) {
  const Channels c = drawn_channels(s);
  const DType dtype = c.dtype;
  const auto parameter = [&] { return as(s.input(dtype, c.parameters), c.x.dtype()); };
  const bool affine = s.chance(0.85), moments = s.chance(0.3);
  const int after = static_cast<int>(s.weighted({4, 4, 1}));
  Tensor y;
  if (c.kind == Norm::inference) {
    const Tensor m = parameter(), v = parameter();
    y = (c.x - m) * rsqrt(abs(v) + 1e-3);
  } else if (c.kind == Norm::group) {
    y = grouped(c);
  } else {
    const Normalised n = normalised(c.x, c.axes);
    y = n.value;
    if (moments)
      for (const Tensor& moment : {n.mean, n.deviation}) s.output(reshape(moment, {Dim(count(extents(moment)))}));
  }
  if (affine) {
    const Tensor w = parameter(), b = parameter();
    y = y * w + b;
  }
  s.output(maps(s, as(y, dtype), after));
}

void draw_norm_gradient(Sketch& s) {
  const DType dtype = s.real();
  const bool channels = s.chance(0.3), rms = s.chance(0.4);
  const int rank = s.uniform(2, 3);
  const std::int64_t row = s.any_extent(std::min(65536.0, s.elements()));
  const Ints flat = s.rows(row, rank), images = s.images(2);
  const Ints shape = channels ? images : flat;
  const auto axis_count = static_cast<std::int64_t>(shape.size());
  const Tensor x = as(s.input(dtype, shape), Sketch::wide(dtype)), g = as(s.input(dtype, shape), x.dtype());
  if (channels) {  // of a batch norm: saved moments a channel
    const Ints each = only(shape, {1}), axes{0, 2, 3};
    const Tensor m = s.input(x.dtype(), each), inverse = s.input(x.dtype(), each), w = s.input(x.dtype(), each);
    const Tensor hat = (x - m) * inverse;
    const auto size = static_cast<double>(count(shape) / shape[1]);
    const Tensor dw = sum(g * hat, axes, true), db = sum(g, axes, true);
    s.output(as(w * inverse * (g - db / size - hat * (dw / size)), dtype));
    s.output(dw);
    return s.output(db);
  }
  const Tensor w = s.input(x.dtype(), {row});
  const Tensor inverse = s.input(x.dtype(), without(shape, {axis_count - 1}));
  const Ints outer = last_axes(axis_count - 1, axis_count - 1);
  if (rms) {
    const Tensor hat = x * inverse, gw = g * w;
    s.output(as((gw - hat * mean(gw * hat, -1, true)) * inverse, dtype));
    return s.output(sum(g * hat, outer));
  }
  const Tensor m = s.input(x.dtype(), without(shape, {axis_count - 1}));
  const Tensor hat = (x - m) * inverse, gw = g * w;
  s.output(as((gw - mean(gw, -1, true) - hat * mean(gw * hat, -1, true)) * inverse, dtype));
  s.output(sum(g * hat, outer));
  s.output(sum(g, outer));
}

}  // namespace tenon::tools::sweep
