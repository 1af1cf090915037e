// What a tile of queries sees of a tile of keys, where masks ask more than bounds say (key_bounds.h): documents that do
// not see each other, padding, prefixes of each query. A value that varies along queries only, or along keys only, has
// a least and a greatest in a tile; from these follows whether some pair in it is visible, and whether all are. Values
// are compared as integers, so that no rounding hides a key.
#pragma once

#include <vector>

#include "codegen/analysis/key_bounds.h"

namespace tenon::codegen {

/// A node of a condition. Children stand ahead of it.
struct TileTest {
  enum class Kind : std::uint8_t {
    unknown,  ///< perhaps some pair, not surely all
    truth,    ///< the bool value `a`
    compare,  ///< `op` of the integers `a` and `b`
    both,     ///< of the nodes `left` and `right`
    either,
    inverted,  ///< of the node `left`
  };
  Kind kind = Kind::unknown;
  ir::Op op = ir::Op::equal;
  InstrId a = -1, b = -1;
  int left = -1, right = -1;
};

/// Of all `masks.others` together: the last node. Empty where none of them tells tiles apart.
std::vector<TileTest> tile_tests(const Kernel& kernel, const KeyMasks& masks);

/// The instructions that the tests look at, once each.
std::vector<InstrId> tested_values(const std::vector<TileTest>& tests);

/// Whether a value rises or falls steadily along the axes, so that its first and its last are its least and greatest.
bool is_steady(const Instr& instr);

}  // namespace tenon::codegen
