// Statistics, softmax and its kin, norms. 16-bit and 8-bit reals are cast to f32 first and the result is cast back.
#include <fmt/format.h>

#include <limits>

#include "ir/ops/composites.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ValueId variance_of(const Expansion& e, ValueId deviation, const std::vector<int>& axes, bool keepdims,
                    const Dim& divisor) {
  const ValueId sum = e.reduce(Op::sum, e(Op::mul, {deviation, deviation}), axes, keepdims);
  ValueId count = e.dimension(divisor.is_constant() && divisor.constant() < 0 ? Dim(0) : divisor, e.dtype(sum));
  if (!at_least(divisor, 0, e.symbols())) count = e(Op::maximum, {count, e.literal(0, count)});
  return e(Op::div, {sum, count});
}

// A weight or bias of a norm: the normalized axes' extents, in x's dtype or wider; shaped to broadcast against x.
ValueId norm_parameter(const Expansion& e, ValueId parameter, ValueId x, const std::vector<int>& axes, DType dtype) {
  const Shape full = e.shape(x);
  Shape wanted, aligned(full.size(), Dim(1));
  for (int axis : axes) {
    wanted.push_back(full[static_cast<std::size_t>(axis)]);
    aligned[static_cast<std::size_t>(axis)] = wanted.back();
  }
  const DType given = e.dtype(parameter);
  if (e.shape(parameter) != wanted || (given != e.dtype(x) && given != dtype))
    type_error(fmt::format("weight and bias must be {}, not {}", str(Type{e.dtype(x), wanted}), str(e.type(parameter))),
               "their shape is that of the normalized axes of x");
  return e.reshape(e.cast(parameter, dtype), axes.back() - axes.front() + 1 == static_cast<int>(axes.size()) &&
                                                     axes.back() + 1 == static_cast<int>(full.size())
                                                 ? wanted
                                                 : aligned);
}

void check_norm(const Expansion& e, std::size_t most, std::string_view usage) {
  if (e.operands.size() > most)
    type_error(fmt::format("takes at most {} operands, got {}", most, e.operands.size()), std::string(usage));
  if (e.axes(e.rank(e.operands[0])).empty()) type_error("axis is empty", "name the axes to normalize, e.g. axis=[-1]");
  if (!(e.attrs.get<double>("eps") >= 0))
    type_error(fmt::format("eps={} is not 0 or more", e.attrs.get<double>("eps")),
               "use a small positive number such as 1e-5");
}

// x * rsqrt(mean of squares + eps), times the weight, plus the bias.
ValueId normalized(const Expansion& e, ValueId wide, const std::vector<int>& axes) {
  const ValueId square = mean_of(e, e(Op::mul, {wide, wide}), axes, true);
  const ValueId scale = e(Op::rsqrt, {e(Op::add, {square, e.literal(e.attrs.get<double>("eps"), wide)})});
  return e(Op::mul, {wide, scale});
}

// The maximum over `axes`, kept, with 0 where `bad` says that subtracting it would make a NaN.
ValueId safe_maximum(const Expansion& e, ValueId x, const std::vector<int>& axes, bool both_infinities) {
  const ValueId top = e.reduce(Op::max, x, axes, true);
  const ValueId bad = both_infinities ? e(Op::isinf, {top}) : e(Op::equal, {top, e.literal(-kInfinity, top)});
  return e(Op::where, {bad, e.literal(0, top), top});
}

}  // namespace

ValueId mean_of(const Expansion& e, ValueId x, const std::vector<int>& axes, bool keepdims) {
  const ValueId count = e.dimension(extent_of(e.shape(x), axes), e.dtype(x));
  return e(Op::div, {e.reduce(Op::sum, x, axes, keepdims), count});
}

ValueId logsumexp_of(const Expansion& e, ValueId x, const std::vector<int>& axes, bool keepdims) {
  const ValueId top = safe_maximum(e, x, axes, true);
  const ValueId sum = e.reduce(Op::sum, e(Op::exp, {e(Op::sub, {x, top})}), axes, true);
  const ValueId result = e(Op::add, {e(Op::log, {sum}), top});
  if (keepdims) return result;
  Shape shape;
  for (std::size_t i = 0, next = 0; i < e.shape(x).size(); ++i) {
    if (next < axes.size() && axes[next] == static_cast<int>(i)) {
      ++next;
    } else {
      shape.push_back(e.shape(x)[i]);
    }
  }
  return e.reshape(result, shape);
}

std::vector<ValueId> expand_mean(const Expansion& e) {
  const ValueId x = e.operands[0], wide = e.widened(x);
  return {e.cast(mean_of(e, wide, e.axes(e.rank(x)), e.attrs.get<bool>("keepdims")), e.dtype(x))};
}

std::vector<ValueId> expand_var(const Expansion& e) {
  const ValueId x = e.operands[0], wide = e.widened(x);
  const std::vector<int> axes = e.axes(e.rank(x));
  const std::int64_t ddof = e.attrs.get<std::int64_t>("ddof");
  if (ddof < 0) type_error(fmt::format("ddof={} is negative", ddof), "use 0 (population) or 1 (sample)");
  const ValueId deviation = e(Op::sub, {wide, mean_of(e, wide, axes, true)});
  const Dim divisor = extent_of(e.shape(x), axes) - Dim(ddof);
  return {e.cast(variance_of(e, deviation, axes, e.attrs.get<bool>("keepdims"), divisor), e.dtype(x))};
}

std::vector<ValueId> expand_logsumexp(const Expansion& e) {
  const ValueId x = e.operands[0], wide = e.widened(x);
  return {e.cast(logsumexp_of(e, wide, e.axes(e.rank(x)), e.attrs.get<bool>("keepdims")), e.dtype(x))};
}

// A row of -inf has maximum -inf and sum 0; subtracting 0 and dividing by 1 instead makes it 0 throughout.
std::vector<ValueId> expand_softmax(const Expansion& e) {
  const ValueId x = e.operands[0], wide = e.widened(x);
  const std::vector<int> axes = e.axes(e.rank(x));
  const ValueId weight = e(Op::exp, {e(Op::sub, {wide, safe_maximum(e, wide, axes, false)})});
  const ValueId sum = e.reduce(Op::sum, weight, axes, true);
  const ValueId divisor = e(Op::where, {e(Op::equal, {sum, e.literal(0, sum)}), e.literal(1, sum), sum});
  return {e.cast(e(Op::div, {weight, divisor}), e.dtype(x))};
}

// (x - max) - log(sum(exp(x - max))): the difference is exact near the maximum, unlike x - logsumexp(x).
std::vector<ValueId> expand_log_softmax(const Expansion& e) {
  const ValueId x = e.operands[0], wide = e.widened(x);
  const std::vector<int> axes = e.axes(e.rank(x));
  const ValueId shifted = e(Op::sub, {wide, safe_maximum(e, wide, axes, false)});
  const ValueId sum = e.reduce(Op::sum, e(Op::exp, {shifted}), axes, true);
  return {e.cast(e(Op::sub, {shifted, e(Op::log, {sum})}), e.dtype(x))};
}

std::vector<ValueId> expand_layer_norm(const Expansion& e) {
  const ValueId x = e.operands[0], wide = e.widened(x);
  check_norm(e, 3, "write layer_norm(x, weight, bias)");
  const std::vector<int> axes = e.axes(e.rank(x));
  ValueId y = normalized(e, e(Op::sub, {wide, mean_of(e, wide, axes, true)}), axes);
  if (e.operands.size() > 1) y = e(Op::mul, {y, norm_parameter(e, e.operands[1], x, axes, e.dtype(wide))});
  if (e.operands.size() > 2) y = e(Op::add, {y, norm_parameter(e, e.operands[2], x, axes, e.dtype(wide))});
  return {e.cast(y, e.dtype(x))};
}

std::vector<ValueId> expand_rms_norm(const Expansion& e) {
  const ValueId x = e.operands[0], wide = e.widened(x);
  check_norm(e, 2, "write rms_norm(x, weight)");
  const std::vector<int> axes = e.axes(e.rank(x));
  ValueId y = normalized(e, wide, axes);
  if (e.operands.size() > 1) y = e(Op::mul, {y, norm_parameter(e, e.operands[1], x, axes, e.dtype(wide))});
  return {e.cast(y, e.dtype(x))};
}

// x[target] is a sum over the row in which only the target counts, so that the whole is one kernel over rows.
// The logits keep their shift: log(sum) - (x[target] - max) loses no digits when the target dominates.
std::vector<ValueId> expand_cross_entropy(const Expansion& e) {
  const ValueId x = e.operands[0], target = e.operands[1], wide = e.widened(x);
  const std::string& reduction = e.attrs.get<std::string>("reduction");
  if (reduction != "none" && reduction != "mean" && reduction != "sum")
    type_error(fmt::format("reduction=\"{}\" is unknown", reduction), "use \"none\", \"mean\" or \"sum\"");
  Shape rows = e.shape(x);
  if (rows.empty()) type_error("logits of rank 0 have no classes", "give logits (…, classes)");
  const Dim classes = rows.back();
  rows.pop_back();
  if (!is_integer(e.dtype(target)) || e.shape(target) != rows)
    type_error(fmt::format("targets for logits {} must be integers of shape {}, not {}", str(e.type(x)), str(rows),
                           str(e.type(target))),
               "give one class index for each row");
  const int axis = static_cast<int>(rows.size());
  rows.push_back(Dim(1));
  const bool narrow =
      e.dtype(target) != DType::i64 && classes.bounds(e.symbols()).max <= std::numeric_limits<std::int32_t>::max();
  const DType index = narrow ? DType::i32 : DType::i64;
  const ValueId wanted = e.reshape(e.cast(target, index), rows);
  const ValueId position = e(Op::iota, {}, {{"shape", std::vector{classes}}, {"dtype", index}});
  const ValueId shifted = e(Op::sub, {wide, safe_maximum(e, wide, {axis}, false)});
  const ValueId picked = e(Op::where, {e(Op::equal, {position, wanted}), shifted, e.literal(0, wide)});
  const ValueId sum = e.reduce(Op::sum, e(Op::exp, {shifted}), {axis}, false);
  ValueId loss = e(Op::sub, {e(Op::log, {sum}), e.reduce(Op::sum, picked, {axis}, false)});
  std::vector<int> all;
  for (int i = 0; i < axis; ++i) all.push_back(i);
  if (reduction == "mean") loss = mean_of(e, loss, all, false);
  if (reduction == "sum") loss = e.reduce(Op::sum, loss, all, false);
  return {e.cast(loss, e.dtype(x))};
}

}  // namespace tenon::ir
