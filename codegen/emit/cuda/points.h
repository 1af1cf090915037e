// A run of instructions at the points of one vector. What does not vary along the vector is written once, contiguous
// operands move as vectors, and a loop over the points has the rest. A Map kernel is one run; in a Reduce kernel each
// sweep is one.
#pragma once

#include <string>
#include <vector>

#include "codegen/analysis/overlap.h"
#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/emit/cuda/vectors.h"
#include "codegen/kernel/kernel.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen::cuda {

/// Values in registers, as vectors <name><id><index>. Loads and rounded values have the form that memory has.
struct Registers {
  std::vector<InstrId> held = {};   ///< their vectors are defined before the run, which does not compute them
  std::vector<InstrId> saved = {};  ///< the run computes them and puts them there
  std::string name = "x";
  std::string index = {};                ///< "[c]"
  std::string before = {}, behind = {};  ///< around a held value that is no load: "(v8 ? 0 : ", " / v7)"
};

/// Vectors in shared memory.
struct SharedVectors {
  std::vector<InstrId> loads = {};  ///< they lie at s<id> + place
  std::string place = {};           ///< "c * 4096"
  std::vector<int> stores = {};     ///< they go to "transpose_tile u<index>" at (row, column) instead of their operand
};

/// The reductions that a run adds its points to.
struct Accumulators {
  std::vector<InstrId> reduces = {};  ///< over the points, into a<id>
  std::vector<InstrId> outer = {};    ///< over the rows, into a<id><registers.index>[j]
  std::string position = {};          ///< of the first point in its row, in row-major order: argmax needs it
  bool in_order = true;               ///< it lies beyond the points that the thread has had
  bool across_rows = false;  ///< each point has a row of its own: accumulators are a<id>[j], the position is one
};

/// A value that is gathered in "pack<type, vector> y".
struct Packed {
  InstrId value = -1;  ///< -1: there is none
  std::string type = {};
  DType dtype = DType::f32;  ///< of its elements, before they become `type`
};

struct Points {
  Lanes lanes = {};
  std::vector<InstrId> instrs = {};  ///< in definition order; operands that are not among them are defined before
  std::vector<int> stores = {};      ///< indices into kernel.stores
  std::string condition = {};        ///< of all stores: "inside"; empty: they are always made
  CacheHints cache = {};
  Registers registers = {};
  SharedVectors shared = {};
  Accumulators accumulators = {};
  Packed packed = {};
  std::vector<Overlap> overlaps = {};           ///< their stretches are defined before, "w0", "w1" (stretches.h)
  std::string row = {};                         ///< "u": the stretches are elements of arrays, each row's at this place
  std::vector<StretchOfRow> stretch_rows = {};  ///< of arrays: which one has it, and how many places further on
  bool loaded = false;                          ///< placed_loads are defined before
};

/// A vector that a run loads: "const pack<u8, 16> x3 = load<16, 16>(in1 + i1);"
struct VectorLoad {
  std::string type, name, value;
  std::string words =
      {};  ///< the type of the value where points.cache.ahead has the load: unpacked<type>(name) is the vector
};
/// Those that no value of the run decides, each once, in the order in which the run defines them.
std::vector<VectorLoad> placed_loads(const Kernel& kernel, const Points& points);

/// Writes the run.
void emit_points(Writer& out, const Kernel& kernel, const Points& points);

/// The indices of all stores of a kernel.
std::vector<int> all_stores(const Kernel& kernel);
/// Every store of a Map kernel with what it needs, in vectors of the innermost axis.
Points map_points(const Kernel& kernel, const MapSchedule& schedule);

}  // namespace tenon::codegen::cuda
