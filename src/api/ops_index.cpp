// Tensor's brackets: a slice of all axes at once, then one reshape, which drops and inserts axes.
#include <fmt/format.h>

#include <algorithm>

#include "src/api/recorder.h"
#include "tenon/index.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 62;  // indices beyond it are clipped, so that no sum leaves 64 bits

enum class Fate : std::uint8_t { kept, dropped, inserted };

// The indices of one pair of brackets, read for one tensor.
struct Reading {
  std::vector<Range> ranges;  // of the leading axes
  std::vector<Fate> fates;    // of the result's axes and those dropped, in order
};

class Reader {
 public:
  Reader(const Tensor& x, const Indices& indices)
      : type_(fmt::format("{}{}", name_of(x.dtype()), str(x.shape()))),
        shape_(x.shape()),
        symbols_(src::symbols_of(x)),
        at_(indices.location()) {}

  Reading read(const std::vector<Index>& indices) {
    const std::size_t left = shape_.size() - count_axes(indices);
    for (const Index& index : indices) {
      if (const auto* element = std::get_if<Dim>(&index.content())) {
        add(element_range(*element), Fate::dropped);
      } else if (const auto* range = std::get_if<Range>(&index.content())) {
        add(*range, Fate::kept);
      } else if (std::holds_alternative<Ellipsis>(index.content())) {
        for (std::size_t i = 0; i < left; ++i) add({}, Fate::kept);
      } else {
        reading_.fates.push_back(Fate::inserted);
      }
    }
    while (reading_.ranges.size() < shape_.size()) add({}, Fate::kept);
    return std::move(reading_);
  }

 private:
  void add(Range range, Fate fate) {
    reading_.ranges.push_back(std::move(range));
    reading_.fates.push_back(fate);
  }

  // How many axes the elements and ranges take.
  std::size_t count_axes(const std::vector<Index>& indices) const {
    std::size_t axes = 0, ellipses = 0;
    for (const Index& index : indices) {
      ellipses += std::holds_alternative<Ellipsis>(index.content()) ? 1 : 0;
      axes += std::holds_alternative<Dim>(index.content()) || std::holds_alternative<Range>(index.content()) ? 1 : 0;
    }
    if (ellipses > 1)
      fail(fmt::format("{} ellipses", ellipses), "give one: it stands for all axes that the other indices leave");
    if (axes > shape_.size())
      fail(fmt::format("{} {} for {} of rank {}", axes, axes == 1 ? "index" : "indices", type_, shape_.size()),
           "give at most one for each axis; newaxis and ellipsis need none");
    return axes;
  }

  // The range that holds only `element` of the next axis.
  Range element_range(Dim element) const {
    const std::size_t axis = reading_.ranges.size();
    const Dim& extent = shape_[axis];
    const std::string written = element.str();
    if (element.is_constant()) element = Dim(std::clamp(element.constant(), -kFar, kFar));
    if (element.bounds(symbols_).max < 0) element = element + extent;
    const SymbolBounds first = element.bounds(symbols_), rest = (extent - 1 - element).bounds(symbols_);
    if (first.max < 0 || rest.max < 0)
      fail(fmt::format("{} is out of range for axis {} of {}", written, axis, type_), range_remedy(extent));
    if (first.min < 0 || rest.min < 0)
      fail(fmt::format("cannot tell whether {} lies on axis {} of {}", written, axis, type_),
           "give the symbols bounds by which it is known to be inside", "symbols");
    return {element, element + 1};
  }

  static std::string range_remedy(const Dim& extent) {
    if (extent.is(0)) return "an axis of extent 0 has no elements";
    if (!extent.is_constant()) return "use an index within the extent's bounds";
    return fmt::format("indices run from {} to {}", -extent.constant(), extent.constant() - 1);
  }

  [[noreturn]] void fail(const std::string& message, const std::string& remedy,
                         const std::string& argument = {}) const {
    Place place = src::place_of(at_);
    place.argument = argument;
    throw Error(ErrorKind::type, "index: " + message, place, remedy);
  }

  std::string type_;
  Shape shape_;
  Symbols symbols_;
  Location at_;
  Reading reading_;
};

bool is_whole(const Range& range) { return !range.start && !range.stop && range.step == 1; }

}  // namespace

Tensor Tensor::operator[](const Indices& indices) const {
  const Location& at = indices.location();
  Reading reading = Reader(src::tensor_of("index", {*this, at}), indices).read(indices.list());
  while (!reading.ranges.empty() && is_whole(reading.ranges.back())) reading.ranges.pop_back();
  const Tensor sliced = reading.ranges.empty() ? *this : slice({*this, at}, reading.ranges);
  const Shape from = sliced.shape();
  Shape shape;
  auto next = from.begin();
  for (Fate fate : reading.fates) {
    if (fate != Fate::dropped) shape.push_back(fate == Fate::inserted ? Dim(1) : *next);
    if (fate != Fate::inserted) ++next;
  }
  const bool same = std::all_of(reading.fates.begin(), reading.fates.end(), [](Fate f) { return f == Fate::kept; });
  return same ? sliced : reshape({sliced, at}, shape);
}

}  // namespace tenon
