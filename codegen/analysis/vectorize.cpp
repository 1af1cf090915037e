// See vectorize.h. Each tensor has a width of its own.
#include "codegen/analysis/vectorize.h"

#include <algorithm>
#include <numeric>

namespace tenon::codegen {
namespace {

// Greatest common divisor where 0 is divisible by everything.
std::int64_t common(std::int64_t a, std::int64_t b) { return std::gcd(a, b); }

std::int64_t divisor_of(const Dim& dim, const Symbols& symbols) {
  return dim.is(0) ? 0 : dim.is_constant() ? std::abs(dim.constant()) : dim.bounds(symbols).divisor;
}

std::int64_t atom_divisor(const IndexAtom& atom, int axis, int vector, const Kernel& kernel) {
  switch (atom.kind) {
    case IndexAtom::Kind::axis: return atom.id == axis ? vector : 1;
    case IndexAtom::Kind::value: return 1;
    case IndexAtom::Kind::mod:
      return common(codegen::divisor_of(atom.operand, axis, vector, kernel), divisor_of(atom.divisor, kernel.symbols));
    case IndexAtom::Kind::floor_div: {
      if (!atom.divisor.is_constant()) return 1;
      const std::int64_t operand = codegen::divisor_of(atom.operand, axis, vector, kernel);
      const std::int64_t by = atom.divisor.constant();
      return operand % by == 0 ? std::max<std::int64_t>(1, operand / by) : 1;
    }
  }
  return 1;
}

std::optional<std::int64_t> atom_step(const IndexAtom& atom, int axis, int vector, const Kernel& kernel) {
  switch (atom.kind) {
    case IndexAtom::Kind::axis: return atom.id == axis ? 1 : 0;
    case IndexAtom::Kind::value:
      return (kernel.instr(atom.id).depends >> axis & 1) != 0 ? std::nullopt : std::optional<std::int64_t>(0);
    case IndexAtom::Kind::mod:
    case IndexAtom::Kind::floor_div: {
      const auto inner = step_along(atom.operand, axis, vector, kernel);
      if (inner == 0) return 0;
      // A step of one that starts at a multiple of `vector` stays within one period of a multiple of `vector`.
      const bool fits = inner == 1 && divisor_of(atom.divisor, kernel.symbols) % vector == 0 &&
                        codegen::divisor_of(atom.operand, axis, vector, kernel) % vector == 0;
      if (!fits) return std::nullopt;
      return atom.kind == IndexAtom::Kind::mod ? 1 : 0;
    }
  }
  return std::nullopt;
}

// How far `index` is from the point's row-major number in the domain, when that is the same everywhere.
std::optional<Dim> flat_distance(const Index& index, const Kernel& kernel) {
  Index number(0);
  Dim stride(1);
  for (std::size_t axis = kernel.axes.size(); axis-- > 0;) {
    number = number + Index::axis(static_cast<int>(axis)) * stride;
    stride = stride * kernel.axes[axis].extent;
  }
  const Index distance = index - number;
  return distance.is_constant() ? std::optional<Dim>(distance.constant()) : std::nullopt;
}

int width_for(std::int64_t aligned, int vector, const Access& access, const Kernel& kernel) {
  const auto bytes = element_bytes(kernel, access);
  int width = static_cast<int>(std::min<std::int64_t>(vector, 16 / bytes));
  while (width > 1 && aligned % width != 0) width /= 2;
  return width;
}

// c where index(axis + j) - index(axis) is j / c at multiples of `vector` of `axis`: 1 where it moves as the axis does.
std::optional<std::int64_t> points_a_step(const Index& index, int axis, int vector, const Kernel& kernel) {
  std::optional<std::int64_t> points;
  for (const IndexTerm& term : index.terms()) {
    const IndexAtom& atom = *term.atom;
    if (atom_step(atom, axis, vector, kernel) == 0) continue;
    const bool divided = atom.kind == IndexAtom::Kind::floor_div && atom.divisor.is_constant() &&
                         vector % atom.divisor.constant() == 0 && step_along(atom.operand, axis, vector, kernel) == 1 &&
                         divisor_of(atom.operand, axis, vector, kernel) % vector == 0;
    if (points || !divided || !term.coefficient.is(1)) return std::nullopt;
    points = atom.divisor.constant();
  }
  return points;
}

// The value of `index` at point j of a vector where it follows from j alone: a constant, or one plus (axis + …) mod c.
std::optional<std::int64_t> value_at(const Index& index, int j, int axis, int vector, const Kernel& kernel) {
  if (!index.constant().is_constant()) return std::nullopt;
  std::int64_t value = index.constant().constant();
  for (const IndexTerm& term : index.terms()) {
    const IndexAtom& atom = *term.atom;
    const bool periodic = atom.kind == IndexAtom::Kind::mod && atom.divisor.is_constant() &&
                          vector % atom.divisor.constant() == 0 &&
                          step_along(atom.operand, axis, vector, kernel) == 1 &&
                          divisor_of(atom.operand, axis, vector, kernel) % vector == 0;
    if (!periodic || !term.coefficient.is_constant()) return std::nullopt;
    value += term.coefficient.constant() * (j % atom.divisor.constant());
  }
  return value;
}

}  // namespace

std::int64_t element_bytes(const Kernel& kernel, const Access& access) {
  return size_of(kernel.operands[static_cast<std::size_t>(access.operand)].dtype);
}

std::int64_t narrowest_stored(const Kernel& kernel) {
  std::int64_t narrowest = 8;
  for (const Store& store : kernel.stores) narrowest = std::min(narrowest, element_bytes(kernel, store.access));
  return narrowest;
}

std::optional<std::int64_t> step_along(const Index& index, int axis, int vector, const Kernel& kernel) {
  std::int64_t sum = 0;
  for (const IndexTerm& term : index.terms()) {
    const auto step = atom_step(*term.atom, axis, vector, kernel);
    if (!step) return std::nullopt;
    if (*step == 0) continue;
    if (!term.coefficient.is_constant()) return std::nullopt;
    sum += *step * term.coefficient.constant();
  }
  return sum;
}

std::int64_t divisor_of(const Index& index, int axis, int vector, const Kernel& kernel) {
  std::int64_t divisor = divisor_of(index.constant(), kernel.symbols);
  for (const IndexTerm& term : index.terms()) {
    const std::int64_t coefficient = divisor_of(term.coefficient, kernel.symbols);
    const std::int64_t atom = atom_divisor(*term.atom, axis, vector, kernel);
    divisor = common(divisor, coefficient * std::min<std::int64_t>(atom, 1 << 20));
  }
  return divisor;
}

bool rows_share_lines(const Kernel& kernel, const Access& access, int axis) {
  constexpr std::int64_t kLine = 64;
  if (axis < 1) return false;
  const std::optional<Dim> pitch = access.offset.coefficient(axis - 1);
  return !pitch || divisor_of(*pitch, kernel.symbols) * element_bytes(kernel, access) % kLine != 0;
}

int vector_width(const Access& access, int axis, int vector, const Kernel& kernel) {
  if (step_along(access.offset, axis, vector, kernel) != 1) return 0;
  for (const Guard& guard : access.guards) {
    const auto step = step_along(guard.index, axis, vector, kernel);
    const bool whole = vector == 1 || (step == 1 && divisor_of(guard.index, axis, vector, kernel) % vector == 0 &&
                                       divisor_of(guard.bound, kernel.symbols) % vector == 0);
    if (step != 0 && !whole) return 0;
  }
  return width_for(divisor_of(access.offset, axis, vector, kernel), vector, access, kernel);
}

std::optional<std::uint32_t> visible_points(const std::vector<Guard>& guards, int axis, int vector,
                                            const Kernel& kernel) {
  if (vector > 32) return std::nullopt;
  std::uint32_t visible = 0;
  for (int j = 0; j < vector; ++j) {
    bool holds = true;
    for (const Guard& guard : guards) {
      const auto value = value_at(guard.index, j, axis, vector, kernel);
      if (!value || !guard.bound.is_constant()) return std::nullopt;
      holds = holds && *value >= 0 && *value < guard.bound.constant();
    }
    if (holds) visible |= 1u << j;
  }
  return visible;
}

std::optional<SharedElements> shared_elements(const Access& access, int axis, int vector, const Kernel& kernel) {
  const bool one = step_along(access.offset, axis, vector, kernel) == 0;
  const auto points = one ? vector : points_a_step(access.offset, axis, vector, kernel);
  const auto visible = visible_points(access.guards, axis, vector, kernel);
  if (!points || *points < 2 || !visible) return std::nullopt;
  SharedElements shared{.points = static_cast<int>(*points), .visible = *visible};
  for (int first = 0; first < vector; first += shared.points)  // an element that nobody sees may lie outside
    if ((shared.visible >> first & (~0u >> (32 - shared.points))) == 0) return std::nullopt;
  shared.width = width_for(divisor_of(access.offset, axis, vector, kernel), vector / shared.points, access, kernel);
  return shared;
}

int flat_width(const Access& access, int vector, const Kernel& kernel) {
  const auto distance = flat_distance(access.offset, kernel);
  if (!distance || !access.guards.empty()) return 0;
  return width_for(divisor_of(*distance, kernel.symbols), vector, access, kernel);
}

bool counts_up(const Index& index, int axis, bool flat, int vector, int divisor, const Kernel& kernel) {
  if (flat) {
    const auto distance = flat_distance(index, kernel);
    return distance && vector % divisor == 0 && divisor_of(*distance, kernel.symbols) % divisor == 0;
  }
  return step_along(index, axis, vector, kernel) == 1 && divisor_of(index, axis, vector, kernel) % divisor == 0;
}

int peeled_width(const Access& access, const Access& reference, int axis, int vector, const Kernel& kernel) {
  const auto varies = [&](const Index& index) {
    const std::vector<int> values = index.values();
    return index.depends_on(axis) || std::any_of(values.begin(), values.end(),
                                                 [&](int id) { return (kernel.instr(id).depends >> axis & 1) != 0; });
  };
  const auto step = access.offset.coefficient(axis);
  if (!step || !step->is(1) || varies(access.offset - Index::axis(axis))) return 0;
  for (const Guard& guard : access.guards)
    if (varies(guard.index)) return 0;
  const std::int64_t aligned = divisor_of(access.offset - reference.offset, axis, vector, kernel);
  const auto bytes = element_bytes(kernel, access);
  int width = static_cast<int>(std::min<std::int64_t>(vector, 16 / bytes));
  while (width > 1 && aligned % width != 0) width /= 2;
  return width;
}

int power_of_two_divisor(const Dim& extent, int limit, const Symbols& symbols) {
  const std::int64_t divisor = divisor_of(extent, symbols);
  int width = limit;
  while (width > 1 && divisor % width != 0) width /= 2;
  return width;
}

}  // namespace tenon::codegen
