// Reductions over any axes, arg-reductions and losses.
#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

Tensor reduced(Sketch& s, const Tensor& x, const Axes& axes, bool keep) {
  switch (s.weighted({34, 24, 12, 6, 8, 8, 6, 2, 2, 2})) {
    case 0: return sum(x, axes, keep);
    case 1: return mean(x, axes, keep);
    case 2: return max(x, axes, keep);
    case 3: return min(x, axes, keep);
    case 4: return var(x, axes, keep, 0);
    case 5: return sqrt(sum(x * x, axes, keep));
    case 6: return logsumexp(x, axes, keep);
    case 7: return prod(x * 0.01 + 1.0, axes, keep);
    case 8: return all(isfinite(x), axes, keep);
    default: return any(x > 3.0, axes, keep);
  }
}

Tensor reduced_integers(Sketch& s, const Tensor& x, const Axes& axes, bool keep) {
  switch (s.uniform(0, 4)) {
    case 0: return max(x, axes, keep);
    case 1: return min(x, axes, keep);
    case 2: return sum(cast(equal(x, 3), DType::i64), axes, keep);
    case 3: return mean(cast(x, DType::f32), axes, keep);
    default: return sum(x, axes, keep, DType::i64);
  }
}

Tensor folded(Sketch& s, const Tensor& loss) {
  switch (s.weighted({6, 2, 2, 2})) {
    case 0: return mean(loss);
    case 1: return sum(loss);
    case 2: return loss;
    default: return mean(loss, -1);
  }
}

// Classes along the last axis, or along the channels.
void draw_cross_entropy(Sketch& s) {
  const DType dtype = s.real();
  const std::int64_t classes = s.any_extent(std::min(2e5, s.elements()));
  const int rank = s.uniform(2, 4);
  const bool channels = s.chance(0.25);
  const Ints shape = s.rows(classes, rank);
  Ints kept = shape;
  kept.pop_back();
  const std::string fold = s.pick(std::vector<std::string>{"mean", "mean", "none", "sum"});
  const DType index = s.chance(0.8) ? DType::i64 : DType::i32;
  const bool smooth = s.chance(0.2), ignored = s.chance(0.2);
  if (channels) {  // (batch, classes, space…)
    Ints turned{shape[0], classes};
    turned.insert(turned.end(), shape.begin() + 1, shape.end() - 1);
    Ints back{0};
    for (std::int64_t axis = 2; axis < rank; ++axis) back.push_back(axis);
    back.push_back(1);
    const Tensor x = transpose(s.input(dtype, turned), back), target = s.input(index, kept);
    return s.output(cross_entropy(x, target, fold));
  }
  const Tensor x = s.input(dtype, shape), target = s.input(index, kept);
  if (ignored) {
    const Tensor counted = not_equal(target, 0);
    const Tensor each = where(counted, as(cross_entropy(x, target), DType::f32), 0.0);
    return s.output(sum(each) / sum(cast(counted, DType::f32)));
  }
  const Tensor loss = cross_entropy(x, target, smooth ? "mean" : fold);
  s.output(smooth ? loss * 0.9 - mean(log_softmax(x)) * 0.1 : loss);
}

Tensor elementwise_loss(Sketch& s, const Tensor& x, const Tensor& y) {
  const Tensor d = x - y;
  switch (s.uniform(0, 8)) {
    case 0: return d * d;
    case 1: return abs(d);
    case 2: return where(abs(d) < 1.0, d * d * 0.5, abs(d) - 0.5);  // smooth L1
    case 3: return maximum(x, 0.0) - x * y + log1p(exp(-abs(x)));   // binary cross entropy of logits
    case 4: return maximum(1.0 - x * y, 0.0);                       // hinge
    case 5: return exp(-abs(x)) - y * x;                            // Poisson
    case 6: return d * d / (y * y + 1.0) + log(y * y + 1.0);        // Gaussian
    case 7: return log(cosh(clamp(d, -9.0, 9.0)));
    default: return d * d * sigmoid(x);
  }
}

}  // namespace

void draw_reduction(Sketch& s) {
  const Ints shape = s.shape();
  const auto rank = static_cast<int>(shape.size());
  const DType dtype = s.any_dtype();
  const Ints axes = s.axes(rank);
  const bool keep = s.chance(0.4);
  const Tensor x = s.input(dtype, shape);
  if (!is_real(dtype)) return s.output(reduced_integers(s, x, axes, keep));
  const int before = static_cast<int>(s.weighted({5, 3, 1, 1})), after = static_cast<int>(s.weighted({5, 2, 1}));
  const Tensor y = maps(s, x, before);
  const std::size_t kind = s.weighted({10, 1.5, 1.5, 1});
  if (kind == 1) {  // divided by what it was reduced to
    const Tensor total = sum(abs(y), axes, true);
    return s.output(y / (total + 1e-3));
  }
  if (kind == 2) {  // both moments
    s.output(mean(y, axes, keep));
    return s.output(var(y, axes, keep, 0));
  }
  if (kind == 3) {  // over other axes too
    s.output(sum(y, axes, keep));
    const Ints others = s.axes(rank);
    return s.output(sum(y, others, keep));
  }
  const Tensor r = reduced(s, y, axes, keep);
  s.output(is_real(r.dtype()) && r.rank() > 0 ? maps(s, r, after) : r);
}

void draw_arg_reduction(Sketch& s) {
  const Ints shape = s.shape();
  const auto rank = static_cast<int>(shape.size());
  const DType dtype = s.any_dtype();
  const bool least = s.chance(0.25), one_axis = s.chance(0.75), keep = s.chance(0.2);
  const Ints axes = one_axis ? Ints{s.uniform(0, rank - 1)} : s.axes(rank);
  Tensor x = s.input(dtype, shape);
  const int before = static_cast<int>(s.weighted({6, 2, 1}));
  if (is_real(dtype)) x = maps(s, x, before);
  const Tensor at = least ? argmin(x, axes, keep) : argmax(x, axes, keep);
  const std::size_t kind = s.weighted({6, 3, 2});
  if (kind == 2) {  // accuracy
    const Tensor target = s.input(DType::i64, extents(at));
    return s.output(mean(cast(equal(at, target), DType::f32)));
  }
  s.output(at);
  if (kind == 1) s.output(least ? min(x, axes, keep) : max(x, axes, keep));
}

void draw_loss(Sketch& s) {
  if (s.chance(0.35)) return draw_cross_entropy(s);
  const DType dtype = s.real();
  const Ints shape = s.shape();
  Tensor x = s.input(dtype, shape), y = s.input(dtype, shape);
  if (s.chance(0.3)) {
    x = as(x, Sketch::wide(dtype));
    y = as(y, Sketch::wide(dtype));
  }
  switch (s.weighted({7, 1, 1, 1, 1})) {
    case 1: {  // Kullback-Leibler of logits
      const Tensor p = log_softmax(x), q = softmax(y);
      const Tensor total = as(sum(q * (log(q + 1e-4) - p)), Sketch::wide(dtype));
      return s.output(total / static_cast<double>(shape.front()));
    }
    case 2: {  // the cosine of rows
      const Tensor dot = sum(x * y, -1), lengths = sqrt(sum(x * x, -1)) * sqrt(sum(y * y, -1));
      return s.output(folded(s, expand_dims(1.0 - dot / maximum(lengths, 1e-3), -1)));
    }
    case 3: {  // weighted by a mask
      const Tensor mask = cast(s.bias(DType::bool_, shape), x.dtype());
      return s.output(sum(elementwise_loss(s, x, y) * mask) / (sum(mask) + 1.0));
    }
    case 4: {  // dice
      const Tensor p = sigmoid(x), both = sum(p * y, -1);
      return s.output(mean(1.0 - (both * 2.0 + 1.0) / (sum(p, -1) + sum(abs(y), -1) + 1.0)));
    }
    default: return s.output(folded(s, elementwise_loss(s, x, y)));
  }
}

}  // namespace tenon::tools::sweep
