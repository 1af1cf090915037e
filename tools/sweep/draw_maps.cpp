// Chains of maps: activations, biases, residuals, masks, casts; integers; optimizer steps.
#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

Tensor scaled(Sketch& s, const Tensor& x) {
  const double factor = s.pick(std::vector{0.5, 2.0, 0.1, 1.702, -1.0, 0.044715});
  switch (s.uniform(0, 5)) {
    case 0: return x * factor;
    case 1: return x + factor;
    case 2: return factor - x;
    case 3: return clamp(x, -3.0, 3.0);
    case 4: return minimum(x, 6.0);
    default: return x / 3.0;
  }
}

// A condition of x's shape, or one that broadcasts to it.
Tensor condition(Sketch& s, const Tensor& x) {
  const Ints shape = extents(x);
  switch (s.uniform(0, 4)) {
    case 3: {  // of rows and of columns
      const Tensor mask = s.bias(DType::bool_, shape);
      return ~mask & (abs(x) < 2.0);
    }
    case 0: return s.input(DType::bool_, shape);
    case 1: return s.bias(DType::bool_, shape);
    case 2: {  // causal, of the last two axes
      const auto rank = static_cast<std::int64_t>(shape.size());
      if (rank < 2) return x < 1.0;
      const std::int64_t by = rank - 1, up = rank - 2;
      const Tensor column = iota(s.graph(), dims(only(shape, {by})), by),
                   row = iota(s.graph(), dims(only(shape, {up})), up);
      return column <= row;
    }
    default: return x > 0.0;
  }
}

Tensor selected(Sketch& s, const Tensor& x) {
  const Tensor where_to = condition(s, x);
  return where(where_to, x, s.pick(std::vector{0.0, -1e4}));
}

Tensor with_operand(Sketch& s, const Tensor& x, const Tensor& y) {
  switch (s.uniform(0, 8)) {
    case 0:
    case 1:
    case 2: return x + y;
    case 3:
    case 4: return x * y;
    case 5: return x - y;
    case 6: return maximum(x, y);
    case 7: return fma(y, 0.5, x);
    default: return x / (abs(y) + 1.0);
  }
}

Tensor other_dtype(Sketch& s, const Tensor& x) {
  const DType dtype = s.real();
  return dtype == x.dtype() ? sign(x) * sqrt(abs(x)) : cast(x, dtype);
}

Tensor dropped(Sketch& s, const Tensor& x) {
  const double p = s.pick(std::vector{0.1, 0.5});
  if (s.chance(0.5)) return dropout(x, 1234, p);
  return dropout(x, s.input(DType::i64, {}), p);
}

// Images of bytes to normalised reals, reals to 8 bits and back.
void draw_bytes(Sketch& s) {
  const Ints shape = s.shape();
  const DType dtype = s.real(), eight = s.chance(0.7) ? DType::f8e4m3 : DType::f8e5m2;
  switch (s.uniform(0, 4)) {
    case 3: {
      const Tensor x = s.input(dtype, shape), scale = s.bias(dtype, shape);
      return s.output(cast(x * scale, eight));
    }
    case 4: {
      const Tensor x = s.input(eight, shape), scale = s.bias(dtype, shape);
      return s.output(maps(s, cast(x, dtype) * scale, 1));
    }
    case 0: {
      const Tensor x = cast(s.input(DType::u8, shape), dtype) / 255.0;
      const Tensor mean = s.bias(dtype, shape);
      const Tensor deviation = s.input(dtype, extents(mean));
      return s.output((x - mean) / (abs(deviation) + 0.1));
    }
    case 1: {
      const Tensor x = s.input(dtype, shape), scale = s.bias(dtype, shape);
      return s.output(cast(clamp(round(x / (abs(scale) + 0.05)), -128.0, 127.0), DType::i8));
    }
    default: {
      const Tensor x = s.input(DType::i8, shape), scale = s.bias(dtype, shape);
      const Tensor y = cast(x, dtype) * scale;
      return s.output(s.chance(0.5) ? activation(s, y) : y);
    }
  }
}

Tensor integer_step(Sketch& s, const Tensor& x) {
  switch (s.uniform(0, 9)) {
    case 0: return x * 3;
    case 1: return x % 7;
    case 2: return floor_div(x, 3);
    case 3: return clamp(x, 1, 8);
    case 4: return where(x > 4, x, 0);
    case 5: return x & 0x55;
    case 6: return x + s.input(x.dtype(), extents(x));
    case 7: return x ^ (right_shift(x, 2));
    case 8: return maximum(x, s.input(x.dtype(), extents(x)));
    default: return x + s.bias(x.dtype(), extents(x));
  }
}

void draw_integers(Sketch& s, DType dtype) {
  const Ints shape = s.shape();
  Tensor x = s.input(dtype, shape);
  for (int steps = s.uniform(1, 5); steps > 0; --steps) x = integer_step(s, x);
  switch (s.uniform(0, 3)) {
    case 0: return s.output(cast(x, s.real()) * 0.125);
    case 1: {
      const Tensor other = s.input(dtype, shape);
      return s.output(equal(x, other));
    }
    default: return s.output(x);
  }
}

}  // namespace

Tensor activation(Sketch& s, const Tensor& x) {
  switch (s.weighted({6, 5, 5, 6, 4, 3, 3, 4, 4, 4, 2, 3, 2, 1, 1, 2, 2, 1, 1, 2, 1, 0.5, 0.5, 0.5})) {
    case 0: return gelu(x);
    case 1: return gelu(x, "tanh");
    case 2: return silu(x);
    case 3: return relu(x);
    case 4: return mish(x);
    case 5: return elu(x);
    case 6: return leaky_relu(x, 0.2);
    case 7: return sigmoid(x);
    case 8: return tanh(x);
    case 9: return softplus(x);
    case 10: return exp(-abs(x));
    case 11: return x * x;
    case 12: return log1p(abs(x));
    case 13: return sin(x);
    case 14: return cos(x);
    case 15: return sqrt(abs(x) + 1e-3);
    case 16: return rsqrt(x * x + 1e-2);
    case 17: return erf(x);
    case 18: return pow(abs(x), 1.5);
    case 19: return where(isnan(x), 0.0, x);
    case 20: return reciprocal(1.0 + abs(x));  // softsign's
    case 21: return expm1(-abs(x));
    case 22: return floor(x * 16.0) * 0.0625;
    default: return x * clamp(x + 3.0, 0.0, 6.0) / 6.0;  // hardswish
  }
}

Tensor maps(Sketch& s, Tensor x, int steps) {
  const Ints shape = extents(x);
  for (; steps > 0; --steps) switch (s.weighted({9, 4, 3, 4, 2, 1.5, 0.7, 0.8})) {
      case 0: x = activation(s, x); break;
      case 1: x = scaled(s, x); break;
      case 2: x = with_operand(s, x, s.input(x.dtype(), shape)); break;
      case 3: x = with_operand(s, x, s.bias(x.dtype(), shape)); break;
      case 4: x = selected(s, x); break;
      case 5: x = other_dtype(s, x); break;
      case 6: x = dropped(s, x); break;
      default: x = swiglu(x, s.input(x.dtype(), shape)); break;
    }
  return x;
}

void draw_chain(Sketch& s) {
  if (s.chance(0.08)) return draw_bytes(s);
  const DType dtype = s.any_dtype();
  if (!is_real(dtype)) return draw_integers(s, dtype);
  Tensor x = s.input(dtype, s.shape());
  const Ints shape = extents(x);
  if (s.chance(0.4)) x = with_operand(s, x, s.bias(dtype, shape));
  const int first = s.uniform(1, 4), then = s.chance(0.5) ? s.uniform(1, 6) : 0;
  x = maps(s, x, first);
  const bool both = then > 0 && s.chance(0.25), tested = s.chance(0.05);
  if (both) s.output(x);
  x = maps(s, x, then);
  if (tested) return s.output(x > 0.25);
  s.output(x);
}

void draw_optimizer(Sketch& s) {
  const Ints shape = s.shape();
  const DType dtype = s.chance(0.7) ? DType::f32 : s.real();
  const bool low_gradient = dtype == DType::f32 && s.chance(0.3);
  const Tensor p = s.input(dtype, shape);
  const Tensor given = s.input(low_gradient ? DType::bf16 : dtype, shape);
  const Tensor g = low_gradient ? as(given, dtype) : given;
  switch (s.uniform(0, 3)) {
    case 0: return s.output(p - g * 0.01);
    case 1: {  // momentum
      const Tensor v = s.input(dtype, shape) * 0.9 + g;
      s.output(v);
      return s.output(p - v * 0.01);
    }
    case 2: {  // AdamW
      const Tensor m = s.input(dtype, shape) * 0.9 + g * 0.1;
      const Tensor v = abs(s.input(dtype, shape)) * 0.999 + g * g * 0.001;
      s.output(m);
      s.output(v);
      return s.output(p * 0.9999 - m * 0.01 / (sqrt(v * 1000.0) + 1e-3));
    }
    default: {  // an average of weights
      const Tensor mean = s.input(dtype, shape);
      return s.output(mean * 0.999 + (p - g * 0.01) * 0.001);
    }
  }
}

}  // namespace tenon::tools::sweep
