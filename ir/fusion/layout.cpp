// Splitting, matching and substituting the digits of layouts. Everything works on the row-major order of a value, so
// that reshapes cost nothing; where extents do not divide, the answer is "unknown" and the planner keeps values in
// memory.
#include "ir/fusion/layout.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace tenon::ir::fusion {
namespace {

constexpr int kMostTerms = 1 << 20;  // what is counted of a coordinate; more is too many anyway

bool plain(const Digit& digit) { return digit.axis >= 0; }

std::int64_t mixed(std::int64_t id, std::int64_t with) {
  auto bits = (static_cast<std::uint64_t>(id) ^ static_cast<std::uint64_t>(with)) * 0x9e3779b97f4a7c15U;
  bits ^= bits >> 29;
  return static_cast<std::int64_t>(bits >> 1);
}

// `id` of a coordinate that varies with `layout`, told apart by the moves that are in it: views behind views.
std::int64_t moved_by(std::int64_t id, const Layout& layout) {
  for (const Digit& digit : layout)
    if (!plain(digit)) id = mixed(id, digit.divisor.constant());
  return id;
}

int all_terms(const Layout& layout) {
  int terms = 0;
  for (const Digit& digit : layout) terms = std::min(kMostTerms, terms + digit.terms);
  return terms;
}

// Takes digits of `extent` elements from the inner end of `layout`; nothing when that would cut within a digit
// unevenly.
std::optional<Layout> take_inner(Layout& layout, Dim extent) {
  Layout taken;
  while (!extent.is(1)) {
    if (layout.empty()) return std::nullopt;
    Digit& last = layout.back();
    if (last.extent == extent) {
      taken.push_back(last);
      layout.pop_back();
      break;
    }
    if (extent.is(0) || last.extent.is(0)) return std::nullopt;
    if (const auto rest = extent.exact_div(last.extent)) {
      taken.push_back(last);
      layout.pop_back();
      extent = *rest;
      continue;
    }
    const auto outer = last.extent.exact_div(extent);
    if (!outer) return std::nullopt;
    Digit inner = last;
    inner.extent = extent;
    taken.push_back(inner);
    if (plain(last)) last.divisor = last.divisor * extent;
    last.extent = *outer;
    break;
  }
  std::reverse(taken.begin(), taken.end());
  return taken;
}

// Pieces of `layout` for the dimensions [begin, end), which its digits do not give.
void cut_unevenly(const Layout& layout, const Shape& shape, std::size_t begin, std::size_t end,
                  std::vector<Layout>& pieces) {
  auto cut = std::make_shared<Cut>(Cut{layout, {}});
  std::int64_t id = -1;  // which digits are cut
  for (const Digit& digit : layout)
    for (const Dim& part : {digit.divisor, digit.extent})
      if (part.is_constant()) id = mixed(id, part.constant());
  for (std::size_t i = begin; i < end; ++i) {
    pieces[i] = {moved(layout, shape[i], mixed(id, static_cast<std::int64_t>(i)))};
    if (shape[i].is(1)) continue;
    pieces[i].front().cut = cut;
    pieces[i].front().piece = static_cast<int>(cut->extents.size());
    cut->extents.push_back(shape[i]);
  }
}

// The digits [begin, …) that are all pieces of one cut in their order: how many; 0 where they are none.
std::size_t whole_cut(const Layout& layout, std::size_t begin) {
  const Cut* cut = layout[begin].cut.get();
  if (cut == nullptr || begin + cut->extents.size() > layout.size()) return 0;
  for (std::size_t i = 0; i < cut->extents.size(); ++i) {
    const Digit& digit = layout[begin + i];
    if (digit.cut.get() != cut || digit.piece != static_cast<int>(i) || digit.extent != cut->extents[i]) return 0;
  }
  return cut->extents.size();
}

// Pieces side by side again are what was cut.
Layout put_together(const Layout& layout) {
  Layout result;
  result.reserve(layout.size());
  for (std::size_t i = 0; i < layout.size();) {
    if (const std::size_t count = whole_cut(layout, i); count > 0) {
      const Layout& whole = layout[i].cut->whole;
      result.insert(result.end(), whole.begin(), whole.end());
      i += count;
    } else {
      result.push_back(layout[i++]);
    }
  }
  return result;
}

struct Piece {
  const Digit* digit;
  const Layout* image;
};

// A digit of the domain `from` that is no digit of the other.
Digit elsewhere(const Digit& digit, const Domain& from, const AxisMap& map) {
  Layout image;  // of the axes along which it varies
  int longest = 1;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (const auto& of_axis = map[static_cast<std::size_t>(axis)]; (digit.depends >> axis & 1U) != 0 && of_axis) {
      image.insert(image.end(), of_axis->begin(), of_axis->end());
      longest = std::max(longest, all_terms(*of_axis));
    }
  const std::int64_t id = plain(digit) ? -100 - digit.axis : digit.divisor.constant();
  Digit other = moved(image, digit.extent, id, plain(digit) ? kMoved : digit.axis);
  other.terms = static_cast<int>(std::min<std::int64_t>(kMostTerms, std::int64_t{digit.terms} * longest));
  return other;
}

// Whether the digit is all of its axis, and the only one on it: the others are digits of other axes. So are most.
bool is_whole(const Digit& digit, const Domain& domain) {
  return plain(digit) && digit.divisor.is(1) && !digit.extent.is(1) &&
         digit.extent == domain.extents[static_cast<std::size_t>(digit.axis)];
}

// The axes of digits that are whole axes, as bits; nothing where some are not, or an axis occurs twice.
std::optional<std::uint32_t> whole_axes(const Layout& digits, const Domain& domain) {
  std::uint32_t bits = 0;
  for (const Digit& digit : digits) {
    if (!is_whole(digit, domain) || (bits >> digit.axis & 1U) != 0) return std::nullopt;
    bits |= 1U << digit.axis;
  }
  return bits;
}

bool same_extents(const Layout& a, const Layout& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Digit& x, const Digit& y) { return x.extent == y.extent; });
}

// The image of a whole axis from the images of its digits, or nothing unless they tile it.
std::optional<Layout> joined(std::vector<Piece> digits, const Dim& extent) {
  Layout image;
  Dim reached(1);
  std::vector<Layout> inner_first;
  while (!(reached == extent)) {
    const auto next =
        std::find_if(digits.begin(), digits.end(), [&](const Piece& piece) { return piece.digit->divisor == reached; });
    if (next == digits.end()) return std::nullopt;
    reached = reached * next->digit->extent;
    inner_first.push_back(*next->image);
    digits.erase(next);
  }
  if (!digits.empty()) return std::nullopt;
  std::reverse(inner_first.begin(), inner_first.end());
  return concatenated(inner_first);
}

}  // namespace

Layout Domain::axes(int first, int last) const {
  Layout layout;
  layout.reserve(static_cast<std::size_t>(std::max(0, last - first)));
  for (int axis = first; axis < last; ++axis) layout.push_back(whole(axis));
  return normalized(layout);
}

Layout normalized(const Layout& layout) {
  Layout result;
  result.reserve(layout.size());
  for (const Digit& digit : layout) {
    if (digit.extent.is(1)) continue;
    if (!result.empty()) {
      Digit& outer = result.back();
      if (plain(outer) && outer.axis == digit.axis && outer.divisor == digit.divisor * digit.extent) {
        outer.divisor = digit.divisor;
        outer.extent = outer.extent * digit.extent;
        continue;
      }
    }
    result.push_back(digit);
  }
  return result;
}

std::uint32_t depends_of(const Layout& layout) {
  std::uint32_t bits = 0;
  for (const Digit& digit : layout) bits |= digit.depends;
  return bits;
}

bool is_plain(const Layout& layout) { return std::all_of(layout.begin(), layout.end(), plain); }

int terms_of(const Layout& layout) {
  int terms = 0;
  for (const Digit& digit : layout)
    if (!plain(digit)) terms = std::max(terms, digit.terms);
  return terms;
}

bool is_guarded(const Layout& layout) {
  return std::any_of(layout.begin(), layout.end(), [](const Digit& digit) { return digit.axis == kGuarded; });
}

bool is_gathered(const Layout& layout) {
  return std::any_of(layout.begin(), layout.end(), [](const Digit& digit) { return digit.axis == kGathered; });
}

std::optional<std::vector<Layout>> segments(const Layout& layout, const Shape& shape) {
  Layout rest = layout;
  std::vector<Layout> pieces(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    auto piece = take_inner(rest, shape[i]);
    if (!piece) return std::nullopt;
    pieces[i] = std::move(*piece);
  }
  if (!rest.empty()) return std::nullopt;
  return pieces;
}

std::vector<Layout> pieces(const Layout& layout, const Shape& shape) {
  std::vector<Layout> result(shape.size());
  Layout rest = layout;
  for (std::size_t end = shape.size(), begin = end; end > 0; end = begin) {
    // The fewest dimensions that end between digits; all that are left where none do.
    std::optional<Layout> piece;
    for (Dim extent(1); begin > 0 && !piece;) {
      extent = extent * shape[--begin];
      Layout outer = rest;
      piece = take_inner(outer, extent);
      if (piece) rest = std::move(outer);
    }
    if (piece && end - begin == 1) {
      result[begin] = std::move(*piece);
    } else {
      cut_unevenly(piece ? *piece : std::exchange(rest, {}), shape, begin, end, result);
    }
  }
  return result;
}

Digit moved(const Layout& layout, const Dim& extent, std::int64_t id, int kind) {
  if (kind == kMoved && is_guarded(layout)) kind = kGuarded;
  return {kind, Dim(moved_by(id, layout)), extent, depends_of(layout), std::max(1, all_terms(layout))};
}

Layout concatenated(const std::vector<Layout>& pieces) {
  Layout all;
  std::size_t count = 0;
  for (const Layout& piece : pieces) count += piece.size();
  all.reserve(count);
  for (const Layout& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  all = normalized(all);
  return is_plain(all) ? all : normalized(put_together(all));
}

AxisMap align(const Layout& layout, const Layout& other, const Domain& from) {
  AxisMap map(static_cast<std::size_t>(from.rank()));
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from.extents[static_cast<std::size_t>(axis)].is(1)) map[static_cast<std::size_t>(axis)] = Layout{};
  if (same_extents(layout, other) && whole_axes(other, from)) {  // digit for digit, without a search
    for (std::size_t i = 0; i < other.size(); ++i)
      if (plain(layout[i])) map[static_cast<std::size_t>(other[i].axis)] = Layout{layout[i]};
    return map;
  }
  Shape extents;
  for (const Digit& digit : other) extents.push_back(digit.extent);
  const auto images = segments(layout, extents);
  if (!images) return map;
  std::map<int, std::vector<Piece>> by_axis;
  for (std::size_t i = 0; i < other.size(); ++i)
    if (plain(other[i]) && is_plain((*images)[i])) by_axis[other[i].axis].push_back({&other[i], &(*images)[i]});
  for (auto& [axis, digits] : by_axis)
    map[static_cast<std::size_t>(axis)] = joined(std::move(digits), from.extents[static_cast<std::size_t>(axis)]);
  return map;
}

bool is_identity(const AxisMap& map, const Domain& from, const Domain& to) {
  if (from.rank() > to.rank()) return false;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const auto& image = map[static_cast<std::size_t>(axis)];
    const bool one = from.extents[static_cast<std::size_t>(axis)].is(1);
    if (!image || image->size() != (one ? 0U : 1U)) return false;
    if (!one && (image->front().axis != axis || image->front() != to.whole(axis))) return false;
  }
  return true;
}

Layout substitute(const Layout& layout, const Domain& from, const AxisMap& map) {
  Layout result;
  result.reserve(layout.size());
  for (const Digit& digit : layout) {
    std::optional<std::vector<Layout>> cut;
    if (plain(digit)) {
      const auto& image = map[static_cast<std::size_t>(digit.axis)];
      const Dim& extent = from.extents[static_cast<std::size_t>(digit.axis)];
      if (image && digit == from.whole(digit.axis)) {  // also where the extent is 0
        result.insert(result.end(), image->begin(), image->end());
        continue;
      }
      const auto outer = extent.exact_div(digit.divisor * digit.extent);
      if (image && outer) cut = segments(*image, {*outer, digit.extent, digit.divisor});
    }
    if (cut) {
      result.insert(result.end(), (*cut)[1].begin(), (*cut)[1].end());
    } else {
      result.push_back(elsewhere(digit, from, map));
    }
  }
  return normalized(result);
}

std::optional<std::uint32_t> covered(const Layout& digits, const Domain& domain) {
  if (const auto axes = whole_axes(digits, domain)) return axes;
  std::map<int, std::vector<Piece>> by_axis;
  const Layout none;
  for (const Digit& digit : digits) {
    if (!plain(digit)) return std::nullopt;
    by_axis[digit.axis].push_back({&digit, &none});
  }
  std::uint32_t bits = 0;
  for (auto& [axis, pieces] : by_axis) {
    if (!joined(std::move(pieces), domain.extents[static_cast<std::size_t>(axis)])) return std::nullopt;
    bits |= 1U << axis;
  }
  return bits;
}

std::uint32_t axis_bits(const Domain& domain, int first, int last) {
  std::uint32_t bits = 0;
  for (int axis = first; axis < last; ++axis)
    if (!domain.extents[static_cast<std::size_t>(axis)].is(1)) bits |= 1U << axis;
  return bits;
}

}  // namespace tenon::ir::fusion
