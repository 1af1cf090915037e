// See lines.h.
#include "codegen/analysis/lines.h"

#include <algorithm>
#include <vector>

#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kLine = 128, kSector = 32;  // bytes
constexpr int kLanes = 32, kOperandBits = 48;      // of an offset within an operand

using Point = std::vector<std::int64_t>;  // of the domain, an index for each axis

// What `index` is there; nothing where symbols or values decide it.
std::optional<std::int64_t> at(const Index& index, const Point& point) {
  if (!index.constant().is_constant()) return std::nullopt;
  std::int64_t sum = index.constant().constant();
  for (const IndexTerm& term : index.terms()) {
    const IndexAtom& atom = *term.atom;
    std::int64_t value = 0;
    if (!term.coefficient.is_constant() || atom.kind == IndexAtom::Kind::value) return std::nullopt;
    if (atom.kind == IndexAtom::Kind::axis) {
      value = point[static_cast<std::size_t>(atom.id)];
    } else {
      const auto operand = at(atom.operand, point);
      if (!operand || !atom.divisor.is_constant()) return std::nullopt;
      const std::int64_t divisor = atom.divisor.constant(), rest = ((*operand % divisor) + divisor) % divisor;
      value = atom.kind == IndexAtom::Kind::mod ? rest : (*operand - rest) / divisor;
    }
    sum += term.coefficient.constant() * value;
  }
  return sum;
}

// The offsets in bytes of `access` at points of the domain in row-major order, `step` of them from one to the next.
std::optional<std::vector<std::int64_t>> offsets(const Kernel& kernel, const Access& access, std::int64_t first,
                                                 std::int64_t step, std::int64_t count) {
  std::vector<std::int64_t> found;
  Point point(kernel.axes.size());
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = first + i * step;
    for (std::size_t axis = point.size(); axis-- > 0;) {
      const Dim& extent = kernel.axes[axis].extent;
      if (!extent.is_constant() || extent.is(0)) return std::nullopt;
      point[axis] = rest % extent.constant();
      rest /= extent.constant();
    }
    const auto offset = at(access.offset, point);
    if (!offset) return std::nullopt;
    found.push_back(*offset * element_bytes(kernel, access));
  }
  return found;
}

// The pieces of `piece` bytes that hold something of `width` bytes from each of `begins` on.
std::vector<std::int64_t> pieces(const std::vector<std::int64_t>& begins, std::int64_t width, std::int64_t piece) {
  std::vector<std::int64_t> found;
  for (const std::int64_t begin : begins)
    for (std::int64_t part = begin & -piece; part < begin + width; part += piece) found.push_back(part);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

std::optional<Lines> lines_of_warp(const Kernel& kernel, int vector, bool flat) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  Lines lines;
  std::vector<std::int64_t> all;
  for (const Instr& instr : kernel.body) {
    if (instr.kind != InstrKind::load) continue;
    const bool one = !flat && !instr.access.offset.depends_on(inner);  // element, for all points of a vector
    const int width = one    ? vector
                      : flat ? flat_width(instr.access, vector, kernel)
                             : vector_width(instr.access, inner, vector, kernel);
    const std::int64_t bytes = (one ? 1 : std::max(1, width)) * element_bytes(kernel, instr.access);
    for (int first = 0; first < vector; first += std::max(1, width)) {
      const auto begins = offsets(kernel, instr.access, first, vector, kLanes);
      if (!begins) return std::nullopt;
      const std::vector<std::int64_t> touched = pieces(*begins, bytes, kLine);
      lines.touched += std::ssize(touched);
      for (const std::int64_t line : touched)
        all.push_back(line + (std::int64_t{instr.access.operand} << kOperandBits));
    }
  }
  lines.distinct = std::ssize(pieces(all, 1, kLine));
  return lines;
}

std::optional<double> share_of_sectors(const Kernel& kernel, const Access& access, std::int64_t points) {
  const auto begins = offsets(kernel, access, 0, 1, points);
  if (!begins) return std::nullopt;
  const std::int64_t size = element_bytes(kernel, access);
  return static_cast<double>(points * size) / static_cast<double>(kSector * std::ssize(pieces(*begins, size, kSector)));
}

}  // namespace tenon::codegen
