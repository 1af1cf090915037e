// See expression.h. What an op means stands in ops.def; this file only puts names into it.
#include "codegen/emit/cuda/text/expression.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "codegen/analysis/draws.h"
#include "codegen/analysis/exact.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/small_quotient.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/kernel/uses.h"
#include "ir/graph/check.h"
#include "ir/ops/evaluate.h"
#include "ir/ops/op.h"

namespace tenon::codegen::cuda {
namespace {

// NVRTC 13.0 compares sums and differences of bytes without extending their sign first, where they are the lowest of a
// loaded word. It does not see through low_byte.
std::string opaque_byte(const std::string& text, DType dtype) {
  return dtype == DType::i8 ? fmt::format("low_byte({})", text) : text;
}

bool is_sum(ir::Op op) { return op == ir::Op::add || op == ir::Op::sub || op == ir::Op::neg || op == ir::Op::sum; }

std::string map_expression(const Kernel& kernel, const Instr& instr) {
  std::vector<std::string> args;
  for (InstrId arg : instr.args) args.push_back(value_name(kernel, arg));
  const DType operand = kernel.instr(instr.args.back()).dtype;  // the last: the first of `where` is its condition
  if (instr.op == ir::Op::cast && compute_type(instr.dtype) == DType::f32 &&
      is_exact_in(kernel, instr.args[0], instr.dtype))
    return converted(args[0], operand, DType::f32);
  if (instr.op == ir::Op::cast)
    return is_integer(operand) ? opaque_byte(converted(args[0], operand, instr.dtype), instr.dtype)
                               : converted(args[0], operand, instr.dtype);
  if (instr.op == ir::Op::bitcast) return reinterpreted(args[0], operand, instr.dtype);
  const std::string_view meaning = ir::text_for(ir::info(instr.op), operand).meaning;
  TENON_CHECK(!meaning.empty(), fmt::format("{} has no meaning on {}", name_of(instr.op), name_of(operand)));
  if (instr.rounded)
    return fmt::format("{}({}, {})", operand == DType::f64 ? "__dmul_rn" : "__fmul_rn", args[0], args[1]);
  const std::string text = substitute(meaning, args);
  // Inverting a bool sets the bits above its own.
  if (instr.dtype == DType::bool_ && meaning.front() == '~') return fmt::format("(~(int){}) & 1", text.substr(1));
  return is_sum(instr.op) ? opaque_byte(text, instr.dtype) : text;
}

// The function of codegen/prelude/narrow.cuh of one argument.
std::string_view narrow_function(const Kernel& kernel, const Instr& instr) {
  using ir::Op;
  if (instr.composed == Composed::one_plus) return instr.op == Op::tanh ? "one_plus_tanh" : "one_plus_erf";
  if (instr.composed == Composed::tanh_of_softplus) return "tanh_of_softplus";
  if (instr.composed == Composed::logistic) return "logistic";
  if (instr.op == Op::tanh && kernel.kernel_class == ir::KernelClass::attend) return "score_tanh";
  if (instr.op == Op::tanh && instr.dtype == DType::bf16) return "coarse_tanh";
  constexpr std::array<std::pair<Op, std::string_view>, 7> kFunctions{{{Op::exp, "narrow_exp"},
                                                                       {Op::expm1, "narrow_expm1"},
                                                                       {Op::log, "narrow_log"},
                                                                       {Op::log2, "narrow_log2"},
                                                                       {Op::log1p, "narrow_log1p"},
                                                                       {Op::sqrt, "narrow_sqrt"},
                                                                       {Op::tanh, "narrow_tanh"}}};
  for (const auto& [op, function] : kFunctions)
    if (op == instr.op) return function;
  TENON_CHECK(false, fmt::format("{} has no form for 16 bits", name_of(instr.op)));
  return {};
}

// 1 / c of a literal where both are normal numbers of the type that is computed in.
std::optional<double> normal_reciprocal(const Instr& divisor) {
  if (divisor.kind != InstrKind::literal || !is_real(divisor.dtype)) return std::nullopt;
  const DType from = std::holds_alternative<double>(divisor.literal) ? DType::f64 : DType::i64;
  const double value = std::get<double>(ir::convert(divisor.literal, from, divisor.dtype));
  if (compute_type(divisor.dtype) == DType::f64)
    return std::isnormal(value) && std::isnormal(1 / value) ? std::optional(1 / value) : std::nullopt;
  const auto single = static_cast<float>(value);
  return std::isnormal(single) && std::isnormal(1 / single) ? std::optional<double>(1 / single) : std::nullopt;
}

// A quotient by a constant: a product where that is exact, or as good as it need be.
std::optional<std::string> quotient_by_constant(const Kernel& kernel, const Instr& instr) {
  if (instr.op != ir::Op::div || !is_real(instr.dtype)) return std::nullopt;
  const Instr& divisor = kernel.instr(instr.args[1]);
  const auto reciprocal = normal_reciprocal(divisor);
  if (!reciprocal) return std::nullopt;
  const std::string dividend = value_name(kernel, instr.args[0]),
                    inverse = literal(*reciprocal, compute_type(instr.dtype));
  int exponent = 0;
  const bool power_of_two = std::abs(std::frexp(*reciprocal, &exponent)) == 0.5;
  if (instr.narrow || power_of_two) return fmt::format("{} * {}", dividend, inverse);
  return fmt::format("divide_by({}, {}, {})", dividend, value_name(kernel, instr.args[1]), inverse);
}

// A quotient of f32 or f64 by what all elements along the innermost axis share, the norm or the scale of a row: its
// reciprocal is found once.
std::optional<std::string> quotient_by_shared(const Kernel& kernel, const Instr& instr) {
  if (instr.op != ir::Op::div || !is_real(instr.dtype) || size_of(instr.dtype) < 4 || kernel.axes.empty())
    return std::nullopt;
  const std::uint64_t inner = std::uint64_t{1} << (kernel.axes.size() - 1);
  if ((instr.depends & inner) == 0 || (kernel.instr(instr.args[1]).depends & inner) != 0) return std::nullopt;
  return fmt::format("divide_by_shared({}, {})", value_name(kernel, instr.args[0]), value_name(kernel, instr.args[1]));
}

// A quotient or remainder of small integers by a literal, without the steps that a sign takes.
std::optional<std::string> quotient_of_small_integers(const Kernel& kernel, const Instr& instr) {
  if (is_own_remainder(kernel, instr)) return value_name(kernel, instr.args[0]);
  const auto quotient = small_quotient(kernel, instr);
  if (!quotient) return std::nullopt;
  return fmt::format("small_{}<{}, {}, {}u, {}>({})", instr.op == ir::Op::mod ? "floor_mod" : "floor_div",
                     quotient->divisor, quotient->plus, quotient->multiple, quotient->shift,
                     value_name(kernel, instr.args[0]));
}

// A quotient that has 16 bits in the end. What f16 holds, and what it makes of smaller and larger divisors, has a
// normal reciprocal or none.
std::optional<std::string> quotient_of_16_bits(const Kernel& kernel, const Instr& instr) {
  if (!is_real(instr.dtype) || size_of(instr.dtype) > 2) return std::nullopt;
  const bool reciprocal = instr.op == ir::Op::reciprocal;
  if (!reciprocal && instr.op != ir::Op::div) return std::nullopt;
  const std::string dividend = reciprocal ? "1.0f" : value_name(kernel, instr.args[0]);
  const std::string divisor = value_name(kernel, instr.args.back());
  return instr.dtype == DType::f16 ? fmt::format("divide_by({0}, {1}, quick_reciprocal({1}))", dividend, divisor)
                                   : fmt::format("nearest_div({}, {})", dividend, divisor);
}

std::string narrow_expression(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(id);
  std::vector<std::string> args;
  for (InstrId arg : instr.args) args.push_back(value_name(kernel, arg));
  if (instr.op == ir::Op::div && instr.composed == Composed::logistic)
    return fmt::format("{} * logistic({})", args[0], args[1]);
  if (instr.op == ir::Op::div)
    return fmt::format("{}({}, {})", is_share(kernel, id) ? "narrow_share" : "narrow_div", args[0], args[1]);
  if (instr.op == ir::Op::reciprocal && instr.composed == Composed::none)
    return fmt::format("narrow_div(1.0f, {})", args[0]);
  return fmt::format("{}({})", narrow_function(kernel, instr), args[0]);
}

// The same of f32 and f64.
std::string composed_expression(const Kernel& kernel, const Instr& instr) {
  const std::string argument = value_name(kernel, instr.args.back());
  if (instr.composed == Composed::of_share) return fmt::format("log1p_of_share({})", argument);
  if (instr.composed == Composed::tanh_of_softplus)
    return fmt::format("tanh_of_softplus_of_{}({})", instr.dtype == DType::f64 ? "f64" : "f32", argument);
  TENON_CHECK(instr.composed == Composed::logistic, "has no function of f32");
  const std::string logistic = fmt::format("logistic_of_f32({})", argument);
  return instr.op == ir::Op::div ? fmt::format("{} * {}", value_name(kernel, instr.args[0]), logistic) : logistic;
}

std::string random_expression(const Kernel& kernel, const Instr& instr, const Names& names) {
  const bool keyed = contains(names.keyed, instr.args[0]);
  const std::string seed = keyed ? keys_name(instr.args[0]) : value_name(kernel, instr.args[0]);
  const std::string block = block_type(kernel, instr);
  const std::string index = random_index(kernel, instr.index, names);
  if (instr.word < 0) return fmt::format("random_element<{}>({}, {}, {})", block, seed, instr.stream, index);
  return fmt::format("random_word<{}, {}>({}, {}, {})", instr.word, block, seed, instr.stream, index);
}

std::string load_expression(const Kernel& kernel, const Instr& instr, const Names& names) {
  const DType stored = stored_dtype(kernel, instr.access);
  const std::string value = decoded(element(kernel, instr.access, names), stored);
  const std::string guard = guard_text(instr.access.guards, names);
  return guard.empty() ? value : fmt::format("{} ? {} : {}", guard, value, literal(std::int64_t{0}, stored));
}

Combination combination_of(const Kernel& kernel, const Instr& reduce) {
  const ir::OpInfo& op = ir::info(reduce.op);
  const DType element = kernel.instr(reduce.args[0]).dtype;
  const bool real = is_real(element);
  if (op.yields == ir::Yields::Index) {
    const bool largest = reduce.op == ir::Op::argmax;
    const ir::Op bound = largest ? ir::Op::max : ir::Op::min;  // the worst value is what max or min of nothing is
    Instr worst = reduce;
    worst.op = bound;
    worst.dtype = element;
    const std::string type = fmt::format("arg<{}, {}>", value_type(element), index_type(kernel));
    return {type, fmt::format("{{{}, 0}}", combination_of(kernel, worst).identity),
            fmt::format("[]({0} a, {0} b) -> {0} {{ return {1}(a, b); }}", type, largest ? "first_max" : "first_min"),
            true};
  }
  const std::string type = value_type(reduce.dtype);
  const std::string_view identity = real ? op.identity_real : op.identity_integer;
  const bool is_signed = reduce.dtype != DType::u8;
  const int shift = 64 - 8 * static_cast<int>(size_of(reduce.dtype)) + (is_signed ? 1 : 0);
  const auto greatest = static_cast<std::int64_t>(~std::uint64_t{0} >> shift);
  ir::Scalar value = std::int64_t{0};
  if (identity == "1") value = std::int64_t{1};
  if (identity == "inf") value = HUGE_VAL;
  if (identity == "-inf") value = -HUGE_VAL;
  if (identity == "max_value") value = greatest;
  if (identity == "min_value") value = is_signed ? -greatest - 1 : std::int64_t{0};
  const std::string_view meaning = ir::text_for(op, element).meaning;
  return {type, literal(value, compute_type(reduce.dtype)),
          fmt::format("[]({0} a, {0} b) -> {0} {{ return {1}; }}", type, meaning), false};
}

DType index_dtype(const Kernel& kernel) { return kernel.wide_index ? DType::i64 : DType::i32; }

}  // namespace

std::string substitute(std::string_view meaning, const std::vector<std::string>& args) {
  std::string text;
  for (std::size_t i = 0; i < meaning.size();) {
    std::size_t end = i;
    while (end < meaning.size() && is_word(meaning[end])) ++end;
    if (end == i) {
      text += meaning[i++];
      continue;
    }
    const std::string_view word = meaning.substr(i, end - i);
    const auto which =
        word.size() == 1 && word[0] >= 'a' && word[0] <= 'c' ? static_cast<std::size_t>(word[0] - 'a') : args.size();
    text += which < args.size() ? args[which] : std::string(word);
    i = end;
  }
  return text;
}

std::string random_index(const Kernel& kernel, const Index& index, const Names& names) {
  constexpr std::int64_t kNarrow = INT32_MAX / 2;  // its terms may be more than their sum
  const bool wide = kernel.wide_random && bounds(index, kernel.context()).max > kNarrow;
  return index_text(index, wide ? widened(names) : names);
}

std::string block_type(const Kernel& kernel, const Instr& random) {
  return has_narrow_blocks(kernel, random) ? "u32" : "u64";
}

std::string expression(const Kernel& kernel, InstrId id, const Names& names) {
  const Instr& instr = kernel.instr(id);
  switch (instr.kind) {
    case InstrKind::literal: return literal(instr.literal, instr.dtype);
    case InstrKind::load: return load_expression(kernel, instr, names);
    case InstrKind::index: return converted(index_text(instr.index, names), index_dtype(kernel), instr.dtype);
    case InstrKind::inside: {
      const std::string guard = guard_text(instr.guards, names);
      return guard.empty() ? "true" : guard;
    }
    case InstrKind::map:
      if (!is_share(kernel, id) && instr.composed == Composed::none)
        if (const auto quotient = quotient_by_constant(kernel, instr)) return *quotient;
      if (instr.narrow) return narrow_expression(kernel, id);
      if (instr.composed != Composed::none) return composed_expression(kernel, instr);
      if (is_share(kernel, id))
        return fmt::format("share_of({}, {})", value_name(kernel, instr.args[0]), value_name(kernel, instr.args[1]));
      if (instr.composed == Composed::none)
        if (const auto quotient = quotient_of_16_bits(kernel, instr)) return *quotient;
      if (const auto quotient = quotient_by_shared(kernel, instr)) return *quotient;
      if (const auto quotient = quotient_of_small_integers(kernel, instr)) return *quotient;
      return map_expression(kernel, instr);
    case InstrKind::round:
      if (is_exact_in(kernel, instr.args[0], instr.dtype)) return value_name(kernel, instr.args[0]);
      return converted(value_name(kernel, instr.args[0]), kernel.instr(instr.args[0]).dtype, instr.dtype);
    case InstrKind::random: return random_expression(kernel, instr, names);
    case InstrKind::reduce:
    case InstrKind::contract: break;
  }
  TENON_CHECK(false, "a collective is no expression");
  return {};
}

std::string definition(const Kernel& kernel, InstrId id, const Names& names) {
  return fmt::format("const {} v{} = {};", value_type(kernel.instr(id).dtype), id, expression(kernel, id, names));
}

std::string comment(const Instr& instr) {
  std::string text;
  for (const char c : instr.note)
    if (is_word(c) || c == ' ' || c == '=' || c == '%' || c == '.' || c == ',') text += c;
  return text;
}

std::string element(const Kernel& kernel, const Access& access, const Names& names) {
  return fmt::format("{}[{}]", operand_name(kernel, access.operand), index_text(access.offset, names));
}

std::string address(const Kernel& kernel, const Access& access, const Names& names) {
  const std::string offset = index_text(access.offset, names);
  const std::string& base = operand_name(kernel, access.operand);
  return offset == "0" ? base : fmt::format("{} + {}", base, offset.front() == '-' ? "(" + offset + ")" : offset);
}

std::string store_statement(const Kernel& kernel, const Store& store, const Names& names) {
  const DType stored = stored_dtype(kernel, store.access);
  const std::string value = encoded(value_name(kernel, store.value), kernel.instr(store.value).dtype, stored);
  return fmt::format("{} = {};", element(kernel, store.access, names), value);
}

std::string condition_prefix(const std::string& a, const std::string& b) {
  const std::string both = a + (a.empty() || b.empty() ? "" : " && ") + b;
  return both.empty() ? "" : "if (" + both + ") ";
}

std::string conditional_store(const Kernel& kernel, const Store& store, const Names& names,
                              const std::string& condition) {
  return condition_prefix(condition, guard_text(store.access.guards, names)) + store_statement(kernel, store, names);
}

Combination combination(const Kernel& kernel, InstrId reduce) { return combination_of(kernel, kernel.instr(reduce)); }

std::string combine_statement(const Kernel& kernel, InstrId id, const std::string& accumulator,
                              const std::string& value) {
  const Instr& reduce = kernel.instr(id);
  const std::string_view meaning = ir::text_for(ir::info(reduce.op), kernel.instr(reduce.args[0]).dtype).meaning;
  const std::string text = substitute(meaning, {accumulator, value});
  return fmt::format("{} = {};", accumulator, is_sum(reduce.op) ? opaque_byte(text, reduce.dtype) : text);
}

std::string accumulate_statement(const Kernel& kernel, InstrId id, const std::string& position, bool in_order,
                                 const std::string& subscript) {
  const Instr& reduce = kernel.instr(id);
  const std::string accumulator = fmt::format("a{}{}", id, subscript);
  const std::string value = value_name(kernel, reduce.args[0]);
  const Combination how = combination(kernel, id);
  const bool largest = reduce.op == ir::Op::argmax;
  if (how.is_arg && in_order)
    return fmt::format("{0} = {1}({0}, {2}, {3});", accumulator, largest ? "then_max" : "then_min", value, position);
  if (how.is_arg)
    return fmt::format("{0} = {1}({0}, {2}{{{3}, {4}}});", accumulator, largest ? "first_max" : "first_min", how.type,
                       value, position);
  return combine_statement(kernel, id, accumulator, value);
}

}  // namespace tenon::codegen::cuda
