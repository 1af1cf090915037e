// Several drawings in a row, such as blocks of models have between their products.
#include <cmath>
#include <iterator>

#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

// A channel's weight from the mean of its image.
void squeeze_and_excite(Sketch& s) {
  const Ints shape = s.images(2);
  const Tensor x = s.input(s.real(), shape);
  const Tensor gate = sigmoid(mean(x, {2, 3}, true));
  s.output(x * gate);
}

// The norm of a sum, an activation, and the axes turned.
void normalised_and_turned(Sketch& s) {
  const DType dtype = s.real();
  const std::int64_t row = s.usual_extent(s.elements());
  const Ints shape = s.rows(row, s.uniform(2, 4));
  const Tensor x = s.input(dtype, shape), r = s.input(dtype, shape), w = s.input(dtype, {row});
  const Tensor h = rms_norm(x + r, w);
  const Tensor y = activation(s, h);
  const Ints perm = s.permutation(y.rank());
  s.output(transpose(y, perm));
}

// Heads normalised, each by its own length.
void normalised_heads(Sketch& s) {
  const DType dtype = s.real();
  const std::int64_t depth = s.pick(std::vector<std::int64_t>{32, 64, 128}),
                     heads = s.pick(std::vector<std::int64_t>{4, 8, 12, 32});
  const Ints shape = s.rows(depth * heads, 3);
  const Tensor x = s.input(dtype, shape), w = s.input(dtype, {depth});
  const Tensor y = rms_norm(reshape(x, {shape[0], shape[1], heads, depth}), w);
  s.output(transpose(y, {0, 2, 1, 3}));
}

// A reduction of some axes, and of what is left.
void twice_reduced(Sketch& s) {
  const Ints shape = s.shape(s.uniform(2, 4));
  const Tensor x = s.input(s.real(), shape);
  const bool first = s.chance(0.5);
  const std::int64_t a = first ? 0 : x.rank() - 1, b = first ? x.rank() - 2 : 0;
  const Tensor inner = s.chance(0.5) ? max(abs(x), a) : sqrt(sum(x * x, a));
  s.output(s.chance(0.5) ? mean(inner, b) : sum(inner));
}

// Columns to mean 0 and deviation 1, then something of rows.
void standardised(Sketch& s) {
  const Ints shape = s.shape(2);
  const Tensor x = s.input(s.real(), shape);
  const Tensor z = (x - mean(x, 0, true)) / (sqrt(var(x, 0, true, 0)) + 1e-3);
  s.output(s.chance(0.5) ? softmax(z) : z);
}

// The mean of what a mask shows of a sequence.
void masked_mean(Sketch& s) {
  const DType dtype = s.real();
  const std::int64_t row = s.usual_extent(s.elements());
  const Ints shape = s.rows(row, 3);
  const Tensor x = s.input(dtype, shape), mask = cast(s.input(DType::bool_, {shape[0], shape[1], 1}), dtype);
  s.output(sum(x * mask, 1) / maximum(sum(mask, 1), 1.0));
}

// Weights of a softmax and what they sum to.
void weighted_sum(Sketch& s) {
  const DType dtype = s.real();
  const std::int64_t row = s.usual_extent(s.elements());
  const Ints shape = s.rows(row, 3);
  const Tensor x = s.input(dtype, shape), q = s.input(dtype, {row});
  const Tensor p = softmax(sum(x * q, -1), -1);
  s.output(sum(x * expand_dims(p, -1), 1));
}

// A mixture's gates: the best class, its probability.
void gated(Sketch& s) {
  const std::int64_t classes = s.any_extent(std::min(4096.0, s.elements()));
  const Tensor x = s.input(s.real(), s.rows(classes, s.uniform(2, 3)));
  const Tensor p = softmax(x);
  s.output(argmax(p, -1));
  s.output(max(p, -1));
}

// One of a few: a column of zeros and ones for each class.
void one_hot(Sketch& s) {
  const std::int64_t classes = s.any_extent(std::min(4096.0, s.elements()));
  const Ints shape = s.rows(classes, 2);
  const Tensor i = s.input(DType::i64, {shape[0], 1});
  const Tensor hot = equal(i, iota(s.graph(), {Dim(classes)}));
  s.output(cast(hot, s.real()));
}

// Two drawings of one tensor.
void activation_and_totals(Sketch& s) {
  const Ints shape = s.shape(s.uniform(2, 4));
  const Tensor x = s.input(s.real(), shape), b = s.input(x.dtype(), {shape.back()});
  const Tensor y = activation(s, x + b);
  s.output(y);
  const Ints axes = s.axes(y.rank());
  s.output(s.chance(0.5) ? sum(y * y, axes) : max(abs(y), axes));
}

// The gradient of an activation, and of the bias before it.
void bias_gradient(Sketch& s) {
  const Ints shape = s.shape(s.uniform(2, 4));
  const DType dtype = s.real();
  const Tensor x = s.input(dtype, shape), g = s.input(dtype, shape);
  const Tensor p = sigmoid(x), dx = g * (p + x * p * (1.0 - p));
  Ints outer;
  for (std::int64_t axis = 0; axis + 1 < dx.rank(); ++axis) outer.push_back(axis);
  s.output(dx);
  s.output(sum(dx, outer));
}

// Rows scaled to the range of a byte, and their scales.
void quantised_rows(Sketch& s) {
  const std::int64_t row = s.usual_extent(s.elements());
  const Tensor x = s.input(s.real(), s.rows(row, s.uniform(2, 3)));
  const Tensor scale = max(abs(x), -1, true) / 127.0 + 1e-6;
  s.output(cast(clamp(round(x / scale), -127.0, 127.0), DType::i8));
  s.output(as(scale, DType::f32));
}

}  // namespace

void draw_mixed(Sketch& s) {
  constexpr void (*kBlocks[])(Sketch&) = {squeeze_and_excite,
                                          normalised_and_turned,
                                          normalised_heads,
                                          twice_reduced,
                                          standardised,
                                          masked_mean,
                                          weighted_sum,
                                          gated,
                                          one_hot,
                                          activation_and_totals,
                                          bias_gradient,
                                          quantised_rows};
  kBlocks[static_cast<std::size_t>(s.uniform(0, static_cast<int>(std::size(kBlocks)) - 1))](s);
}

}  // namespace tenon::tools::sweep
