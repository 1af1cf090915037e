// The meaning of slice, transpose and flip attributes.
#include "ir/graph/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/graph/build.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

using Dims = std::vector<Dim>;
using Ints = std::vector<std::int64_t>;

[[noreturn]] void undecided(const std::string& message, const std::string& remedy) {
  throw Error(ErrorKind::type, message, Place{{}, 0, 0, {}, "symbols"}, remedy);
}

constexpr std::int64_t kFar = std::int64_t{1} << 62;  // limits beyond it are clipped, so that no sum leaves 64 bits

// `limit` counted from the front and limited to [low, high], where that can be decided for every value of the symbols.
Dim place_limit(Dim limit, const Dim& extent, const Dim& low, const Dim& high, const Symbols& symbols) {
  const std::string written = limit.str();
  if (limit.is_constant()) limit = Dim(std::clamp(limit.constant(), -kFar, kFar));
  if (limit.bounds(symbols).max < 0) limit = limit + extent;
  if (at_least(limit - high, 0, symbols)) return high;
  if (at_least(low - limit, 0, symbols)) return low;
  if (!at_least(limit - low, 0, symbols) || !at_least(high - limit, 0, symbols))
    undecided(fmt::format("cannot tell where {} lies on an axis of extent {}", written, extent.str()),
              "give the symbols bounds by which it is known to be inside");
  return limit;
}

SliceRange slice_range(const Dim* start, const Dim* stop, std::int64_t step, const Dim& extent,
                       const Symbols& symbols) {
  if (step == 0 || step < -kFar || step > kFar)
    type_error(fmt::format("step {}", step), "use a step other than 0 and within 2^62; negative steps go backwards");
  const bool forward = step > 0;
  const Dim low = forward ? Dim(0) : Dim(-1), high = forward ? extent : extent - 1;
  const auto given = [](const Dim* limit) { return limit != nullptr && !limit->is(kSliceEnd); };
  const Dim first = given(start) ? place_limit(*start, extent, low, high, symbols) : (forward ? low : high);
  const Dim last = given(stop) ? place_limit(*stop, extent, low, high, symbols) : (forward ? high : low);
  const Dim span = forward ? last - first : first - last;
  const std::int64_t stride = forward ? step : -step;
  if (at_least(Dim(0) - span, 0, symbols)) return {Dim(0), step, Dim(0)};
  if (!(span == extent) && !at_least(span, 0, symbols))
    undecided(fmt::format("cannot tell whether {} comes before {}", first.str(), last.str()),
              "give the symbols bounds by which it is known");
  return {first, step, (span + (stride - 1)).floor_div(stride)};
}

// The axes that a slice names; absent: the leading ones, as many as the lists have entries.
Ints sliced_axes(const Attrs& attrs, std::size_t entries, std::size_t rank) {
  Ints axes = attrs.get_or<Ints>("axis", {});
  if (attrs.has("axis")) return axes;
  if (entries > rank)
    type_error(fmt::format("{} limits for an operand of rank {}", entries, rank), "drop the surplus entries");
  axes.resize(entries);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

template <typename T>
const T* entry(const std::vector<T>* list, std::size_t i) {
  return list ? &(*list)[i] : nullptr;
}

}  // namespace

std::vector<SliceRange> slice_ranges(const Attrs& attrs, const Shape& shape, const Symbols& symbols) {
  const Dims* starts = attrs.has("start") ? &attrs.get<Dims>("start") : nullptr;
  const Dims* stops = attrs.has("stop") ? &attrs.get<Dims>("stop") : nullptr;
  const Ints* steps = attrs.has("step") ? &attrs.get<Ints>("step") : nullptr;
  const std::size_t entries = starts ? starts->size() : stops ? stops->size() : steps ? steps->size() : 0;
  const Ints axes = sliced_axes(attrs, entries, shape.size());
  const int rank = static_cast<int>(shape.size());
  normalize_axes(axes, rank);
  const auto fits = [&](const auto* list) { return list == nullptr || list->size() == axes.size(); };
  if (!fits(starts) || !fits(stops) || !fits(steps))
    type_error("axis, start, stop and step have different lengths",
               "give one entry for each sliced axis in every list");
  std::vector<SliceRange> ranges;
  for (const Dim& extent : shape) ranges.push_back({Dim(0), 1, extent});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(normalize_axis(axes[i], rank));
    ranges[axis] = slice_range(entry(starts, i), entry(stops, i), steps ? (*steps)[i] : 1, shape[axis], symbols);
  }
  return ranges;
}

std::vector<int> permutation(const Attrs& attrs, int rank) {
  std::vector<int> perm(static_cast<std::size_t>(rank));
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (!attrs.has("perm")) return perm;
  const auto& given = attrs.get<std::vector<std::int64_t>>("perm");
  if (static_cast<int>(given.size()) != rank)
    type_error(fmt::format("perm has {} entries and the operand has rank {}", given.size(), rank),
               "name every axis of the operand once");
  normalize_axes(given, rank);
  for (std::size_t i = 0; i < given.size(); ++i) perm[i] = normalize_axis(given[i], rank);
  return perm;
}

std::vector<int> flipped_axes(const Attrs& attrs, int rank) {
  std::vector<int> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return attrs.has("axis") ? normalize_axes(attrs.get<std::vector<std::int64_t>>("axis"), rank) : axes;
}

}  // namespace tenon::ir
