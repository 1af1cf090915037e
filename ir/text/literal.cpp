// The rules of scalar literals, shared by the parser (which dtype?) and the printers (may it stand inline?).
#include "ir/text/literal.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace tenon::ir {
namespace {

// Operands of one class have one dtype, and a literal takes it from its class.
enum class OperandClass : std::uint8_t { shared, condition, index };

OperandClass operand_class(Op op, std::size_t index) {
  if (op == Op::where && index == 0) return OperandClass::condition;
  if (kind_of(op) == Kind::random || op == Op::random_uniform || op == Op::random_normal) return OperandClass::index;
  const bool second_is_index = op == Op::take || op == Op::dropout || op == Op::cross_entropy;
  return second_is_index && index == 1 ? OperandClass::index : OperandClass::shared;
}

// Reals that are computed in f32, so that a literal of them means the nearest f32.
bool is_narrow_real(DType dtype) { return is_real(dtype) && dtype != DType::f64; }

template <typename Real>
std::string shortest(Real value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, result.ptr);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

double read(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::optional<DType> literal_dtype(Op op, std::size_t index, std::span<const std::optional<DType>> operands) {
  switch (operand_class(op, index)) {
    case OperandClass::condition: return DType::bool_;
    case OperandClass::index: return DType::i64;
    case OperandClass::shared: break;
  }
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && operand_class(op, i) == OperandClass::shared) return operands[i];
  return std::nullopt;
}

std::string format_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return shortest(value);
}

std::string format_scalar(const Scalar& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  return format_real(std::get<double>(value));
}

Scalar canonical_scalar(const Scalar& value, DType dtype) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    if (is_real(dtype)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value))
    if (is_integer(dtype) && *real >= -0x1p63 && *real < 0x1p63) return static_cast<std::int64_t>(*real);
  return value;
}

std::string format_scalar(const Scalar& value, DType dtype) {
  const Scalar canonical = canonical_scalar(value, dtype);
  const auto* real = std::get_if<double>(&canonical);
  if (real && is_narrow_real(dtype) && std::isfinite(*real) && std::fabs(*real) <= 3.4e38) {
    const auto narrow = static_cast<float>(*real);
    if (static_cast<double>(narrow) == *real) {
      const std::string text = shortest(narrow);
      if (static_cast<float>(read(text)) == narrow) return text;
    }
  }
  return format_scalar(canonical);
}

bool same_real(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

bool same_scalar(const Scalar& a, const Scalar& b, DType dtype) {
  const Scalar p = canonical_scalar(a, dtype), q = canonical_scalar(b, dtype);
  const auto* x = std::get_if<double>(&p);
  const auto* y = std::get_if<double>(&q);
  if (!x || !y) return p == q;
  if (!is_narrow_real(dtype) || std::fabs(*x) > 3.4e38 || std::fabs(*y) > 3.4e38) return same_real(*x, *y);
  return same_real(static_cast<float>(*x), static_cast<float>(*y));
}

bool is_literal(const Graph& graph, ValueId value) {
  return graph.producer(value).op == Op::full && graph.type(value).shape.empty();
}

std::vector<bool> inline_literals(const Graph& graph) {
  std::vector<bool> inlined(graph.values.size());
  std::vector<const Node*> users;  // nodes with a literal among their operands
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    inlined[v] = graph.values[v].name.empty() && is_literal(graph, static_cast<ValueId>(v));
  for (ValueId output : graph.outputs) inlined[static_cast<std::size_t>(output)] = false;
  for (const Node& node : graph.nodes)
    for (ValueId operand : node.operands)
      if (inlined[static_cast<std::size_t>(operand)]) {
        users.push_back(&node);
        break;
      }
  // A literal that would be read back with another dtype gets a line of its own, which may decide others.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Node* node : users) {
      std::vector<std::optional<DType>> dtypes;
      for (ValueId operand : node->operands)
        dtypes.push_back(inlined[static_cast<std::size_t>(operand)] ? std::nullopt
                                                                    : std::optional(graph.type(operand).dtype));
      for (std::size_t i = 0; i < dtypes.size(); ++i) {
        const auto operand = static_cast<std::size_t>(node->operands[i]);
        if (!inlined[operand] || literal_dtype(node->op, i, dtypes) == graph.values[operand].type.dtype) continue;
        inlined[operand] = false;
        changed = true;
        break;  // its dtype now counts for the rest of this node: look again
      }
    }
  }
  return inlined;
}

}  // namespace tenon::ir
