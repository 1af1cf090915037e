// Loads whose elements overlap from one point of a vector to the next, or alternate: a window's neighbours, every other
// element. A thread loads the stretch that its vector needs of them once, in aligned vectors, and takes each point's
// elements from registers. Guards are not looked at: what lies in the operand is loaded, needed or not, and what is
// needed lies in it. Where no load has a guard nearly all of it is needed, and nobody has to ask.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Where the points of a vector lie: along `axis`, from a multiple of `count` on, or, where vectors are `flat`, from
/// anywhere in a row.
struct VectorPoints {
  int axis = -1;
  int count = 1;
  bool flat = false;
  bool apart = false;  ///< elements are loaded one by one, but once: all that may be stretches are
};

struct Overlap {
  struct Load {
    InstrId id = -1;
    std::int64_t first = 0;  ///< the element of the stretch that point 0 has
  };
  Access stretch;           ///< its first element at point 0; guards that hold or fail for all of its loads at once
  int step = 1;             ///< elements from one point to the next
  int elements = 0;         ///< of the stretch
  int aligned = 1;          ///< elements of the vectors that it is loaded in
  int before = -1;          ///< elements between the boundary ahead of it and itself; -1 where that varies
  std::vector<Load> loads;  ///< by their first elements

  int certain = 0;  ///< of the elements of its vectors, from the first on: they lie in the operand

  /// How many vectors hold it, wherever it begins.
  int vectors() const { return ((before < 0 ? aligned - 1 : before) + elements + aligned - 1) / aligned; }
};

/// Those that take fewer accesses than their loads would alone. No load is in two.
std::vector<Overlap> overlaps_of(const Kernel& kernel, const VectorPoints& points);

/// Of neighbouring rows along an axis one stretch may be another's, some rows further on.
struct StretchOfRow {
  std::size_t of = 0;    ///< the number of the one that is loaded, for rows from the first on
  std::int64_t row = 0;  ///< how many rows further on this one lies
};

/// For each of `overlaps` whose rows it is, along `axis`: its own, or those of one that lies behind by whole rows.
std::vector<StretchOfRow> stretches_of_rows(const std::vector<Overlap>& overlaps, int axis);

/// The share of its loads that a thread is left with that has `rows` neighbours along `axis` and loads what several of
/// them read once.
double loads_left(const Kernel& kernel, int axis, int rows);

}  // namespace tenon::codegen
