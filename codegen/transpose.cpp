// See transpose.h.
#include "codegen/transpose.h"

#include <algorithm>

#include "codegen/vectorize.h"

namespace tenon::codegen {
namespace {

std::int64_t element_bytes(const Kernel& kernel, InstrId load) {
  return size_of(kernel.operands[static_cast<std::size_t>(kernel.instr(load).access.operand)].dtype);
}

bool is_transposed(const Kernel& kernel, const Instr& instr, int axis) {
  if (instr.kind != InstrKind::load) return false;
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const auto along = instr.access.offset.coefficient(axis), across = instr.access.offset.coefficient(inner);
  if (!along || !along->is(1) || !across || across->is(0) || across->is(1)) return false;
  return instr.access.offset.values().empty() &&
         std::all_of(instr.access.guards.begin(), instr.access.guards.end(),
                     [](const Guard& guard) { return guard.index.values().empty(); });
}

}  // namespace

std::vector<InstrId> transposed_loads(const Kernel& kernel, int axis) {
  std::vector<InstrId> loads;
  for (std::size_t i = 0; i < kernel.body.size(); ++i)
    if (is_transposed(kernel, kernel.body[i], axis)) loads.push_back(static_cast<InstrId>(i));
  return loads;
}

int transposed_axis(const Kernel& kernel) {
  int best = -1;
  std::int64_t most = 0;
  for (int axis = 0; axis + 1 < static_cast<int>(kernel.axes.size()); ++axis) {
    std::int64_t bytes = 0;
    for (InstrId load : transposed_loads(kernel, axis)) bytes += element_bytes(kernel, load);
    if (bytes > most) most = bytes, best = axis;
  }
  return best;
}

int transposed_vector(const Kernel& kernel, InstrId load, int axis, int limit) {
  const Dim& extent = kernel.axes[static_cast<std::size_t>(axis)].extent;
  const auto widest = std::min<std::int64_t>(limit, 16 / element_bytes(kernel, load));
  int vector = power_of_two_divisor(extent, static_cast<int>(widest), kernel.symbols);
  while (vector > 1 && vector_width(kernel.instr(load).access, axis, vector, kernel) != vector) vector /= 2;
  return vector;
}

std::int64_t transpose_bytes(const Kernel& kernel, const std::vector<InstrId>& loads, int rows, int columns) {
  std::int64_t bytes = 0;
  for (InstrId load : loads) {
    const std::int64_t size = element_bytes(kernel, load), word = std::max<std::int64_t>(1, 4 / size);
    const std::int64_t elements = rows * (columns + word) + (rows + 31) / 32 * 4 * word;
    bytes += (elements * size + 15) / 16 * 16;
  }
  return bytes;
}

}  // namespace tenon::codegen
