// The tile of a Map kernel with accesses along two axes. tile.cpp fills it and works on it; tile_shift.cpp does so
// where rows begin at any element.
#pragma once

#include <string>
#include <vector>

#include "codegen/analysis/transpose.h"
#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"

namespace tenon::codegen::cuda {

struct Tiling {
  const Kernel& kernel;
  const MapSchedule& schedule;
  int row_axis, column_axis;
  Transposed transposed;
  std::vector<InstrId> draws;  ///< random bits that are drawn along the rows' axis
  bool shifts_stores;          ///< the columns of a row begin where its store is aligned

  /// Vectors of a row of the tile.
  int per_row() const { return schedule.tile->columns / schedule.vector; }
  const std::string& row() const { return kernel.axes[static_cast<std::size_t>(row_axis)].name; }
  const std::string& column() const { return kernel.axes[static_cast<std::size_t>(column_axis)].name; }
  const Dim& rows() const { return kernel.axes[static_cast<std::size_t>(row_axis)].extent; }
  const Dim& columns() const { return kernel.axes[static_cast<std::size_t>(column_axis)].extent; }
};

/// "first_i0 + 64 <= n0 && first_i1 + 64 <= n1": the tile is inside the domain.
std::string interior(const Tiling& tiling);
/// Opens the loop over the thread's vectors of the tile, and defines the vector's row in it: "row".
void open_vectors(Writer& out, const Tiling& tiling);
/// Fills the tile of `load` by vectors of 16 bytes, of which any may begin at any element.
void emit_shifted_fill(Writer& out, const Tiling& tiling, InstrId load);
/// The kernel's work where stores are shifted.
void emit_shifted_work(Writer& out, const Tiling& tiling);

}  // namespace tenon::codegen::cuda
