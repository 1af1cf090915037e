// The meaning of slice, transpose and flip attributes.
#include "ir/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/build.h"

namespace tenon::ir {
namespace {

// `x` limited to [low, high], where that can be decided for every value of the symbols.
Dim clamp_dim(const Dim& x, const Dim& low, const Dim& high, const Symbols& symbols) {
  if ((x - high).bounds(symbols).min >= 0) return high;
  if ((low - x).bounds(symbols).min >= 0) return low;
  if ((high - x).bounds(symbols).min >= 0 && (x - low).bounds(symbols).min >= 0) return x;
  throw Error(ErrorKind::type,
              fmt::format("slice: cannot tell whether {} lies within {} and {}", x.str(), low.str(), high.str()), {},
              "bound the dimension in the graph's where clause, or slice a constant extent");
}

Dim from_front(const Dim& bound, const Dim& extent) {
  return bound.is_constant() && bound.constant() < 0 ? extent + bound : bound;
}

SliceRange slice_range(const Dim* start, const Dim* stop, std::int64_t step, const Dim& extent,
                       const Symbols& symbols) {
  const bool forward = step > 0;
  const Dim low = forward ? Dim(0) : Dim(-1), high = forward ? extent : extent - 1;
  const auto given = [](const Dim* bound) { return bound != nullptr && !bound->is(kSliceEnd); };
  const Dim first = given(start) ? clamp_dim(from_front(*start, extent), low, high, symbols) : (forward ? low : high);
  const Dim last = given(stop) ? clamp_dim(from_front(*stop, extent), low, high, symbols) : (forward ? high : low);
  const Dim span = forward ? last - first : first - last;
  const std::int64_t stride = forward ? step : -step;
  if (span.bounds(symbols).max <= 0) return {first, step, Dim(0)};
  if (span.bounds(symbols).min < 0)
    throw Error(ErrorKind::type, fmt::format("slice: cannot tell whether {} comes before {}", first.str(), last.str()),
                {}, "bound the dimension in the graph's where clause");
  return {first, step, (span + (stride - 1)).floor_div(stride)};
}

}  // namespace

std::vector<SliceRange> slice_ranges(const Attrs& attrs, const Shape& shape, const Symbols& symbols) {
  using Dims = std::vector<Dim>;
  using Ints = std::vector<std::int64_t>;
  const Dims* starts = attrs.has("start") ? &attrs.get<Dims>("start") : nullptr;
  const Dims* stops = attrs.has("stop") ? &attrs.get<Dims>("stop") : nullptr;
  const Ints* steps = attrs.has("step") ? &attrs.get<Ints>("step") : nullptr;
  std::size_t count = 0;
  for (std::size_t size : {starts ? starts->size() : 0, stops ? stops->size() : 0, steps ? steps->size() : 0})
    count = std::max(count, size);
  Ints axes = attrs.get_or<Ints>("axis", {});
  if (!attrs.has("axis")) {
    axes.resize(count);
    std::iota(axes.begin(), axes.end(), 0);
  }
  const auto fits = [&](const auto* list) { return list == nullptr || list->size() == axes.size(); };
  if (!fits(starts) || !fits(stops) || !fits(steps))
    throw Error(ErrorKind::type, "slice: axis, start, stop and step have different lengths", {},
                "give one entry for each sliced axis in every list");
  const int rank = static_cast<int>(shape.size());
  std::vector<SliceRange> ranges;
  for (const Dim& extent : shape) ranges.push_back({Dim(0), 1, extent});
  if (axes.size() > shape.size())
    throw Error(ErrorKind::type, fmt::format("slice: {} axes of an operand of rank {}", axes.size(), rank), {},
                "drop the surplus entries");
  normalize_axes(axes, rank);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0 || step == std::numeric_limits<std::int64_t>::min())
      throw Error(ErrorKind::type, fmt::format("slice: step {}", step), {},
                  "use a step other than 0; negative steps go backwards");
    const auto axis = static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    ranges[axis] =
        slice_range(starts ? &(*starts)[i] : nullptr, stops ? &(*stops)[i] : nullptr, step, shape[axis], symbols);
  }
  return ranges;
}

std::vector<int> permutation(const Attrs& attrs, int rank) {
  std::vector<int> perm(static_cast<std::size_t>(rank));
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (!attrs.has("perm")) return perm;
  const auto& given = attrs.get<std::vector<std::int64_t>>("perm");
  if (static_cast<int>(given.size()) != rank)
    throw Error(ErrorKind::type,
                fmt::format("transpose: perm has {} entries and the operand has rank {}", given.size(), rank), {},
                "name every axis of the operand once");
  normalize_axes(given, rank);
  for (std::size_t i = 0; i < given.size(); ++i) perm[i] = static_cast<int>(given[i] < 0 ? given[i] + rank : given[i]);
  return perm;
}

std::vector<int> flipped_axes(const Attrs& attrs, int rank) {
  std::vector<int> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return attrs.has("axis") ? normalize_axes(attrs.get<std::vector<std::int64_t>>("axis"), rank) : axes;
}

}  // namespace tenon::ir
