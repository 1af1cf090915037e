// Result types of views. What slice, transpose and flip attributes mean is in ir/graph/view.h.
#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/graph/view.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

using Dims = std::vector<Dim>;

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
      type_error(fmt::format("cannot work out the -1 in {}: {} has {} elements, not a multiple of {}", str(shape),
                             str(x), count.str(), known.str()),
                 "give the extent itself");
    *open = *extent;
  } else if (!(known == count)) {
    type_error(fmt::format("{} has {} elements, shape {} has {}", str(x), count.str(), str(shape), known.str()),
               "give a shape of as many elements; one extent may be -1");
  }
  return shape;
}

Shape infer_transpose(const Type& x, const Attrs& attrs) {
  Shape shape;
  for (int axis : permutation(attrs, static_cast<int>(x.shape.size())))
    shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return shape;
}

Shape infer_slice(const Type& x, const Attrs& attrs, const Symbols& symbols) {
  Shape shape;
  for (const SliceRange& range : slice_ranges(attrs, x.shape, symbols)) shape.push_back(range.extent);
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
        type_error(
            fmt::format("padding {} of axis {} {} negative", amount.str(), i, amount.is_constant() ? "is" : "may be"),
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
    type_error(fmt::format("axis {} of {} has nothing to take from", axis, str(x)),
               "take from an axis of extent 1 or more");
  return shape;
}

}  // namespace

Type infer_view(const Inference& in) {
  const Type& x = in.operands[0];
  // Views are few and each has a rule of its own: this is the one place that tells them apart by name.
  if (in.op == Op::reshape) return {x.dtype, infer_reshape(x, in.attrs.get<Dims>("shape"))};
  if (in.op == Op::transpose) return {x.dtype, infer_transpose(x, in.attrs)};
  if (in.op == Op::broadcast_to) return {x.dtype, infer_broadcast_to(x, in.attrs.get<Dims>("shape"))};
  if (in.op == Op::slice) return {x.dtype, infer_slice(x, in.attrs, in.symbols)};
  if (in.op == Op::pad) return {x.dtype, infer_pad(x, in.attrs, in.symbols)};
  if (in.op == Op::concat) return {x.dtype, infer_concat(in.operands, in.attrs)};
  if (in.op == Op::take) return {x.dtype, infer_take(x, in.operands[1], in.attrs)};
  TENON_CHECK(in.op == Op::flip, fmt::format("view {} has no type rule", name_of(in.op)));
  flipped_axes(in.attrs, static_cast<int>(x.shape.size()));
  return x;
}

}  // namespace tenon::ir
