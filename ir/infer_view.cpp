// Result types of views. A slice's limits are resolved here once, for everyone (resolve_slice).
#include <fmt/format.h>

#include <algorithm>

#include "ir/build.h"
#include "ir/check.h"
#include "ir/infer.h"

namespace tenon::ir {
namespace {

using Dims = std::vector<Dim>;
using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kFar = std::int64_t{1} << 62;

void check_rank(std::size_t rank) {
  if (rank > static_cast<std::size_t>(kMaxRank))
    type_error(fmt::format("rank {} is over the limit of {}", rank, kMaxRank), "merge axes with reshape");
}

Shape infer_reshape(const Type& x, Dims shape) {
  check_rank(shape.size());
  const Dim count = element_count(x.shape);
  Dim known(1);
  Dim* open = nullptr;
  for (Dim& extent : shape) {
    if (!extent.is(-1)) {
      known = known * extent;
    } else if (open != nullptr) {
      type_error(fmt::format("shape {} has more than one -1", str(shape)), "give all extents but one");
    } else {
      open = &extent;
    }
  }
  if (open != nullptr) {
    const auto extent = count.exact_div(known);
    if (!extent)
      type_error(fmt::format("cannot work out the -1 in {}: {} has {} elements, not a multiple of {}", str(shape), str(x),
                             count.str(), known.str()),
                 "give the extent itself");
    *open = *extent;
  } else if (!(known == count)) {
    type_error(fmt::format("{} has {} elements, shape {} has {}", str(x), count.str(), str(shape), known.str()),
               "give a shape of as many elements; one extent may be -1");
  }
  return shape;
}

Shape infer_transpose(const Type& x, const Attrs& attrs) {
  Shape shape = x.shape;
  std::reverse(shape.begin(), shape.end());
  if (!attrs.has("perm")) return shape;
  const auto& perm = attrs.get<Integers>("perm");
  const int rank = static_cast<int>(x.shape.size());
  if (perm.size() != x.shape.size())
    type_error(fmt::format("perm names {} axes of {}", perm.size(), str(x)), "name each axis once, e.g. perm=[1, 0]");
  normalize_axes(perm, rank);
  for (std::size_t i = 0; i < perm.size(); ++i)
    shape[i] = x.shape[static_cast<std::size_t>(normalize_axis(perm[i], rank))];
  return shape;
}

Shape infer_broadcast_to(const Type& x, const Dims& shape) {
  check_rank(shape.size());
  bool fits = shape.size() >= x.shape.size();
  for (std::size_t i = 0; fits && i < x.shape.size(); ++i) {
    const Dim& extent = shape[shape.size() - x.shape.size() + i];
    fits = x.shape[i].is(1) || x.shape[i] == extent;
  }
  if (!fits)
    type_error(fmt::format("{} does not broadcast to {}", str(x), str(shape)),
               "axes align at the end; each extent must be 1 or the target's");
  return shape;
}

void check_flip(const Type& x, const Attrs& attrs) {
  if (attrs.has("axis")) normalize_axes(attrs.get<Integers>("axis"), static_cast<int>(x.shape.size()));
}

Shape infer_pad(const Type& x, const Attrs& attrs, const Symbols& symbols) {
  const auto& low = attrs.get<Dims>("low");
  const auto& high = attrs.get<Dims>("high");
  if (low.size() != x.shape.size() || high.size() != x.shape.size())
    type_error(fmt::format("low has {} and high has {} entries for {}", low.size(), high.size(), str(x)),
               "give one entry for each axis");
  fit_scalar(attrs.get<Scalar>("value"), x.dtype);
  Shape shape;
  for (std::size_t i = 0; i < low.size(); ++i) {
    for (const Dim& amount : {low[i], high[i]})
      if (!at_least(amount, 0, symbols))
        type_error(fmt::format("padding {} of axis {} {} negative", amount.str(), i, amount.is_constant() ? "is" : "may be"),
                   "use slice to cut elements off");
    shape.push_back(low[i] + x.shape[i] + high[i]);
  }
  return shape;
}

Shape infer_concat(std::span<const Type> operands, const Attrs& attrs) {
  const Type& first = operands[0];
  const int axis = normalize_axis(attrs.get<std::int64_t>("axis"), static_cast<int>(first.shape.size()));
  const auto joined = static_cast<std::size_t>(axis);
  Shape shape = first.shape;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Type& other = operands[i];
    if (other.dtype != first.dtype)
      type_error(fmt::format("operands have different dtypes: {} and {}", str(first), str(other)),
                 fmt::format("cast one side: cast(x, dtype={})", name_of(first.dtype)));
    bool fits = other.shape.size() == first.shape.size();
    for (std::size_t k = 0; fits && k < shape.size(); ++k) fits = k == joined || other.shape[k] == first.shape[k];
    if (!fits)
      type_error(fmt::format("{} and {} cannot be joined along axis {}", str(first), str(other), axis),
                 "all extents but that of the axis must be equal");
    shape[joined] = shape[joined] + other.shape[joined];
  }
  return shape;
}

Shape infer_take(const Type& x, const Type& indices, const Attrs& attrs) {
  if (!is_integer(indices.dtype))
    type_error(fmt::format("indices must be integers, not {}", str(indices)), "cast them: cast(index, dtype=i64)");
  const int axis = normalize_axis(attrs.get<std::int64_t>("axis"), static_cast<int>(x.shape.size()));
  const auto at = x.shape.begin() + axis;
  check_rank(x.shape.size() - 1 + indices.shape.size());
  Shape shape(x.shape.begin(), at);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), at + 1, x.shape.end());
  const bool empty = std::any_of(indices.shape.begin(), indices.shape.end(), [](const Dim& d) { return d.is(0); });
  if (at->is(0) && !empty)
    type_error(fmt::format("axis {} of {} has nothing to take from", axis, str(x)), "take from an axis of extent 1 or more");
  return shape;
}

// ---- slice --------------------------------------------------------------------------------------------------------

// `limit` counted from the front and clipped to [low, high], as far as the symbols' bounds decide it.
Dim clip(std::string_view what, Dim limit, const Dim& extent, const Dim& low, const Dim& high, const Symbols& symbols) {
  const std::string text = limit.str();
  if (limit.is_constant()) limit = Dim(std::clamp(limit.constant(), -kFar, kFar));
  if (limit.bounds(symbols).max < 0) limit = limit + extent;
  if (at_least(limit - high, 0, symbols)) return high;
  if (at_least(low - limit, 0, symbols)) return low;
  if (!at_least(limit - low, 0, symbols) || !at_least(high - limit, 0, symbols))
    type_error(fmt::format("cannot tell where {} {} lies on an axis of extent {}", what, text, extent.str()),
               "bound the symbols so that it is known to be inside");
  return limit;
}

// The number of steps from start towards stop; `distance` = stop - start in the step's direction.
Dim step_count(const Dim& distance, std::int64_t stride, const Dim& extent, const Symbols& symbols) {
  if (distance == extent) return (distance + Dim(stride - 1)).floor_div(stride);
  if (at_least(Dim(0) - distance, 0, symbols)) return Dim(0);
  if (!at_least(distance, 0, symbols))
    type_error(fmt::format("cannot tell whether {} elements are more than none", distance.str()),
               "bound the symbols so that start comes before stop");
  return (distance + Dim(stride - 1)).floor_div(stride);
}

SliceAxis resolve_axis(const Dim* start, const Dim* stop, std::int64_t step, const Dim& extent, const Symbols& symbols) {
  if (step == 0) type_error("step 0", "steps are positive or negative");
  if (step < -kFar || step > kFar) type_error(fmt::format("step {} is too large", step), "use a step within 2^62");
  const bool forward = step > 0;
  const Dim low(forward ? 0 : -1);
  const Dim high = forward ? extent : extent - Dim(1);
  const Dim first = start ? clip("start", *start, extent, low, high, symbols) : forward ? low : high;
  const Dim last = stop ? clip("stop", *stop, extent, low, high, symbols) : forward ? high : low;
  const Dim count = step_count(forward ? last - first : first - last, forward ? step : -step, extent, symbols);
  return {count.is(0) ? Dim(0) : first, step, count};
}

template <typename T>
const T* list_entry(const std::vector<T>* list, std::size_t i) {
  return list ? &(*list)[i] : nullptr;
}

Type infer_slice(const Inference& in) {
  Type result{in.operands[0].dtype, {}};
  for (const SliceAxis& axis : resolve_slice(in.attrs, in.operands[0].shape, in.symbols)) result.shape.push_back(axis.extent);
  return result;
}

}  // namespace

std::vector<SliceAxis> resolve_slice(const Attrs& attrs, const Shape& operand, const Symbols& symbols) {
  const auto* starts = attrs.has("start") ? &attrs.get<Dims>("start") : nullptr;
  const auto* stops = attrs.has("stop") ? &attrs.get<Dims>("stop") : nullptr;
  const auto* steps = attrs.has("step") ? &attrs.get<Integers>("step") : nullptr;
  Integers axes;
  if (attrs.has("axis")) {
    axes = attrs.get<Integers>("axis");
  } else {
    const std::size_t count = starts ? starts->size() : stops ? stops->size() : steps ? steps->size() : 0;
    for (std::size_t i = 0; i < count && i <= operand.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  const int rank = static_cast<int>(operand.size());
  normalize_axes(axes, rank);
  const auto mismatched = [&](const auto* list) { return list && list->size() != axes.size(); };
  if (mismatched(starts) || mismatched(stops) || mismatched(steps))
    type_error(fmt::format("start, stop and step do not have one entry for each of {} axes", axes.size()),
               "give lists of one length, and name the axes with axis=[…]");
  std::vector<SliceAxis> result;
  for (const Dim& extent : operand) result.push_back({Dim(0), 1, extent});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    SliceAxis& axis = result[static_cast<std::size_t>(normalize_axis(axes[i], rank))];
    axis = resolve_axis(list_entry(starts, i), list_entry(stops, i), steps ? (*steps)[i] : 1, axis.extent, symbols);
  }
  return result;
}

Type infer_view(const Inference& in) {
  const Type& x = in.operands[0];
  // Views are few and each has a rule of its own: this is the one place that tells them apart by name.
  if (in.op == Op::reshape) return {x.dtype, infer_reshape(x, in.attrs.get<Dims>("shape"))};
  if (in.op == Op::transpose) return {x.dtype, infer_transpose(x, in.attrs)};
  if (in.op == Op::broadcast_to) return {x.dtype, infer_broadcast_to(x, in.attrs.get<Dims>("shape"))};
  if (in.op == Op::slice) return infer_slice(in);
  if (in.op == Op::pad) return {x.dtype, infer_pad(x, in.attrs, in.symbols)};
  if (in.op == Op::concat) return {x.dtype, infer_concat(in.operands, in.attrs)};
  if (in.op == Op::take) return {x.dtype, infer_take(x, in.operands[1], in.attrs)};
  TENON_CHECK(in.op == Op::flip, fmt::format("view {} has no type rule", name_of(in.op)));
  check_flip(x, in.attrs);
  return x;
}

}  // namespace tenon::ir
