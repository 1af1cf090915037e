// What the emitters of Attend kernels share: the operands' parts with the names in their text, the functions of scores,
// shifts, weights and factors, the ranges of keys that masks leave, and the epilogue.
#pragma once

#include <string>

#include "codegen/analysis/key_bounds.h"
#include "codegen/analysis/tiling.h"
#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen::cuda {

struct AttentionText {
  const Kernel& kernel;
  AttendParts parts;
  KeyMasks masks;
  AttendTiles tiles;
  Names names;
  std::string index;  ///< the type of offsets
  std::string real;   ///< of scores, weights and sums
};

AttentionText attention_text(const Kernel& kernel, const Target& target);

const std::string& axis_name(const AttentionText& a, int axis);
const Dim& extent(const AttentionText& a, int axis);

/// "float v12", or a type alone where there is no such value.
std::string parameter(const AttentionText& a, InstrId value);

/// "const auto shift = [&](int i, float v10) -> float { … };"
void emit_shift(Writer& out, const AttentionText& a);
/// "const auto weight = [&](int i, float v9, float v13) -> float { … };"
void emit_weight(Writer& out, const AttentionText& a);
/// "const auto factor = [&](int i, int j, float w) -> float { … };": the weight times what varies along the row,
/// rounded as the second contraction's operand is.
void emit_factor(Writer& out, const AttentionText& a);
/// "const auto score = [&](int i, int j, float v5) -> float { … return v9; };", and any other function of a key.
void emit_key_function(Writer& out, const AttentionText& a, const std::string& name, InstrId given,
                       const Region& region, const std::string& result);

/// "const auto out = make_result<8>([&](int i, int e, float v11, float v14, const pack<float, 8>& x16) { … });"
void emit_attention_result(Writer& out, const AttentionText& a);

/// The values of the batch that bounds have.
void emit_bound_values(Writer& out, const AttentionText& a);

/// "last_key = min(last_key, (int)(last_query + 129));": what an upper bound leaves of the keys ahead of `limit`, or a
/// lower one of those from there on, for `some` of the queries from `first` to `last`, or for all.
std::string bounded(const AttentionText& a, const KeyBound& bound, bool some, const std::string& limit,
                    const std::string& first, const std::string& last);

/// Later queries see more keys.
bool grows_with_query(const AttentionText& a);

}  // namespace tenon::codegen::cuda
