// See stretches.h.
#include "codegen/emit/cuda/stretches.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

std::string stretch_type(const Kernel& kernel, const Overlap& overlap) {
  return pack_type(stored_dtype(kernel, overlap.stretch),
                   overlap.before < 0 ? overlap.elements : overlap.vectors() * overlap.aligned);
}

// What is computed to know where they begin: where rows are gathered.
std::vector<InstrId> places_of(const Kernel& kernel, const std::vector<Overlap>& overlaps) {
  std::vector<InstrId> values;
  const auto add = [&](const Index& index) {
    for (const int id : index.values()) values.push_back(id);
  };
  for (const Overlap& overlap : overlaps) {
    add(overlap.stretch.offset);
    for (const Guard& guard : overlap.stretch.guards) add(guard.index);
  }
  return needed(kernel, values);
}

// Each of `overlaps` as it is loaded, given to `write` with its number.
template <typename Write>
void write_stretches(Writer& out, const Kernel& kernel, const std::vector<Overlap>& overlaps, const Write& write) {
  const Names names = names_of(kernel);
  for (std::size_t i = 0; i < overlaps.size(); ++i) {
    const Overlap& overlap = overlaps[i];
    const Access& stretch = overlap.stretch;
    const Dim count = element_count(operand_at(kernel, stretch).shape);
    const bool whole = power_of_two_divisor(count, overlap.aligned, kernel.symbols) == overlap.aligned;
    const std::string guard = guard_text(stretch.guards, names), base = operand_name(kernel, stretch.operand);
    const auto load = [&](const std::string& at) {
      return fmt::format("load_stretch<{}, {}, {}, {}>({}, {}, {}, {})", overlap.vectors() * overlap.aligned,
                         overlap.aligned, whole, overlap.certain, base, at, dim_text(count, names),
                         guard.empty() ? "true" : guard);
    };
    if (overlap.before >= 0) {
      write(i, load(index_text(stretch.offset - Index(overlap.before), names)));
      continue;
    }
    out.line(fmt::format("const {} from_w{} = {};", index_type(kernel), i, index_text(stretch.offset, names)));
    out.line(fmt::format("const int past_w{0} = (int)(from_w{0} & {1});", i, overlap.aligned - 1));
    write(i, fmt::format("shifted<{}, {}>({}, past_w{})", overlap.elements, overlap.aligned,
                         load(fmt::format("from_w{0} - past_w{0}", i)), i));
  }
}

}  // namespace

void define_stretches(Writer& out, const Kernel& kernel, const std::vector<Overlap>& overlaps) {
  if (places_of(kernel, overlaps).empty()) {
    write_stretches(out, kernel, overlaps, [&](std::size_t i, const std::string& value) {
      out.line(fmt::format("const {} w{} = {};", stretch_type(kernel, overlaps[i]), i, value));
    });
    return;
  }
  for (std::size_t i = 0; i < overlaps.size(); ++i)
    out.line(fmt::format("{} w{};", stretch_type(kernel, overlaps[i]), i));
  out.open("{");
  define(out, kernel, places_of(kernel, overlaps), names_of(kernel));
  write_stretches(out, kernel, overlaps,
                  [&](std::size_t i, const std::string& value) { out.line(fmt::format("w{} = {};", i, value)); });
  out.close();
}

// A stretch that is other rows' too is loaded wherever it lies in the operand: what a guard keeps from a row is not
// used there.
std::vector<StretchOfRow> define_stretches_of_rows(Writer& out, const Kernel& kernel,
                                                   const std::vector<Overlap>& overlaps, int axis, int rows,
                                                   const std::function<void()>& open_row) {
  const std::vector<StretchOfRow> places = stretches_of_rows(overlaps, axis);
  std::vector<std::int64_t> loaded(overlaps.size(), 0);  // rows of each
  std::vector<Overlap> read = overlaps;
  for (std::size_t i = 0; i < overlaps.size(); ++i) {
    const std::size_t of = places[i].of;
    loaded[of] = std::max(loaded[of], rows + places[i].row);
    if (of == i) continue;
    const bool guarded = !overlaps[i].stretch.guards.empty() || !overlaps[of].stretch.guards.empty();
    read[of].certain = guarded ? 0 : std::min(read[of].certain, overlaps[i].certain);
    read[of].stretch.guards.clear();
  }
  for (std::size_t i = 0; i < overlaps.size(); ++i)
    if (loaded[i] > 0) out.line(fmt::format("{} w{}[{}];", stretch_type(kernel, overlaps[i]), i, loaded[i]));
  for (const std::int64_t count : std::set<std::int64_t>(loaded.begin(), loaded.end())) {
    if (count == 0) continue;
    out.unrolled("u", static_cast<int>(count));
    open_row();
    std::vector<Overlap> together;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < overlaps.size(); ++i)
      if (loaded[i] == count) {
        together.push_back(read[i]);
        numbers.push_back(i);
      }
    define(out, kernel, places_of(kernel, together), names_of(kernel));
    write_stretches(out, kernel, together, [&](std::size_t i, const std::string& value) {
      out.line(fmt::format("w{}[u] = {};", numbers[i], value));
    });
    out.close();
  }
  return places;
}

}  // namespace tenon::codegen::cuda
