// An access to a matrix as boxes: which tensor map describes its operand, so that one thread can ask for a tile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/analysis/page.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen {

/// The dimensions of a tensor map (codegen/emit/source.h), the contiguous one first: each an axis of the kernel, those
/// behind the second also several axes of batches that lie as one, the outermost first. Pages are the last one, of no
/// axis.
struct BoxAccess {
  int operand = -1;
  Dim offset = 0;  ///< of the first element in the operand, in elements
  std::vector<std::vector<int>> axes;
  std::vector<Dim> extents, strides;  ///< the strides of all but the first
  bool along_depth = true;            ///< contiguous along the contraction's axis, else along the outer one
  std::optional<Page> page = {};      ///< whose rows lie along the second dimension
};

/// The operand of a contraction as its load reads it; nothing, and the reason in `why_not`, where boxes cannot: what is
/// loaded is computed on or guarded, or gathered but in pages, no axis of the tile is contiguous, or rows begin off
/// 16-byte boundaries.
std::optional<BoxAccess> paged_box_access(const Kernel& kernel, const OperandPart& part, const std::vector<int>& batch,
                                          std::string& why_not);
/// The same where loops alone say what a box has.
std::optional<BoxAccess> box_access(const Kernel& kernel, const OperandPart& part, const std::vector<int>& batch,
                                    std::string& why_not);

/// The one result of 16 bits of a contraction, whose columns are neighbours; nothing, and the reason, where boxes
/// cannot take it from shared memory, or the epilogue is long or reads more than what a column has.
std::optional<BoxAccess> result_box(const Kernel& kernel, const ContractParts& parts, std::string& why_not);

/// Why these boxes bring no elements as a tile has them; empty: they do.
std::string why_not_stored(const Kernel& kernel, const BoxAccess& box, DType element);

/// Why boxes that loops place cannot bring this operand to a tile of `element`; empty: they can.
std::string why_not_boxed(const Kernel& kernel, const OperandPart& part, const std::vector<int>& batch, DType element);

}  // namespace tenon::codegen
