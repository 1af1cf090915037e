// See spell.h. Narrow reals go through f32; wider sources are first rounded to odd, so that only one rounding counts.
#include "codegen/emit/cuda/text/spell.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/ops/evaluate.h"

namespace tenon::codegen::cuda {
namespace {

// Stored in fewer bits than it is computed in.
bool is_narrow(DType dtype) { return is_real(dtype) && size_of(dtype) < 4; }

std::string real_literal(double value, DType dtype) {
  const bool is_f64 = dtype == DType::f64;
  const char* type = is_f64 ? "f64" : "f32";
  if (!is_f64) value = static_cast<double>(static_cast<float>(value));
  if (std::isnan(value)) return fmt::format("nan_{}()", type);
  std::string text = std::isinf(value)                                        ? fmt::format("inf_{}()", type)
                     : std::fabs(value) < 65536 && std::trunc(value) == value ? fmt::format("{:.1f}", std::fabs(value))
                                                                              : fmt::format("{:a}", std::fabs(value));
  if (!is_f64 && !std::isinf(value)) text += 'f';
  return std::signbit(value) ? "-" + text : text;
}

std::string integer_literal(std::int64_t value, DType dtype) {
  if (value == std::numeric_limits<std::int64_t>::min()) return "-9223372036854775807ll - 1";
  if (dtype == DType::i64) return fmt::format("{}ll", value);
  if (dtype != DType::i32) return fmt::format("{}({})", value_type(dtype), value);
  if (value == std::numeric_limits<std::int32_t>::min()) return "-2147483647 - 1";
  return std::to_string(value);
}

bool is_small_integer(DType dtype) { return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16; }

// The f32 whose rounding to a narrow real is that of `text`.
std::string f32_for_rounding(const std::string& text, DType from) {
  if (from == DType::f64) return fmt::format("f64_to_f32_odd({})", text);
  if (is_real(from)) return text;
  if (from == DType::i64 || from == DType::i32) return fmt::format("i64_to_f32_odd({})", text);
  if (is_small_integer(from)) return fmt::format("small_to_f32({})", text);
  return fmt::format("(float){}", text);
}

}  // namespace

std::string storage_type(DType dtype) {
  if (is_narrow(dtype)) return std::string(name_of(dtype));
  return dtype == DType::bool_ ? "u8" : value_type(dtype);
}

std::string value_type(DType dtype) {
  switch (compute_type(dtype)) {
    case DType::bool_: return "bool";
    case DType::i8: return "i8";
    case DType::i16: return "i16";
    case DType::i32: return "int";
    case DType::i64: return "i64";
    case DType::u8: return "u8";
    case DType::f64: return "double";
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2: return "float";
  }
  return {};
}

std::string literal(const ir::Scalar& scalar, DType dtype) {
  const DType from = std::holds_alternative<double>(scalar) ? DType::f64 : DType::i64;
  const ir::Scalar value = ir::convert(scalar, from, dtype);
  if (is_real(dtype)) return real_literal(std::get<double>(value), dtype);
  if (dtype == DType::bool_) return std::get<bool>(value) ? "true" : "false";
  return integer_literal(std::get<std::int64_t>(value), dtype);
}

std::string parenthesized(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (depth == 0 && (c == ' ' || (c == '-' && i == 0) || (c == ')' && text[0] == '(' && i + 1 < text.size())))
      return "(" + text + ")";
  }
  return text;
}

std::string decoded(const std::string& text, DType dtype) {
  if (is_narrow(dtype)) return fmt::format("{}_to_f32({})", name_of(dtype), text);
  return dtype == DType::bool_ ? parenthesized(text) + " != 0" : text;
}

std::string encoded(const std::string& text, DType from, DType to) {
  if (is_narrow(to)) return fmt::format("f32_to_{}({})", name_of(to), f32_for_rounding(text, from));
  if (to == DType::bool_) return "(u8)" + parenthesized(text);
  return compute_type(from) == compute_type(to) ? text : converted(text, from, to);
}

std::string converted(const std::string& text, DType from, DType to) {
  if (is_narrow(to)) return decoded(encoded(text, from, to), to);
  if (compute_type(from) == to) return text;
  if (to == DType::bool_) return parenthesized(text) + " != 0";
  if (is_real(from) && is_integer(to)) return fmt::format("saturate<{}>({})", value_type(to), text);
  if (is_small_integer(from) && to == DType::f32) return fmt::format("small_to_f32({})", text);
  return fmt::format("({}){}", value_type(to), parenthesized(text));
}

std::string reinterpreted(const std::string& text, DType from, DType to) {
  return decoded(fmt::format("bit_cast<{}>({})", storage_type(to), encoded(text, from, from)), to);
}

}  // namespace tenon::codegen::cuda
