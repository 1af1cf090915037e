// See flat_tile.h. Where the tile has gaps is found by counting the conflicts of a warp.
#include "codegen/analysis/flat_tile.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

using Extents = std::vector<int>;

constexpr std::int64_t kSector = 32;          // bytes that memory gives at once
constexpr std::int64_t kMostBoxed = 1 << 15;  // points
constexpr std::size_t kMostLoads = 4;
constexpr std::int64_t kUncut = 4;       // times what is wanted of an axis: less stays whole where parts cut vectors
constexpr std::int64_t kNeighbours = 4;  // elements apart, in rows of so many points: loads share their lines
constexpr std::int64_t kLongRow = 64;

std::int64_t extent_at(const Kernel& kernel, int axis) {
  return kernel.axes[static_cast<std::size_t>(axis)].extent.constant();
}
int& at(Extents& extents, int axis) { return extents[static_cast<std::size_t>(axis)]; }
int at(const Extents& extents, int axis) { return extents[static_cast<std::size_t>(axis)]; }

std::int64_t step(const Access& access, int axis) { return access.offset.coefficient(axis)->constant(); }

// An offset of constants times axes, at points that no value decides.
bool is_plain(const Kernel& kernel, const Access& access) {
  if (!access.offset.values().empty() || !access.offset.constant().is_constant()) return false;
  for (const Guard& guard : access.guards)
    if (!guard.index.values().empty()) return false;
  for (int axis = 0; axis < static_cast<int>(kernel.axes.size()); ++axis) {
    const auto along = access.offset.coefficient(axis);
    if (!along || !along->is_constant()) return false;
  }
  return true;
}

// The innermost axis first.
std::vector<int> order_of_domain(const Kernel& kernel) {
  std::vector<int> order(kernel.axes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

std::vector<int> order_of(const Kernel& kernel, const Access& access) {
  std::vector<int> order = order_of_domain(kernel);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(step(access, a)) < std::abs(step(access, b)); });
  return order;
}

// Whether neighbours of the domain share few of the sectors that hold them.
bool lies_across(const Kernel& kernel, const Access& access) {
  if (!is_plain(kernel, access)) return false;
  const int axes = static_cast<int>(kernel.axes.size()), inner = axes - 1;
  for (int axis = 0; axis < axes; ++axis)
    if (step(access, axis) == 0) return false;
  const std::vector<int> order = order_of(kernel, access);
  if (order == order_of_domain(kernel)) return false;
  const std::int64_t run = extent_at(kernel, inner) * std::abs(step(access, inner)) * element_bytes(kernel, access);
  if (std::abs(step(access, inner)) <= kNeighbours && step(access, inner) != 1 && extent_at(kernel, inner) >= kLongRow)
    return false;
  return order[0] != inner || run < kSector;
}

bool stores_lie_along(const Kernel& kernel) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  return std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
    return is_plain(kernel, store.access) && store.access.guards.empty() && step(store.access, inner) == 1;
  });
}

// What the box has of the axes that follow each other without a gap, in an order: `last` is the only one of them that
// it may have in part.
struct Run {
  std::int64_t elements = 1;
  std::size_t axes = 0;
  int last = -1;
};

// `steps`: of memory; null: of the domain.
Run run_of(const Kernel& kernel, const Extents& extents, const std::vector<int>& order, const Access* steps) {
  Run run;
  for (const int axis : order) {
    const bool follows =
        steps == nullptr || run.axes == 0 || step(*steps, axis) == step(*steps, run.last) * extent_at(kernel, run.last);
    if (!follows || (at(extents, axis) == 1 && extent_at(kernel, axis) > 1)) break;
    run.elements *= at(extents, axis);
    run.last = axis;
    ++run.axes;
    if (at(extents, axis) < extent_at(kernel, axis)) break;
  }
  return run;
}

// Whether vectors from multiples of `vector` of a run on are inside or outside the domain as a whole.
bool fill_run(const Kernel& kernel, const Extents& extents, const Run& run, int vector) {
  if (run.last < 0) return vector == 1;
  const std::int64_t whole = run.elements / at(extents, run.last) * extent_at(kernel, run.last);
  return run.elements % vector == 0 && whole % vector == 0;
}

int vector_of(const Kernel& kernel, const Extents& extents, const FlatLoad& load) {
  const Access& access = kernel.instr(load.id).access;
  int vector = static_cast<int>(16 / element_bytes(kernel, access));
  const int first = load.order[0];
  if (step(access, first) != 1) return 1;
  if (!access.guards.empty()) {
    vector = transposed_vector(kernel, access, first, vector);
    while (at(extents, first) % vector != 0) vector /= 2;
    return vector;
  }
  const Run run = run_of(kernel, extents, load.order, &access);
  const auto fits = [&] {
    if (!fill_run(kernel, extents, run, vector) || access.offset.constant().constant() % vector != 0) return false;
    return std::all_of(load.order.begin() + static_cast<std::ptrdiff_t>(run.axes), load.order.end(),
                       [&](int axis) { return step(access, axis) % vector == 0; });
  };
  while (vector > 1 && !fits()) vector /= 2;
  return vector;
}

// Widens the box to `target` elements of an order, in equal parts of an axis that has more: whole sectors of `sector`
// elements, as far as the axis has such parts.
void widen(const Kernel& kernel, Extents& extents, Extents& units, const std::vector<int>& order, std::int64_t target,
           std::int64_t sector) {
  std::int64_t product = 1;
  for (const int axis : order) {
    if (product >= target) return;
    const std::int64_t extent = extent_at(kernel, axis), wanted = (target + product - 1) / product;
    std::int64_t unit = sector / std::gcd(sector, product);
    while (extent % unit != 0) unit /= 2;
    const bool cuts_vectors = unit * product % (sector / 2) != 0;
    const std::int64_t parts =
        cuts_vectors && extent < kUncut * wanted ? 1 : std::max<std::int64_t>(1, extent / wanted);
    const std::int64_t part = (extent + parts - 1) / parts;
    at(extents, axis) = std::max(at(extents, axis), static_cast<int>(std::min<std::int64_t>(part, kMostBoxed)));
    at(units, axis) = std::max(at(units, axis), static_cast<int>(unit));
    if (part < extent) return;
    product *= extent;
  }
}

Extents box_of(const Kernel& kernel, const std::vector<FlatLoad>& loads, const MapTile& tile) {
  Extents extents(kernel.axes.size(), 1), units(kernel.axes.size(), 1);
  std::int64_t stored = kSector;
  for (const Store& store : kernel.stores) stored = std::min(stored, kSector / element_bytes(kernel, store.access));
  widen(kernel, extents, units, order_of_domain(kernel), tile.columns, stored);
  for (const FlatLoad& load : loads)
    widen(kernel, extents, units, load.order, tile.rows, kSector / element_bytes(kernel, kernel.instr(load.id).access));
  for (int axis = 0; axis < static_cast<int>(extents.size()); ++axis) {
    const int unit = at(units, axis), units_of = (at(extents, axis) + unit - 1) / unit;
    if (at(extents, axis) > 1)
      at(extents, axis) = static_cast<int>(std::min<std::int64_t>(extent_at(kernel, axis), units_of * unit));
  }
  return extents;
}

std::int64_t points_of(const Extents& extents) {
  std::int64_t points = 1;
  for (const int extent : extents) points = std::min<std::int64_t>(points * extent, 2 * kMostBoxed);
  return points;
}

// Where the box's point `number`, counted in `order`, lies in shared memory.
int place_of(const Extents& extents, const std::vector<int>& order, const std::vector<int>& strides, int number) {
  int place = 0;
  for (const int axis : order) {
    place += number % at(extents, axis) * at(strides, axis);
    number /= at(extents, axis);
  }
  return place;
}

// Turns that shared memory takes for accesses of `bytes` at the places of a warp's lanes.
int turns(const std::vector<int>& places, int bytes, int size) {
  const int words_of_lane = std::max(1, bytes / 4);
  const std::size_t together = static_cast<std::size_t>(32 / words_of_lane);
  int sum = 0;
  for (std::size_t first = 0; first < places.size(); first += together) {
    std::array<int, 32> words = {}, in_bank = {};
    int count = 0, most = 1;
    for (std::size_t lane = first; lane < std::min(places.size(), first + together); ++lane)
      for (int word = places[lane] * size / 4, end = word + words_of_lane; word < end; ++word) {
        if (std::find(words.begin(), words.begin() + count, word) != words.begin() + count) continue;
        words[static_cast<std::size_t>(count++)] = word;
        most = std::max(most, ++in_bank[static_cast<std::size_t>(word % 32)]);
      }
    sum += most;
  }
  return sum;
}

// Turns for an element, of which threads move `vector` in pieces.
double turns_of_element(const FlatTile& tile, const FlatLoad& load, const std::vector<int>& order, int vector,
                        int piece, int size) {
  int sum = 0, lanes = 0;
  const int vectors = tile.points / vector;
  for (const int warp : {0, vectors / 64})  // the first, and one in the middle
    for (int j = 0; j < vector; j += piece) {
      std::vector<int> places;
      for (int lane = 0; lane < 32 && warp * 32 + lane < vectors; ++lane)
        places.push_back(place_of(tile.extents, order, load.strides, (warp * 32 + lane) * vector + j));
      sum += turns(places, piece * size, size);
      if (j == 0) lanes += static_cast<int>(places.size());
    }
  return static_cast<double>(sum) / (std::max(1, lanes) * vector);
}

int power_of_two_in(std::int64_t a, std::int64_t b) {
  const std::int64_t common = std::gcd(a, b);
  return static_cast<int>(common & -common);
}

// Lays the load out with `gap` elements behind each stretch up to `axis`.
void lay_out(const FlatTile& tile, FlatLoad& load, int axis, int gap, int vector, int size) {
  load.strides.assign(tile.extents.size(), 0);
  std::int64_t stride = 1;
  for (int a = static_cast<int>(tile.extents.size()) - 1; a >= 0; --a) {
    if (at(tile.extents, a) > 1) at(load.strides, a) = static_cast<int>(stride);
    stride *= at(tile.extents, a);
    if (a == axis) stride += gap;
  }
  load.elements = stride;
  load.aligned = std::min(16 / size, power_of_two_in(vector, gap));
  load.piece = 1;
  const int inner = static_cast<int>(tile.extents.size()) - 1;
  if (load.order[0] != inner) return;
  std::int64_t common = std::gcd(load.vector, at(tile.extents, inner));
  for (int a = 0; a < inner; ++a) common = std::gcd(common, at(load.strides, a));
  load.piece = std::min(16 / size, power_of_two_in(common, 0));
}

// With the gap that leaves the fewest conflicts: some words or vectors behind whole vectors of points.
void lay_out(const Kernel& kernel, const FlatTile& tile, FlatLoad& load, const std::vector<int>& order, int vector) {
  constexpr double kWorthIt = 0.9;
  const int size = static_cast<int>(element_bytes(kernel, kernel.instr(load.id).access)), word = std::max(1, 4 / size);
  const auto cost = [&](const FlatLoad& laid) {
    return turns_of_element(tile, laid, laid.order, laid.vector, laid.piece, size) +
           turns_of_element(tile, laid, order, vector, laid.aligned, size);
  };
  lay_out(tile, load, -1, 0, vector, size);
  double least = cost(load);
  std::int64_t stretch = 1;
  for (const int axis : order) {
    if (at(tile.extents, axis) == 1) continue;
    stretch *= at(tile.extents, axis);
    if (stretch % vector != 0 || stretch == tile.points) continue;
    for (const int words : {1, 2, 4, 8, 12}) {
      FlatLoad laid = load;
      lay_out(tile, laid, axis, words * word, vector, size);
      if (const double now = cost(laid); now < kWorthIt * least) least = now, load = laid;
    }
  }
}

}  // namespace

std::vector<FlatLoad> loads_across(const Kernel& kernel) {
  std::vector<FlatLoad> loads;
  const bool constant = std::all_of(kernel.axes.begin(), kernel.axes.end(), [](const Axis& axis) {
    return axis.extent.is_constant() && axis.extent.constant() > 0;
  });
  const bool draws = std::any_of(kernel.body.begin(), kernel.body.end(),
                                 [](const Instr& instr) { return instr.kind == InstrKind::random; });
  if (kernel.kernel_class != ir::KernelClass::map || kernel.axes.size() < 2 || !constant || draws ||
      !stores_lie_along(kernel))
    return loads;
  for (std::size_t i = 0; i < kernel.body.size(); ++i)
    if (kernel.body[i].kind == InstrKind::load && lies_across(kernel, kernel.body[i].access))
      loads.push_back({.id = static_cast<InstrId>(i), .order = order_of(kernel, kernel.body[i].access)});
  if (loads.size() > kMostLoads) loads.clear();
  return loads;
}

std::optional<FlatTile> flat_tile_of(const Kernel& kernel, const MapSchedule& schedule) {
  FlatTile tile;
  tile.loads = loads_across(kernel);
  if (tile.loads.empty() || !schedule.tile) return std::nullopt;
  tile.extents = box_of(kernel, tile.loads, *schedule.tile);
  const std::int64_t points = points_of(tile.extents);
  if (points > kMostBoxed) return std::nullopt;
  tile.points = static_cast<int>(points);
  if (flat_tile_vector(kernel, *schedule.tile, schedule.vector) != schedule.vector) return std::nullopt;
  std::vector<int> order;
  for (const int axis : order_of_domain(kernel))
    if (at(tile.extents, axis) > 1) order.push_back(axis);
  for (FlatLoad& load : tile.loads) {
    load.vector = vector_of(kernel, tile.extents, load);
    std::erase_if(load.order, [&](int axis) { return at(tile.extents, axis) == 1; });
    if (load.order.empty()) return std::nullopt;
    lay_out(kernel, tile, load, order, schedule.vector);
  }
  return tile;
}

int flat_tile_vector(const Kernel& kernel, const MapTile& tile, int limit) {
  const Extents extents = box_of(kernel, loads_across(kernel), tile);
  const Run run = run_of(kernel, extents, order_of_domain(kernel), nullptr);
  int vector = limit;
  while (vector > 1 && !fill_run(kernel, extents, run, vector)) vector /= 2;
  return vector;
}

std::int64_t shared_bytes(const Kernel& kernel, const FlatTile& tile) {
  std::int64_t bytes = 0;
  for (const FlatLoad& load : tile.loads)
    bytes += (load.elements * element_bytes(kernel, kernel.instr(load.id).access) + 15) / 16 * 16;
  return bytes;
}

bool is_cut(const Kernel& kernel, const FlatTile& tile, int axis) {
  return at(tile.extents, axis) > 1 && at(tile.extents, axis) < extent_at(kernel, axis);
}

bool is_ragged(const Kernel& kernel, const FlatTile& tile, int axis) {
  return is_cut(kernel, tile, axis) && extent_at(kernel, axis) % at(tile.extents, axis) != 0;
}

}  // namespace tenon::codegen
