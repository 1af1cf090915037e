// The tests of a mask's tiles as text (codegen/analysis/tile_tests.h); what they call stands in the prelude
// (block_mask.cuh).
#pragma once

#include "codegen/analysis/tile_tests.h"
#include "codegen/emit/cuda/tensor/attention.h"

namespace tenon::codegen::cuda {

/// "const auto see_tiles = [&](u32 batch, int first, int rows, int j, int tiles, const auto& use) { … };": for a
/// warp, those of the tiles of `tile_kv` keys from j on of which `rows` queries from `first` on see some.
void emit_see_tiles(Writer& out, const AttentionText& a, const std::vector<TileTest>& tests, int tile_kv);

}  // namespace tenon::codegen::cuda
