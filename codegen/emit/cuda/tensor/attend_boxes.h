// The boxes of queries, keys and values of Attend kernels on sm_90a, as one thread asks for them: tiles of operands
// that loops place, or of pages that a table does.
#pragma once

#include <string>

#include "codegen/analysis/read_ahead.h"
#include "codegen/emit/cuda/tensor/attention.h"
#include "codegen/emit/source.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen::cuda {

/// A tile of an operand in shared memory: panels of 128 bytes of each of `rows` lines; of values that lie along the
/// keys, of each of `width` lines.
struct BoxedTile {
  std::string name;  ///< "k"
  const OperandPart& part;
  int rows, width;
};

/// "const auto load_k = [&](unsigned char* to, arrival* full, u32 batch, int j) { … };", and the tensor maps that it
/// uses, behind those that are there. Whether the operand has pages.
bool emit_load(Writer& out, const AttentionText& a, const BoxedTile& tile, LaunchRule& launch);

/// "const auto load_s = [&](unsigned char* to, arrival* full, u32 batch, int i, int j) { … };": what the scores of 64
/// queries from i on and of a tile of keys from j on read, and its tensor map.
void emit_score_boxes(Writer& out, const AttentionText& a, const BoxedScores& scores, int keys, LaunchRule& launch);

}  // namespace tenon::codegen::cuda
