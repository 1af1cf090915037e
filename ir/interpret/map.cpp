// Map ops: one function of up to three elements, over broadcast operands.
#include <cmath>
#include <limits>
#include <variant>

#include "ir/graph/check.h"
#include "ir/interpret/interpreter.h"
#include "ir/ops/evaluate.h"
#include "ir/ops/formats.h"

namespace tenon::ir {
namespace {

// pow and rsqrt are routines on every target although one target spells them itself.
Accuracy accuracy_of(Op op) {
  const bool routine = info(op).real.llvm.starts_with("sleef:") || op == Op::pow || op == Op::rsqrt;
  return routine ? Accuracy::routine : Accuracy::correctly_rounded;
}

// The dtype that decides between the real and the integer meaning.
DType operand_dtype(const Step& step) { return step.operand(step.node.op == Op::where ? 1 : 0).dtype; }

// where's condition among reals: as 0.0 or 1.0.
std::shared_ptr<Array> as_reals(const Array& condition) {
  auto reals = std::make_shared<Array>(DType::f64, condition.shape);
  for (std::size_t i = 0; i < condition.integers.size(); ++i)
    reals->reals[i] = static_cast<double>(condition.integers[i]);
  return reals;
}

// An operand's array with its elements rounded to their dtype: what comparisons see.
std::shared_ptr<Array> rounded(const Array& array) {
  auto copy = std::make_shared<Array>(array);
  for (double& x : copy->reals) x = round_to(array.dtype, x);
  return copy;
}

// The result's array: an operand that dies here and has the same shape and class gives its memory.
template <typename T>
Array result_array(const Step& step, std::array<const T*, 3>& data) {
  const Extents shape = step.result_shape();
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    auto& operand = step.operands[i];
    if (operand.use_count() != 1 || operand->shape != shape ||
        is_real(operand->dtype) != is_real(step.result_dtype()) || data[i] != operand->template elements<T>().data())
      continue;
    Array result = std::move(*operand);  // the elements stay where they are
    result.dtype = step.result_dtype();
    return result;
  }
  return Array(step.result_dtype(), shape);
}

// Calls element(i, a, b, c) for each element of the result.
template <typename T, typename F>
void for_each_element(const std::vector<std::shared_ptr<Array>>& operands, const std::vector<Extents>& shapes,
                      const std::array<const T*, 3>& data, const Extents& shape, F element) {
  std::array<Strides, 3> maps;
  maps.fill({0, Extents(shape.size(), 0)});
  for (std::size_t i = 0; i < operands.size(); ++i) maps[i] = broadcast_strides(shapes[i], shape);
  const std::int64_t run = shape.empty() ? 1 : shape.back();
  const auto stride = [&](std::size_t i) { return shape.empty() ? 0 : maps[i].of.back(); };
  const std::int64_t sa = stride(0), sb = stride(1), sc = stride(2);
  std::int64_t i = 0;
  for_each_run(shape, maps, [&](const std::array<std::int64_t, 3>& at) {
    const T *a = data[0] + at[0], *b = data[1] + at[1], *c = data[2] + at[2];
    for (std::int64_t j = 0; j < run; ++j, ++i) element(static_cast<std::size_t>(i), a[j * sa], b[j * sb], c[j * sc]);
  });
}

template <typename T>
Array map_elements(const Step& step, auto element_of) {
  static const T zero{};
  std::array<const T*, 3> data{&zero, &zero, &zero};
  std::vector<Extents> shapes;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    data[i] = step.operand(i).elements<T>().data();
    shapes.push_back(step.operand(i).shape);
  }
  Array result = result_array<T>(step, data);
  for_each_element<T>(step.operands, shapes, data, result.shape, element_of(result));
  return result;
}

bool selects(double result, double a, double b, double c) {
  const double magnitude = std::fabs(result);
  return magnitude == std::fabs(a) || magnitude == std::fabs(b) || magnitude == std::fabs(c);
}

// What a routine gives at infinity is a limit, which every target has exactly where it is a whole number: tanh, erf,
// exp.
bool is_limit(double result, double a, double b, double c) {
  return (std::isinf(a) || std::isinf(b) || std::isinf(c)) && result == std::rint(result);
}

// The elements as a register holds them. Whether an exponent is a whole number decides if a power of a negative base is
// one, so `pow` sees what a target would.
std::shared_ptr<Array> in_registers(const Array& from) {
  auto result = std::make_shared<Array>(from);
  for (double& x : result->reals) x = round_to(compute_type(from.dtype), x);
  return result;
}

// An attention takes a mask of -inf that is added for a selection: a score that is NaN or infinite is hidden too. Of a
// pair of disturbed runs one says so.
bool may_hide(const Step& step, double value, double a, double b, std::size_t i) {
  const double infinity = std::numeric_limits<double>::infinity();
  return step.node.op == Op::add && std::isnan(value) && (a == -infinity || b == -infinity) &&
         step.numerics.disturbs() && step.numerics.noise(static_cast<std::int64_t>(i)) > 0;
}

Array map_reals(const Step& step) {
  if (step.node.op == Op::pow)
    for (auto& operand : step.operands) operand = in_registers(*operand);
  const RealFunction f = real_function(step.node.op);
  TENON_CHECK(f != nullptr, "map op without a meaning on reals");
  if (!is_real(step.result_dtype())) {
    for (auto& operand : step.operands) operand = rounded(*operand);
    return map_elements<double>(step, [&](Array& result) {
      return [f, &result](std::size_t i, double a, double b, double c) { result.integers[i] = f(a, b, c) != 0; };
    });
  }
  if (selects(step.node.op))
    return map_elements<double>(step, [&](Array& result) {
      return [f, &result](std::size_t i, double a, double b, double c) { result.reals[i] = f(a, b, c); };
    });
  const Accuracy accuracy = accuracy_of(step.node.op);
  return map_elements<double>(step, [&](Array& result) {
    return [&, f, accuracy](std::size_t i, double a, double b, double c) {
      const double plain = f(a, b, c);
      const double value = may_hide(step, plain, a, b, i) ? -std::numeric_limits<double>::infinity() : plain;
      const bool exact =
          (accuracy == Accuracy::correctly_rounded && selects(value, a, b, c)) || is_limit(value, a, b, c);
      result.reals[i] = exact || !step.numerics.disturbs()
                            ? step.numerics.keep(result.dtype, value)
                            : step.numerics.settle(result.dtype, value, accuracy, static_cast<std::int64_t>(i));
    };
  });
}

Array map_integers(const Step& step) {
  const IntegerFunction f = integer_function(step.node.op);
  TENON_CHECK(f != nullptr, "map op without a meaning on integers");
  return map_elements<std::int64_t>(step, [&](Array& result) {
    return [f, &result](std::size_t i, std::int64_t a, std::int64_t b, std::int64_t c) {
      result.integers[i] = wrap(result.dtype, f(a, b, c));
    };
  });
}

// Whether the value is 1 everywhere.
bool is_one(const Graph& graph, ValueId value) {
  const Node& node = graph.producer(value);
  return node.op == Op::full &&
         std::visit([](auto x) { return static_cast<double>(x) == 1; }, node.attrs.get<Scalar>("value"));
}

// Whether library functions make the value, through products, quotients, selections, views and a sum with 1: a target
// need not compute them to the last place of f32 where only numbers of 16 bits are made of them.
bool ends_functions(const Graph& graph, ValueId value) {
  std::vector<ValueId> left{value};
  std::vector<bool> seen(graph.values.size(), false);
  while (!left.empty()) {
    const ValueId id = left.back();
    left.pop_back();
    if (seen[static_cast<std::size_t>(id)] || graph.type(id).dtype != DType::f32) continue;
    seen[static_cast<std::size_t>(id)] = true;
    const Node& node = graph.producer(id);
    const Kind kind = kind_of(node.op);
    if (kind == Kind::map && accuracy_of(node.op) == Accuracy::routine) return true;
    const bool passes = kind == Kind::view || selects(node.op) || node.op == Op::mul || node.op == Op::div ||
                        node.op == Op::reciprocal || node.op == Op::sqrt ||
                        (node.op == Op::add && (is_one(graph, node.operands[0]) || is_one(graph, node.operands[1])));
    if (passes) left.insert(left.end(), node.operands.begin(), node.operands.end());
  }
  return false;
}

// A cast rounds to what it is cast to. What it reads is rounded first where that decides something (to integers) or
// where a register could not have held more (f32 to f64).
Array interpret_cast(const Step& step) {
  const Array& from = step.operand(0);
  Array result(step.result_dtype(), from.shape);
  const auto n = static_cast<std::size_t>(from.size());
  const DType to = result.dtype;
  const bool narrows = step.numerics.disturbs() && from.dtype == DType::f32 && is_real(to) && size_of(to) <= 2 &&
                       ends_functions(step.graph, step.node.operands[0]);
  for (std::size_t i = 0; i < n; ++i) {
    if (is_real(from.dtype) && is_real(to)) {
      const bool widens = to == DType::f64 && from.dtype != DType::f64;
      const double x = narrows ? step.numerics.narrow(to, from.reals[i], static_cast<std::int64_t>(i)) : from.reals[i];
      result.reals[i] = widens ? round_to(DType::f32, x) : round_to(to, x);
    } else if (is_real(from.dtype)) {
      result.integers[i] = integer_from_real(to, round_to(from.dtype, from.reals[i]));
    } else if (is_real(to)) {
      result.reals[i] = real_from_integer(to, from.integers[i]);
    } else {
      result.integers[i] = integer_from_integer(to, from.integers[i]);
    }
  }
  return result;
}

Array interpret_bitcast(const Step& step) {
  const Array& from = step.operand(0);
  Array result(step.result_dtype(), from.shape);
  const auto n = static_cast<std::size_t>(from.size());
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = is_real(from.dtype)
                                   ? step.numerics.storage_bits(from.dtype, from.reals[i], static_cast<std::int64_t>(i))
                                   : static_cast<std::uint64_t>(from.integers[i]);
    if (is_real(result.dtype)) {
      result.reals[i] = decode_real(result.dtype, bits);
    } else {
      result.integers[i] = decode_integer(result.dtype, bits);
    }
  }
  return result;
}

}  // namespace

Array interpret_map(const Step& step) {
  if (step.node.op == Op::cast) return interpret_cast(step);
  if (step.node.op == Op::bitcast) return interpret_bitcast(step);
  if (!is_real(operand_dtype(step))) return map_integers(step);
  if (step.node.op == Op::where) step.operands[0] = as_reals(step.operand(0));
  return map_reals(step);
}

}  // namespace tenon::ir
