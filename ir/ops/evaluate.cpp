// Expands ops.def's expressions into functions, one for each op and operand class.
#include "ir/ops/evaluate.h"

#include <limits>

#include "ir/graph/check.h"
#include "ir/ops/formats.h"
#include "ir/ops/meaning.h"

namespace tenon::ir {
namespace {

// The expressions see the functions of meaning.h, and three names of their own; NONE compiles, and its function is
// never handed out because the table's text is empty.
namespace expressions {

using namespace meaning;  // NOLINT: the names that ops.def may use
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr int NONE = 0;

#define REAL_FUNCTION(name, expression)                                                                 \
  double name##_real([[maybe_unused]] double a, [[maybe_unused]] double b, [[maybe_unused]] double c) { \
    return expression;                                                                                  \
  }
#define INTEGER_FUNCTION(name, expression)                                                      \
  std::int64_t name##_integer([[maybe_unused]] std::int64_t a, [[maybe_unused]] std::int64_t b, \
                              [[maybe_unused]] std::int64_t c) {                                \
    return expression;                                                                          \
  }
#define TENON_MAP(name, arity, accepts, yields, real, integer, ...) \
  REAL_FUNCTION(name, real)                                         \
  INTEGER_FUNCTION(name, integer)
#define TENON_REDUCE(name, accepts, yields, identity_real, identity_integer, real, integer, ...) \
  REAL_FUNCTION(name, real)                                                                      \
  INTEGER_FUNCTION(name, integer)                                                                \
  double name##_real_identity() { return identity_real; }                                        \
  std::int64_t name##_integer_identity([[maybe_unused]] std::int64_t min_value,                  \
                                       [[maybe_unused]] std::int64_t max_value) {                \
    return identity_integer;                                                                     \
  }
#include "ir/ops.def"

}  // namespace expressions

struct Functions {
  RealFunction real = nullptr;
  IntegerFunction integer = nullptr;
  double (*real_identity)() = nullptr;
  std::int64_t (*integer_identity)(std::int64_t, std::int64_t) = nullptr;
};

using namespace expressions;  // NOLINT: one row names its functions by pasting

constexpr Functions kFunctions[] = {
#define TENON_MAP(name, ...) {name##_real, name##_integer},
#define TENON_REDUCE(name, ...) {name##_real, name##_integer, name##_real_identity, name##_integer_identity},
#define TENON_VIEW(...) {},
#define TENON_SOURCE(...) {},
#define TENON_RANDOM(...) {},
#define TENON_CONTRACT(...) {},
#define TENON_COMPOSITE(...) {},
#include "ir/ops.def"
};

const Functions& functions(Op op) { return kFunctions[static_cast<std::size_t>(op)]; }

double as_real(const Scalar& value) {
  return std::visit([](auto x) { return static_cast<double>(x); }, value);
}
std::int64_t as_integer(const Scalar& value) {
  if (const double* real = std::get_if<double>(&value)) return integer_from_real(DType::i64, *real);
  return std::visit([](auto x) { return static_cast<std::int64_t>(x); }, value);
}

Scalar scalar_of(DType dtype, std::int64_t value) { return dtype == DType::bool_ ? Scalar(value != 0) : Scalar(value); }

std::uint64_t bits_of(const Scalar& value, DType dtype) {
  return is_real(dtype) ? encode_real(dtype, as_real(value)) : static_cast<std::uint64_t>(as_integer(value));
}

}  // namespace

RealFunction real_function(Op op) { return info(op).real.meaning.empty() ? nullptr : functions(op).real; }
IntegerFunction integer_function(Op op) { return info(op).integer.meaning.empty() ? nullptr : functions(op).integer; }

double real_identity(Op op) {
  TENON_CHECK(!info(op).identity_real.empty(), "reduction without an identity");
  return functions(op).real_identity();
}

std::int64_t integer_identity(Op op, DType dtype) {
  TENON_CHECK(!info(op).identity_integer.empty(), "reduction without an identity");
  return functions(op).integer_identity(min_value(dtype), max_value(dtype));
}

Scalar convert(Scalar value, DType from, DType to) {
  if (is_real(from)) {
    const double real = as_real(value);
    return is_real(to) ? Scalar(round_to(to, real)) : scalar_of(to, integer_from_real(to, round_to(from, real)));
  }
  const std::int64_t integer = as_integer(value);
  return is_real(to) ? Scalar(real_from_integer(to, integer)) : scalar_of(to, integer_from_integer(to, integer));
}

Scalar reinterpret(Scalar value, DType from, DType to) {
  const std::uint64_t bits = bits_of(value, from);
  return is_real(to) ? Scalar(decode_real(to, bits)) : scalar_of(to, decode_integer(to, bits));
}

Scalar evaluate(Op op, DType operand_dtype, DType result_dtype, std::span<const Scalar> operands) {
  TENON_CHECK(kind_of(op) == Kind::map && !operands.empty() && operands.size() <= 3, "evaluate: not a map op");
  if (op == Op::cast) return convert(operands[0], operand_dtype, result_dtype);
  if (op == Op::bitcast) return reinterpret(operands[0], operand_dtype, result_dtype);
  if (is_real(operand_dtype)) {
    double args[3] = {};
    for (std::size_t i = 0; i < operands.size(); ++i) args[i] = as_real(operands[i]);
    const double result = real_function(op)(args[0], args[1], args[2]);
    return is_real(result_dtype) ? Scalar(round_to(result_dtype, result)) : scalar_of(result_dtype, result != 0);
  }
  std::int64_t args[3] = {};
  for (std::size_t i = 0; i < operands.size(); ++i) args[i] = as_integer(operands[i]);
  return scalar_of(result_dtype, wrap(result_dtype, integer_function(op)(args[0], args[1], args[2])));
}

}  // namespace tenon::ir
