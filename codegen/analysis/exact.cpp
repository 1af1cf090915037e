// See exact.h.
#include "codegen/analysis/exact.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

namespace tenon::codegen {
namespace {

constexpr int kMostSteps = 8;                               // from a value back to loads and literals
constexpr std::int64_t kMost = std::int64_t{1} << 24;       // to which f32, in which real values are computed, counts
constexpr std::int64_t kUnbounded = std::int64_t{1} << 62;  // of an integer as large as any real, or infinite

using Range = IntegerRange;

// The integers up to which all are numbers of the type: 2 to the bits of its significand. Types of 8 bits take part in
// nothing that this is asked for.
std::int64_t most_of(DType dtype) {
  if (dtype == DType::bf16) return std::int64_t{1} << 8;
  if (dtype == DType::f16) return std::int64_t{1} << 11;
  return dtype == DType::f32 || dtype == DType::f64 ? kMost : 0;
}

std::optional<Range> range_of(DType dtype) {
  if (dtype == DType::bool_) return Range{0, 1};
  if (dtype == DType::i8) return Range{-128, 127};
  if (dtype == DType::u8) return Range{0, 255};
  if (dtype == DType::i16) return Range{-32768, 32767};
  return {};
}

bool within(const Range& range, std::int64_t low, std::int64_t high) { return low <= range.low && range.high <= high; }

// The range if values of `dtype` hold it: nothing wraps, nothing is rounded.
std::optional<Range> as(DType dtype, std::optional<Range> range) {
  if (!range || !within(*range, -kMost, kMost)) return {};
  if (is_real(dtype)) return range;
  const std::optional<Range> all = range_of(dtype);
  if (dtype == DType::i32 || dtype == DType::i64 || (all && within(*range, all->low, all->high))) return range;
  return {};
}

std::optional<Range> range_of(const Kernel& kernel, InstrId id, int steps);

// Of bits that both have, either has, or one has: of numbers that are not negative. Whatever the other, a mask bounds
// it.
std::optional<Range> range_of_bits(ir::Op op, const std::optional<Range>& a, const std::optional<Range>& b) {
  const auto positive = [](const std::optional<Range>& range) { return range && range->low >= 0; };
  if (op == ir::Op::bitwise_and) {
    if (positive(a) && positive(b)) return Range{0, std::min(a->high, b->high)};
    return positive(a) ? Range{0, a->high} : positive(b) ? std::optional(Range{0, b->high}) : std::nullopt;
  }
  if (!positive(a) || !positive(b)) return {};
  std::int64_t bits = 1;
  while (bits <= std::max(a->high, b->high)) bits *= 2;
  return Range{0, bits - 1};
}

std::optional<Range> range_of_map(const Kernel& kernel, const Instr& instr, int steps) {
  using ir::Op;
  std::vector<std::optional<Range>> args;
  for (std::size_t i = instr.op == Op::where ? 1 : 0; i < instr.args.size(); ++i)  // any condition will do
    args.push_back(range_of(kernel, instr.args[i], steps - 1));
  if (instr.op == Op::bitwise_and || instr.op == Op::bitwise_or || instr.op == Op::bitwise_xor)
    return range_of_bits(instr.op, args[0], args[1]);
  for (const auto& arg : args)
    if (!arg) return {};
  if (instr.op == Op::cast) {
    const bool whole = !is_real(instr.dtype) || within(*args[0], -most_of(instr.dtype), most_of(instr.dtype));
    return whole ? as(instr.dtype, args[0]) : std::nullopt;
  }
  if (args.size() != 2) return {};
  const Range a = *args[0], b = *args[1];
  if (instr.op == Op::where) return as(instr.dtype, Range{std::min(a.low, b.low), std::max(a.high, b.high)});
  if (instr.op == Op::add) return as(instr.dtype, Range{a.low + b.low, a.high + b.high});
  if (instr.op == Op::sub) return as(instr.dtype, Range{a.low - b.high, a.high - b.low});
  if (instr.op == Op::right_shift && b.low == b.high && b.low >= 0 && b.low < 8)
    return Range{a.low >> b.low, a.high >> b.low};
  if (instr.op == Op::minimum) return Range{std::min(a.low, b.low), std::min(a.high, b.high)};
  if (instr.op == Op::maximum) return Range{std::max(a.low, b.low), std::max(a.high, b.high)};
  const bool quotient = instr.op == Op::floor_div || instr.op == Op::mod;
  if (!quotient || is_real(instr.dtype) || b.low != b.high || b.low < 1) return {};
  const auto floor_div = [&](std::int64_t x) { return x < 0 ? -((-x + b.low - 1) / b.low) : x / b.low; };
  if (instr.op == Op::floor_div) return Range{floor_div(a.low), floor_div(a.high)};
  return a.low >= 0 ? Range{0, std::min(a.high, b.low - 1)} : Range{0, b.low - 1};
}

std::optional<Range> range_of(const Kernel& kernel, InstrId id, int steps) {
  if (steps == 0) return {};
  const Instr& instr = kernel.instr(id);
  if (instr.kind == InstrKind::literal) {
    const double value = std::visit([](auto number) { return static_cast<double>(number); }, instr.literal);
    // -0 is no integer here: a sum with it may be -0 again.
    const bool whole = value == std::trunc(value) && std::abs(value) <= static_cast<double>(kMost);
    if (!whole || (value == 0 && std::signbit(value))) return {};
    return Range{static_cast<std::int64_t>(value), static_cast<std::int64_t>(value)};
  }
  if (instr.kind == InstrKind::load) return range_of(instr.dtype);
  if (instr.kind == InstrKind::map) {
    const std::optional<Range> range = range_of_map(kernel, instr, steps);
    return range ? range : range_of(instr.dtype);  // whatever a byte is made by
  }
  if (instr.kind != InstrKind::round) return {};
  const std::optional<Range> range = range_of(kernel, instr.args[0], steps - 1);
  return range && within(*range, -most_of(instr.dtype), most_of(instr.dtype)) ? range : std::nullopt;
}

// Of values that are integers, zeros of either sign, or NaN, all of which rounding leaves as they are.
std::optional<Range> range_of_whole(const Kernel& kernel, InstrId id, int steps) {
  using ir::Op;
  if (const auto range = range_of(kernel, id, steps)) return range;
  const Instr& instr = kernel.instr(id);
  if (steps == 0 || !is_real(instr.dtype)) return {};
  const auto arg = [&](std::size_t i) { return range_of_whole(kernel, instr.args[i], steps - 1); };
  if (instr.kind == InstrKind::round) {
    const std::optional<Range> range = arg(0);
    return range && within(*range, -most_of(instr.dtype), most_of(instr.dtype)) ? range : std::nullopt;
  }
  if (instr.kind != InstrKind::map) return {};
  if (instr.op == Op::round || instr.op == Op::floor || instr.op == Op::ceil || instr.op == Op::trunc)
    return Range{-kUnbounded, kUnbounded};
  if (instr.op == Op::neg) {
    const auto a = arg(0);
    return a ? std::optional(Range{-a->high, -a->low}) : std::nullopt;
  }
  if (instr.op != Op::minimum && instr.op != Op::maximum && instr.op != Op::clamp) return {};
  std::optional<Range> range = arg(0);
  for (std::size_t i = 1; range && i < instr.args.size(); ++i) {
    const auto bound = arg(i);
    if (!bound) return {};
    const bool least = instr.op == Op::minimum || i == 2;
    const auto limited = [&](std::int64_t a, std::int64_t b) { return least ? std::min(a, b) : std::max(a, b); };
    range = Range{limited(range->low, bound->low), limited(range->high, bound->high)};
  }
  return range;
}

}  // namespace

std::optional<IntegerRange> integer_range(const Kernel& kernel, InstrId id) { return range_of(kernel, id, kMostSteps); }

bool is_exact_in(const Kernel& kernel, InstrId id, DType dtype) {
  const std::optional<Range> range = range_of_whole(kernel, id, kMostSteps);
  return range && within(*range, -most_of(dtype), most_of(dtype));
}

}  // namespace tenon::codegen
