// Blocks of memory turned on their way into a thread's scratch memory, rows becoming columns, as stored: registers are
// turned word by word, and elements of less than 32 bits are first joined with those of the rows beside them.
#pragma once

#include "codegen/emit/llvm/tensor/product.h"

namespace tenon::codegen::simd {

/// A register of consecutive elements of memory: rows and columns of the squares that a block is made of.
int square_side(const Unit& unit, DType dtype);

struct Block {
  Span rows;            ///< of the axis along which memory is contiguous
  Span columns;         ///< of the axis that becomes contiguous
  Value* to = nullptr;  ///< element (row, column) goes to to[(row - rows.begin) * pitch + column - columns.begin]
  int pitch = 0;        ///< in elements; whole squares are written
  int ahead = 0;        ///< so many elements further along, the same lines of memory are prefetched
};
/// `access` is contiguous along block.rows and has no guards.
void turn_block(Unit& unit, Scope& scope, const Access& access, const Block& block);

}  // namespace tenon::codegen::simd
