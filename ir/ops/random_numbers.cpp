// Random numbers with a distribution, out of random_bits. All of it is integer work, exact conversions and exact
// powers of two, so that uniform numbers are the same bits on every target.
#include <fmt/format.h>

#include "ir/ops/composites.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

constexpr int kOwnBlock = -1;  // word -1: four elements share a block

ValueId bits(const Expansion& e, ValueId seed, const Shape& shape, std::int64_t stream, int word) {
  Attrs attrs{{"shape", shape}, {"stream", stream}};
  if (word != kOwnBlock) attrs.set("word", std::int64_t{word});
  return e(Op::random_bits, {seed}, attrs);
}

// The top `count` (< 32) bits of an i32 as a number from 0: the shift is arithmetic, so its sign fill is masked off.
ValueId top_bits(const Expansion& e, ValueId word, int count) {
  const ValueId shifted = e(Op::right_shift, {word, e.literal(32 - count, word)});
  return e(Op::bitwise_and, {shifted, e.literal(static_cast<double>((std::int64_t{1} << count) - 1), word)});
}

// An integer below 2^53 as f64, from 27 bits of one word and 26 of another.
ValueId integer_f64(const Expansion& e, ValueId seed, const Shape& shape, std::int64_t stream, int first_word) {
  const ValueId high = e.cast(top_bits(e, bits(e, seed, shape, stream, first_word), 27), DType::f64);
  const ValueId low = e.cast(top_bits(e, bits(e, seed, shape, stream, first_word + 1), 26), DType::f64);
  return e(Op::add, {e(Op::mul, {high, e.literal(0x1p26, high)}), low});
}

// Significant bits of the dtypes that have random numbers; 0 for the others.
int precision_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return 11;
    case DType::bf16: return 8;
    case DType::f32: return 24;
    case DType::f64: return 53;
    case DType::bool_:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2: return 0;
  }
  return 0;
}

ValueId uniform(const Expansion& e, ValueId seed, const Shape& shape, std::int64_t stream, DType dtype) {
  if (dtype == DType::f64) {
    const ValueId integer = integer_f64(e, seed, shape, stream, 0);
    return e(Op::mul, {integer, e.literal(0x1p-53, integer)});
  }
  const int precision = precision_of(dtype);
  const ValueId integer = e.cast(top_bits(e, bits(e, seed, shape, stream, kOwnBlock), precision), dtype);
  return e(Op::mul, {integer, e.literal(1.0 / static_cast<double>(1 << precision), integer)});
}

// cos(2 pi u) for u in [0, 1): with q the nearest quarter, u - q/4 is exact and at most 1/8, so that the sine or the
// cosine of 2 pi (u - q/4) is taken where both are accurate. 2 pi is split in two for the same reason.
ValueId cosine_of_turns(const Expansion& e, ValueId u) {
  const bool wide = e.dtype(u) == DType::f64;
  const double high = wide ? 0x1.921fb54442d18p2 : 0x1.921fb6p2;
  const double low = wide ? 0x1.1a62633145c07p-52 : -0x1.777a5cp-23;
  const ValueId quarter = e(Op::round, {e(Op::mul, {u, e.literal(4, u)})});
  const ValueId rest = e(Op::sub, {u, e(Op::mul, {quarter, e.literal(0.25, u)})});
  const ValueId angle = e(Op::fma, {rest, e.literal(high, u), e(Op::mul, {rest, e.literal(low, u)})});
  const ValueId first = e(Op::equal, {quarter, e.literal(1, u)});
  const ValueId second = e(Op::equal, {quarter, e.literal(2, u)});
  const ValueId third = e(Op::equal, {quarter, e.literal(3, u)});
  const ValueId wave = e(Op::where, {e(Op::logical_or, {first, third}), e(Op::sin, {angle}), e(Op::cos, {angle})});
  return e(Op::where, {e(Op::logical_or, {first, second}), e(Op::neg, {wave}), wave});
}

// sqrt(-2 log u1) cos(2 pi u2) (Box and Muller, 1958), u1 in (0, 1].
ValueId box_muller(const Expansion& e, ValueId u1, ValueId u2) {
  const ValueId radius = e(Op::sqrt, {e(Op::mul, {e(Op::log, {u1}), e.literal(-2, u1)})});
  return e(Op::mul, {radius, cosine_of_turns(e, u2)});
}

// (n + 1) * scale: moves [0, 1) to (0, 1].
ValueId above_zero(const Expansion& e, ValueId integer, double scale) {
  return e(Op::mul, {e(Op::add, {integer, e.literal(1, integer)}), e.literal(scale, integer)});
}

ValueId normal_f64(const Expansion& e, ValueId seed, const Shape& shape, std::int64_t stream) {
  const ValueId u1 = above_zero(e, integer_f64(e, seed, shape, stream, 0), 0x1p-53);
  const ValueId integer = integer_f64(e, seed, shape, stream, 2);
  return box_muller(e, u1, e(Op::mul, {integer, e.literal(0x1p-53, integer)}));
}

ValueId normal_f32(const Expansion& e, ValueId seed, const Shape& shape, std::int64_t stream) {
  const ValueId integer = e.cast(top_bits(e, bits(e, seed, shape, stream, 0), 24), DType::f32);
  return box_muller(e, above_zero(e, integer, 0x1p-24), uniform_f32(e, seed, shape, stream, 1));
}

DType random_dtype(const Expansion& e) {
  const DType dtype = e.attrs.get<DType>("dtype");
  if (precision_of(dtype) == 0)
    type_error(fmt::format("there are no random numbers of dtype {}", name_of(dtype)),
               "use f16, bf16, f32 or f64, and cast");
  return dtype;
}

}  // namespace

ValueId uniform_f32(const Expansion& e, ValueId seed, const Shape& shape, std::int64_t stream, int word) {
  const ValueId integer = e.cast(top_bits(e, bits(e, seed, shape, stream, word), 24), DType::f32);
  return e(Op::mul, {integer, e.literal(0x1p-24, integer)});
}

std::vector<ValueId> expand_random_uniform(const Expansion& e) {
  return {uniform(e, e.operands[0], e.attrs.get<std::vector<Dim>>("shape"), e.attrs.get<std::int64_t>("stream"),
                  random_dtype(e))};
}

std::vector<ValueId> expand_random_normal(const Expansion& e) {
  const DType dtype = random_dtype(e);
  const Shape shape = e.attrs.get<std::vector<Dim>>("shape");
  const std::int64_t stream = e.attrs.get<std::int64_t>("stream");
  if (dtype == DType::f64) return {normal_f64(e, e.operands[0], shape, stream)};
  return {e.cast(normal_f32(e, e.operands[0], shape, stream), dtype)};
}

std::vector<ValueId> expand_dropout(const Expansion& e) {
  const ValueId x = e.widened(e.operands[0]), seed = e.operands[1];
  const double p = e.attrs.get<double>("p");
  if (!(p >= 0 && p <= 1)) type_error(fmt::format("p={} is no probability", p), "use 0 to 1");
  const ValueId u = uniform_f32(e, seed, e.shape(x), e.attrs.get<std::int64_t>("stream"), kOwnBlock);
  const ValueId scaled = e(Op::mul, {x, e.literal(p < 1 ? 1 / (1 - p) : 0, x)});
  const ValueId kept = e(Op::where, {e(Op::greater_equal, {u, e.literal(p, u)}), scaled, e.literal(0, x)});
  return {e.cast(kept, e.dtype(e.operands[0]))};
}

}  // namespace tenon::ir
