// See page.h.
#include "codegen/analysis/page.h"

#include <algorithm>
#include <cstdint>

#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kMostRows = 1 << 30;  // of a page
constexpr int kWholePattern = 8;             // rows, of the swizzle

// Whether all that the value is made of is the same at `rows` neighbours along the axis.
bool same_in_page(const Kernel& kernel, InstrId value, int axis, int rows) {
  const auto same = [&](const Index& index) { return step_along(index, axis, rows, kernel) == 0; };
  const auto all_same = [&](const std::vector<Guard>& guards) {
    return std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) { return same(guard.index); });
  };
  const std::vector<InstrId> made_of = needed(kernel, {value});
  return std::all_of(made_of.begin(), made_of.end(), [&](InstrId id) {
    const Instr& instr = kernel.instr(id);
    return same(instr.index) && same(instr.access.offset) && all_same(instr.guards) && all_same(instr.access.guards);
  });
}

// The axis itself.
bool is_axis(const Index& index, int axis) { return index == Index::axis(axis); }

}  // namespace

std::optional<PagedOffset> paged_offset(const Kernel& kernel, const Index& offset, int axis,
                                        const std::vector<int>& batch) {
  std::vector<IndexTerm> strides;
  std::optional<Page> page;
  std::optional<IndexTerm> in_page;  // the place of a row
  for (const IndexTerm& term : offset.terms()) {
    const IndexAtom& atom = *term.atom;
    switch (atom.kind) {
      case IndexAtom::Kind::axis: strides.push_back(term); break;
      case IndexAtom::Kind::value:
        if (page) return std::nullopt;
        page = Page{atom.id, atom.divisor, term.coefficient};
        break;
      case IndexAtom::Kind::mod:
        if (in_page || !is_axis(atom.operand, axis) || !atom.divisor.is_constant()) return std::nullopt;
        in_page = term;
        break;
      case IndexAtom::Kind::floor_div: return std::nullopt;
    }
  }
  const Index plain = Index::sum(offset.constant(), strides);
  if (!page) return in_page ? std::nullopt : std::optional(PagedOffset{plain, std::nullopt});
  std::uint64_t decide = std::uint64_t{1} << axis;
  for (int each : batch) decide |= std::uint64_t{1} << each;
  if ((kernel.instr(page->value).depends & ~decide) != 0) return std::nullopt;
  if (!in_page) {
    page->rows = varies(kernel, page->value, axis) ? 1 : 0;
    return PagedOffset{plain, page};
  }
  const std::int64_t rows = in_page->atom->divisor.constant();
  if (rows > kMostRows || plain.depends_on(axis)) return std::nullopt;
  page->rows = static_cast<int>(rows);
  if (!same_in_page(kernel, page->value, axis, page->rows)) return std::nullopt;
  return PagedOffset{plain + Index::axis(axis) * in_page->coefficient, page};
}

int box_rows(const std::optional<Page>& page, int tile) {
  return page && page->rows > 0 ? std::min(page->rows, tile) : tile;
}

std::string why_not_tiled(const std::optional<Page>& page, int tile) {
  const int rows = box_rows(page, tile);
  if (rows % kWholePattern != 0) return "pages have eight rows, or a multiple";
  if (tile % rows != 0 || (page && page->rows % rows != 0)) return "a tile is whole pages, or a whole share of one";
  return {};
}

}  // namespace tenon::codegen
