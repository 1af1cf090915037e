// Reductions: elements combined in row-major order, reals in double.
#include <algorithm>
#include <cmath>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/interpret/interpreter.h"
#include "ir/ops/evaluate.h"
#include "ir/ops/formats.h"

namespace tenon::ir {
namespace {

// The strides with which each element of the operand finds its place in the result.
Strides places_in_result(const Extents& shape, const std::vector<int>& axes) {
  Extents kept = shape;
  for (const int axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
  return broadcast_strides(kept, shape);
}

// Calls f(element, place) for each element of the operand in row-major order.
template <typename F>
void for_each_place(const Extents& shape, const std::vector<int>& axes, F f) {
  const Strides places = places_in_result(shape, axes);
  const std::int64_t run = shape.empty() ? 1 : shape.back(), stride = shape.empty() ? 0 : places.of.back();
  std::size_t element = 0;
  for_each_run(shape, std::array{places}, [&](const std::array<std::int64_t, 1>& at) {
    for (std::int64_t j = 0; j < run; ++j) f(element++, static_cast<std::size_t>(at[0] + j * stride));
  });
}

// What is known of the terms of one sum.
struct Terms {
  double sum = 0, partial = 0, magnitudes = 0, squares = 0;
  bool whole = true;

  void add(double x) {
    sum += x;
    partial = std::max(partial, std::fabs(sum));
    magnitudes += std::fabs(x);
    squares += x * x;
    whole = whole && x == std::rint(x);
  }
  // Whole numbers that add up to no more than the precision holds are summed exactly in any order.
  double error(DType compute, std::int64_t terms) const {
    if (whole && magnitudes * unit_roundoff(compute) <= 1) return 0;
    return Numerics::sum_error(compute, terms, magnitudes, std::max(partial, std::sqrt(squares)),
                               compute == DType::f32 ? Numerics::kLongestChain : terms);
  }
};

void settle_sums(const Step& step, const std::vector<int>& axes, std::int64_t terms, Array& result) {
  const Array& x = step.operand(0);
  std::vector<Terms> known(result.reals.size());
  for_each_place(x.shape, axes, [&](std::size_t i, std::size_t place) { known[place].add(x.reals[i]); });
  for (std::size_t i = 0; i < result.reals.size(); ++i)
    result.reals[i] = step.numerics.settle_within(
        result.dtype, result.reals[i], known[i].error(compute_type(result.dtype), terms), static_cast<std::int64_t>(i));
}

// What is known of the factors of one product: the binary exponents of those above and of those below one.
struct Factors {
  double growth = 0, shrinkage = 0;

  void multiply(double x) {
    const double exponent = std::log2(std::fabs(x));  // NaN for NaN, which decides the product in every order
    if (exponent > 0) growth += exponent;
    if (exponent < 0) shrinkage -= exponent;
  }
  bool underflows(DType compute) const { return -shrinkage < real_format(compute).min_exponent; }
  // Infinite where some order overflows on the way, in which others need not.
  double error(DType compute, std::int64_t factors, double product) const {
    const bool overflows = growth >= std::log2(real_format(compute).largest);
    if (overflows && shrinkage > 0) return std::numeric_limits<double>::infinity();
    const double relative = (1 + std::sqrt(static_cast<double>(factors))) * unit_roundoff(compute) * std::fabs(product);
    return underflows(compute) ? relative + static_cast<double>(factors) * ulp(compute, product) : relative;
  }
};

void settle_products(const Step& step, const std::vector<int>& axes, std::int64_t factors, Array& result) {
  const Array& x = step.operand(0);
  std::vector<Factors> known(result.reals.size());
  for_each_place(x.shape, axes, [&](std::size_t i, std::size_t place) { known[place].multiply(x.reals[i]); });
  const DType compute = compute_type(result.dtype);
  for (std::size_t i = 0; i < result.reals.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    double& product = result.reals[i];
    const double error = known[i].error(compute, factors, product);
    if (known[i].underflows(compute) && known[i].growth > 0) product = step.numerics.underflowed(product, at);
    const double settled = step.numerics.settle_within(result.dtype, product, error, at);
    product = std::isfinite(error) ? std::copysign(settled, product) : settled;  // the sign is exact
  }
}

void keep_all(const Step& step, Array& result) {
  for (double& x : result.reals) x = step.numerics.keep(result.dtype, x);
}

// Sums of f64, in a wider type: a chain of roundings in double could be further off than a target's tree.
void sum_doubles(const Step& step, const std::vector<int>& axes, std::int64_t terms, Array& result) {
  const Array& x = step.operand(0);
  std::vector<long double> sums(result.reals.size());
  for_each_place(x.shape, axes, [&](std::size_t i, std::size_t place) { sums[place] += x.reals[i]; });
  for (std::size_t i = 0; i < sums.size(); ++i) result.reals[i] = static_cast<double>(sums[i]);
  if (step.numerics.disturbs()) settle_sums(step, axes, terms, result);
}

void reduce_reals(const Step& step, const std::vector<int>& axes, std::int64_t terms, Array& result) {
  const Array& x = step.operand(0);
  const RealFunction combine = real_function(step.node.op);
  const std::string_view combining = info(step.node.op).real.llvm;
  if (combining == "fadd" && result.dtype == DType::f64) return sum_doubles(step, axes, terms, result);
  result.reals.assign(result.reals.size(), real_identity(step.node.op));
  for_each_place(x.shape, axes, [&](std::size_t i, std::size_t place) {
    result.reals[place] = combine(result.reals[place], x.reals[i], 0);
  });
  if (selects(step.node.op) && terms > 0) return;  // of nothing it is no element, but what may be beyond the dtype
  if (!step.numerics.disturbs()) return keep_all(step, result);
  if (combining == "fadd") return settle_sums(step, axes, terms, result);
  if (combining == "fmul") return settle_products(step, axes, terms, result);
  keep_all(step, result);
}

void reduce_integers(const Step& step, const std::vector<int>& axes, Array& result) {
  const Array& x = step.operand(0);
  const IntegerFunction combine = integer_function(step.node.op);
  result.integers.assign(result.integers.size(), integer_identity(step.node.op, result.dtype));
  for_each_place(x.shape, axes, [&](std::size_t i, std::size_t place) {
    result.integers[place] = wrap(result.dtype, combine(result.integers[place], x.integers[i], 0));
  });
}

// Whether `candidate` comes before `best` in what argmax or argmin looks for: NaN first, then the extreme.
bool beats(Op op, double candidate, double best) {
  if (std::isnan(best)) return false;
  return std::isnan(candidate) || (op == Op::argmax ? candidate > best : candidate < best);
}
bool beats(Op op, std::int64_t candidate, std::int64_t best) {
  return op == Op::argmax ? candidate > best : candidate < best;
}

// The index counts the reduced elements of one place in row-major order: in the order in which they are met.
template <typename T>
void reduce_to_index(const Step& step, const std::vector<int>& axes, Array& result) {
  const Array& x = step.operand(0);
  std::vector<T> best(result.integers.size());
  std::vector<std::int64_t> met(result.integers.size());
  for_each_place(x.shape, axes, [&](std::size_t i, std::size_t place) {
    T candidate = x.elements<T>()[i];
    if constexpr (std::is_same_v<T, double>) candidate = round_to(x.dtype, candidate);
    if (met[place] == 0 || beats(step.node.op, candidate, best[place])) {
      best[place] = candidate;
      result.integers[place] = met[place];
    }
    ++met[place];
  });
}

}  // namespace

Array interpret_reduce(const Step& step) {
  const Array& x = step.operand(0);
  const std::vector<int> axes = reduced_axes(step.node, static_cast<int>(x.shape.size()));
  std::int64_t terms = 1;
  for (const int axis : axes) terms *= x.shape[static_cast<std::size_t>(axis)];
  Array result(step.result_dtype(), step.result_shape());
  if (info(step.node.op).yields == Yields::Index) {
    by_class(x.dtype, [&](auto zero) { reduce_to_index<decltype(zero)>(step, axes, result); });
  } else if (is_real(x.dtype)) {
    reduce_reals(step, axes, terms, result);
  } else {
    reduce_integers(step, axes, result);
  }
  return result;
}

}  // namespace tenon::ir
