// A flat vector crosses the ends of rows. What lies on outer axes changes once within it at most: such values are found
// for the first run of points that share them and for the next, and each point takes one of the two. A load of a
// channel's mean for each point of a vector is eight loads and eight addresses otherwise.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/emit/cuda/vectors.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen::cuda {

class RunValues {
 public:
  /// None.
  RunValues() = default;
  /// Of `instrs`, in definition order: what would be computed at each point of flat `lanes`. `asked`: those of them
  /// that others ask for at each point.
  RunValues(const Kernel& kernel, const Lanes& lanes, const std::vector<InstrId>& instrs,
            const std::vector<InstrId>& asked);

  /// Whether the value is found for runs, so that points need not compute it.
  bool has(InstrId id) const { return members_.count(id) != 0; }
  /// Whether a point takes it: the others lead to such values alone.
  bool is_taken(InstrId id) const { return taken_.count(id) != 0; }
  /// "const int rest_i1 = 49 - (i2 * 7 + i3);" and "float r5[2];" with what fills it.
  void define(Writer& out) const;
  /// "j >= rest_i1 ? r5[1] : r5[0]", of a value that is taken.
  std::string at(InstrId id, const std::string& j) const;

 private:
  std::size_t level_of(InstrId id) const;
  Dim points_inside(std::size_t axis) const;
  bool lasts(InstrId id) const;
  bool is_placed(const Instr& instr) const;
  std::vector<InstrId> steps_to(std::size_t level) const;

  const Kernel* kernel_ = nullptr;
  Lanes lanes_ = {};
  std::set<InstrId> members_, helpers_;   // values of loads; what else they are made of
  std::map<InstrId, std::size_t> taken_;  // and the axis at whose steps they change
};

/// Coordinates of a point `step` further on, which is less than the points of axis `from`, in row-major order: defines
/// "past_i1" and "j_i1" of this axis and those outside it, called so where `prefix` is "j_".
Names advance(Writer& out, const Kernel& kernel, std::size_t from, std::string step, std::int64_t furthest,
              const std::string& prefix);

}  // namespace tenon::codegen::cuda
