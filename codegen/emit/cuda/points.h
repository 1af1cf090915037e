// A run of instructions at `vector` consecutive points of one axis: what does not vary along the axis once, contiguous
// operands by vector loads, the rest in a loop over the points. Map kernels are one such run, each sweep of a Reduce
// kernel is one.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/kernel/kernel.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen::cuda {

struct Points {
  std::vector<InstrId> instrs;   ///< in definition order; operands that are not listed are defined before
  std::vector<int> stores;       ///< indices into kernel.stores
  std::vector<InstrId> reduces;  ///< accumulated into a<id>
  std::vector<InstrId> outer;    ///< reductions over the rows, accumulated into a<id><held_index>[j]
  std::string position;          ///< the first point's row-major index in its row, for argmax
  bool in_order = true;          ///< which is beyond those of the thread's points so far
  bool columns = false;          ///< the points are of different rows: accumulators are a<id>[j], the position is one
  std::string column = "[0]";    ///< and the subscript of a single point's
  int axis = -1;                 ///< the points lie along it; -1: there is one point
  int vector = 1;
  bool flat = false;  ///< they follow the domain's row-major order from the point of the axes on, across all of them
  const Access* peeled = nullptr;  ///< vectors begin where this access is aligned
  bool streaming = false;          ///< stores bypass the caches
  std::vector<InstrId> streamed;   ///< vector loads that do
  std::vector<InstrId> lasting;    ///< vector loads whose lines are to stay in the L2
  std::vector<InstrId> here;       ///< vector loads that a compiler is not to put off
  std::string condition;           ///< of all stores: "inside"; empty: none
  std::vector<InstrId> held;  ///< values whose vectors <held_name><id> are defined already: loads and rounded values as
                              ///< they are stored, others as such
  std::vector<InstrId> saved;   ///< values that are put into such vectors on the way, as held ones are
  std::vector<InstrId> staged;  ///< loads whose vectors lie in shared memory, at s<id> + staged_place
  std::string staged_place;     ///< "c * 4096"
  std::string held_name = "x";
  std::string held_index;                ///< subscript of both: "[c]"
  std::string held_before, held_factor;  ///< around a held value that is no load: "(v8 ? 0 : ", " / v7)"
  std::vector<int> kept;  ///< stores into "transpose_tile u<index>" at (row, column) rather than into the operand
  InstrId packed = -1;    ///< a value that is gathered in "pack<packed_type, vector> y", as an element of packed_dtype
  std::string packed_type;  ///< "bf16", "tf32"
  DType packed_dtype = DType::f32;
};

/// Every store of a Map kernel with what it needs, in vectors of the innermost axis.
Points map_points(const Kernel& kernel, const MapSchedule& schedule);

/// The loads that the run makes as vectors.
std::vector<InstrId> vector_loads(const Kernel& kernel, const Points& points);
/// "pack<bf16, 8> x0[2];" for each of points.held.
void declare_held(Writer& out, const Kernel& kernel, const Points& points, int count);
/// Loads points.held, and computes what that needs: the run may follow later.
void emit_held(Writer& out, const Kernel& kernel, const Points& points);

/// Writes the run.
void emit_points(Writer& out, const Kernel& kernel, const Points& points);

/// "load<8, 8>(in0 + i0)", an expression of type pack; empty when the load is not contiguous. `function`: of the
/// prelude, "load" or one like it.
std::string vector_load(const Kernel& kernel, InstrId load, int axis, int vector, const Names& names,
                        const char* function = "load");
/// The same at `points`, which may be peeled.
std::string vector_load(const Kernel& kernel, InstrId load, const Points& points, const Names& names);
/// "pack<bf16, 8>".
std::string pack_type(DType dtype, int vector);
/// `names` with `axis` at point j of the vector.
Names at_point(Names names, int axis, const std::string& j);

}  // namespace tenon::codegen::cuda
