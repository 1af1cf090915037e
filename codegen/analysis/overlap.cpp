// See overlap.h.
#include "codegen/analysis/overlap.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <tuple>

#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kVectorBytes = 16, kLeastVectorBytes = 8;
constexpr std::int64_t kMostElements = 64;  // of a stretch: they are registers
constexpr std::int64_t kMostStep = 64;

// Whether something that is loaded or computed along the axis decides it.
bool depends_on_values(const Index& index, int axis, const Kernel& kernel) {
  const std::vector<int> values = index.values();
  return std::any_of(values.begin(), values.end(), [&](int id) { return (kernel.instr(id).depends >> axis & 1) != 0; });
}

bool varies(const Index& index, int axis, const Kernel& kernel) {
  return index.depends_on(axis) || depends_on_values(index, axis, kernel);
}

std::vector<Guard> guards_of_all_points(const Access& access, int axis, const Kernel& kernel) {
  std::vector<Guard> guards = access.guards;
  std::erase_if(guards, [&](const Guard& guard) { return varies(guard.index, axis, kernel); });
  return guards;
}

// Elements from one point to the next; 0 where a stretch is nothing for the load.
std::int64_t step_of(const Instr& instr, int axis, const Kernel& kernel) {
  if (instr.kind != InstrKind::load || element_bytes(kernel, instr.access) > kLeastVectorBytes) return 0;
  const auto placed = [&](const Index& index) { return !depends_on_values(index, axis, kernel); };
  const std::vector<Guard>& guards = instr.access.guards;
  if (!placed(instr.access.offset) ||
      !std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) { return placed(guard.index); }))
    return 0;
  const auto step = instr.access.offset.coefficient(axis);
  if (!step || !step->is_constant() || step->constant() < 1 || step->constant() > kMostStep) return 0;
  return step->constant();
}

// Loads that differ in a constant distance.
struct Family {
  Access access;  // of its first
  std::int64_t step = 0;
  std::vector<Overlap::Load> loads;
};

bool same(const std::vector<Guard>& a, const std::vector<Guard>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Guard& x, const Guard& y) { return x.index == y.index && x.bound == y.bound; });
}

std::vector<Family> families_of(const Kernel& kernel, int axis) {
  std::vector<Family> families;
  for (InstrId id = 0; id < static_cast<InstrId>(kernel.body.size()); ++id) {
    const Instr& instr = kernel.instr(id);
    const std::int64_t step = step_of(instr, axis, kernel);
    if (step == 0) continue;
    const std::vector<Guard> guards = guards_of_all_points(instr.access, axis, kernel);
    std::int64_t distance = 0;
    const auto joins = [&](const Family& family) {
      if (family.access.operand != instr.access.operand || !same(family.access.guards, guards)) return false;
      const Index between = instr.access.offset - family.access.offset;
      if (!between.is_constant() || !between.constant().is_constant()) return false;
      distance = between.constant().constant();
      return true;
    };
    const auto found = std::find_if(families.begin(), families.end(), joins);
    if (found != families.end())
      found->loads.push_back({id, distance});
    else
      families.push_back({{instr.access.operand, instr.access.offset, guards}, step, {{id, 0}}});
  }
  return families;
}

// In the widest vectors of which it is known where the stretch begins, else in the widest that there are.
void align(Overlap& overlap, const VectorPoints& points, const Kernel& kernel) {
  if (points.apart) {
    overlap.before = 0;
    return;
  }
  const std::int64_t bytes = element_bytes(kernel, overlap.stretch);
  const int widest = static_cast<int>(kVectorBytes / bytes);
  const int multiple = points.flat ? 1 : points.count;
  for (int aligned = widest; aligned * bytes >= kLeastVectorBytes && aligned > 1; aligned /= 2)
    for (int before = 0; before < aligned; ++before)
      if (divisor_of(overlap.stretch.offset - Index(before), points.axis, multiple, kernel) % aligned == 0) {
        overlap.aligned = aligned;
        overlap.before = before;
        return;
      }
  overlap.aligned = widest;
}

// Behind the boundary ahead of a stretch that lies in the operand whole vectors lie in it up to the last that are
// needed, and that one as well where the operand ends with a vector. Which the last is depends on where the stretch
// begins.
int certain_elements(const Overlap& overlap, const Kernel& kernel) {
  const bool guarded = std::any_of(overlap.loads.begin(), overlap.loads.end(), [&](const Overlap::Load& load) {
    return !kernel.instr(load.id).access.guards.empty();
  });
  if (guarded) return 0;
  const Operand& operand = kernel.operands[static_cast<std::size_t>(overlap.stretch.operand)];
  const bool whole =
      power_of_two_divisor(element_count(operand.shape), overlap.aligned, kernel.symbols) == overlap.aligned;
  const int needed = std::max(0, overlap.before) + overlap.elements;
  return (needed + (whole ? overlap.aligned - 1 : 0)) / overlap.aligned * overlap.aligned;
}

// Accesses that the loads take alone.
int accesses_apart(const Overlap& overlap, const VectorPoints& points, const Kernel& kernel) {
  int accesses = 0;
  for (const Overlap::Load& load : overlap.loads) {
    const Access& access = kernel.instr(load.id).access;
    const int width = points.flat ? flat_width(access, points.count, kernel)
                                  : vector_width(access, points.axis, points.count, kernel);
    accesses += points.count / std::max(1, width);
  }
  return accesses;
}

// A thread that gets less than a vector of its own reads what its neighbours read: single elements are coalesced then.
// One load of consecutive elements, which may begin anywhere, is no overlap; but where vectors cross the ends of rows,
// each element of a gathered row would find its row anew.
bool pays(const Overlap& overlap, const VectorPoints& points, const Kernel& kernel) {
  if (points.apart) return true;
  const bool gathered = points.flat && !overlap.stretch.offset.values().empty();
  if (overlap.loads.size() < 2 && overlap.step == 1 && !gathered) return false;
  const std::int64_t own = std::int64_t{points.count} * overlap.step * element_bytes(kernel, overlap.stretch);
  return own >= kLeastVectorBytes && overlap.vectors() < accesses_apart(overlap, points, kernel);
}

// The part of a family from its load `from` on that one stretch has, and the number of the load behind it.
std::pair<Overlap, std::size_t> stretch_from(const Family& family, std::size_t from, const VectorPoints& points,
                                             const Kernel& kernel) {
  const std::int64_t span = family.step * (points.count - 1) + 1;  // of one load
  const std::int64_t vector = kVectorBytes / element_bytes(kernel, family.access);
  const std::int64_t begin = family.loads[from].first;
  Overlap overlap;
  overlap.stretch = family.access;
  overlap.step = static_cast<int>(family.step);
  std::size_t to = from;
  std::int64_t end = begin;
  for (; to < family.loads.size(); ++to) {
    const std::int64_t first = family.loads[to].first;
    const bool near = first <= end + vector && first + span - begin <= kMostElements;
    if (to > from && !near) break;
    end = first + span;
    overlap.loads.push_back({family.loads[to].id, first - begin});
  }
  overlap.stretch.offset = family.access.offset + Index(begin);
  overlap.elements = static_cast<int>(end - begin);
  return {overlap, to};
}

}  // namespace

std::vector<Overlap> overlaps_of(const Kernel& kernel, const VectorPoints& points) {
  std::vector<Overlap> overlaps;
  for (Family& family : families_of(kernel, points.axis)) {
    std::stable_sort(family.loads.begin(), family.loads.end(),
                     [](const Overlap::Load& a, const Overlap::Load& b) { return a.first < b.first; });
    for (std::size_t from = 0; from < family.loads.size();) {
      auto [overlap, to] = stretch_from(family, from, points, kernel);
      align(overlap, points, kernel);
      overlap.certain = certain_elements(overlap, kernel);
      if (overlap.elements <= kMostElements && pays(overlap, points, kernel)) overlaps.push_back(std::move(overlap));
      from = to;
    }
  }
  return overlaps;
}

double loads_left(const Kernel& kernel, int axis, int rows) {
  std::set<std::tuple<int, std::string, Dim>> places;  // operand, what varies, and what is added to that
  int loads = 0;
  for (const Instr& instr : kernel.body) {
    if (instr.kind != InstrKind::load) continue;
    const Index& offset = instr.access.offset;
    const std::string moving = (offset - Index(offset.constant())).str();
    const auto step = depends_on_values(offset, axis, kernel) ? std::nullopt : offset.coefficient(axis);
    for (int row = 0; row < rows; ++row, ++loads)
      places.emplace(instr.access.operand, step ? moving : moving + " of " + std::to_string(row),
                     offset.constant() + step.value_or(Dim(0)) * Dim(row));
  }
  return loads == 0 ? 1 : static_cast<double>(places.size()) / loads;
}

std::vector<StretchOfRow> stretches_of_rows(const std::vector<Overlap>& overlaps, int axis) {
  constexpr std::int64_t kMostRows = 8;
  // Rows from a to b.
  const auto rows_between = [&](const Overlap& a, const Overlap& b) -> std::optional<std::int64_t> {
    const Index distance = b.stretch.offset - a.stretch.offset;
    const auto step = a.stretch.offset.coefficient(axis);
    if (a.stretch.operand != b.stretch.operand || a.step != b.step || a.elements != b.elements ||
        a.aligned != b.aligned || a.before != b.before || !a.stretch.offset.values().empty() ||
        !distance.is_constant() || !distance.constant().is_constant() || !step || !step->is_constant() || step->is(0) ||
        distance.constant().constant() % step->constant() != 0)
      return std::nullopt;
    const std::int64_t rows = distance.constant().constant() / step->constant();
    return std::abs(rows) <= kMostRows ? std::optional(rows) : std::nullopt;
  };
  const auto lies_behind_none = [&](const Overlap& overlap) {
    return std::none_of(overlaps.begin(), overlaps.end(),
                        [&](const Overlap& other) { return rows_between(other, overlap).value_or(0) > 0; });
  };
  std::vector<StretchOfRow> rows(overlaps.size());
  for (std::size_t i = 0; i < overlaps.size(); ++i) rows[i].of = i;
  for (std::size_t first = 0; first < overlaps.size(); ++first) {
    if (!lies_behind_none(overlaps[first])) continue;
    for (std::size_t i = 0; i < overlaps.size(); ++i)
      if (const auto row = rows_between(overlaps[first], overlaps[i]); row && *row > rows[i].row)
        rows[i] = {first, *row};
  }
  return rows;
}

}  // namespace tenon::codegen
