// See exact.h.
#include "codegen/analysis/exact.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

namespace tenon::codegen {
namespace {

constexpr int kMostSteps = 8;                          // from a value back to loads and literals
constexpr std::int64_t kMost = std::int64_t{1} << 24;  // to which f32, in which real values are computed, counts

struct Range {
  std::int64_t low = 0, high = 0;
};

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

std::optional<Range> range_of_map(const Kernel& kernel, const Instr& instr, int steps) {
  std::vector<Range> args;
  for (std::size_t i = instr.op == ir::Op::where ? 1 : 0; i < instr.args.size(); ++i) {  // any condition will do
    const std::optional<Range> range = range_of(kernel, instr.args[i], steps - 1);
    if (!range) return {};
    args.push_back(*range);
  }
  const auto united = [&] { return Range{std::min(args[0].low, args[1].low), std::max(args[0].high, args[1].high)}; };
  if (instr.op == ir::Op::cast) {
    const bool whole = !is_real(instr.dtype) || within(args[0], -most_of(instr.dtype), most_of(instr.dtype));
    return whole ? as(instr.dtype, args[0]) : std::nullopt;
  }
  if (instr.op == ir::Op::where) return as(instr.dtype, united());
  if (instr.op == ir::Op::add) return as(instr.dtype, Range{args[0].low + args[1].low, args[0].high + args[1].high});
  if (instr.op == ir::Op::sub) return as(instr.dtype, Range{args[0].low - args[1].high, args[0].high - args[1].low});
  if (instr.op == ir::Op::bitwise_and && args[0].low >= 0 && args[1].low >= 0)
    return Range{0, std::min(args[0].high, args[1].high)};
  if (instr.op == ir::Op::right_shift && args[1].low == args[1].high && args[1].low >= 0 && args[1].low < 8)
    return Range{args[0].low >> args[1].low, args[0].high >> args[1].low};
  return {};
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
  if (instr.kind == InstrKind::map) return range_of_map(kernel, instr, steps);
  if (instr.kind != InstrKind::round) return {};
  const std::optional<Range> range = range_of(kernel, instr.args[0], steps - 1);
  return range && within(*range, -most_of(instr.dtype), most_of(instr.dtype)) ? range : std::nullopt;
}

}  // namespace

bool is_exact_in(const Kernel& kernel, InstrId id, DType dtype) {
  const std::optional<Range> range = range_of(kernel, id, kMostSteps);
  return range && within(*range, -most_of(dtype), most_of(dtype));
}

}  // namespace tenon::codegen
