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

/// A function of a key: f(i, j, x), of one value that it is given. Where it draws random numbers by fours (draws.h) it
/// is given these as well: "const auto score = by_fours([&](int i, int four) -> pack<philox_block, 1> { … },
/// [&](int i, int j, float v5, const pack<int, 1>& drawn) -> float { … });". So is what is read in pairs
/// (read_ahead.h): "by_pairs([&](int i, int j) -> pack<bf16, 2> { … }, [&](int i, int j, float v5, bf16 x6) -> float {
/// … });", or in boxes: "by_boxes(bf16{}, [&](int i, int j, float v5, bf16 x6) -> float { … });".
struct KeyFunction {
  std::string name;
  std::string given;  ///< "float v5"
  Region region;      ///< less what is drawn, or read ahead
  Region drawn;
  InstrId read = -1;
  bool boxed = false;  ///< `read` comes as boxes
};
/// Without anything that is drawn by fours.
KeyFunction key_function(const std::string& name, const std::string& given, const Region& region);
/// With all that can be, of keys4(v4), which emit_keys defines.
KeyFunction drawing_function(const AttentionText& a, const std::string& name, const std::string& given,
                             const Region& region);
/// "const philox_keys keys4 = v4;" for each seed of what scores and factors draw, which then draw from it.
void emit_keys(Writer& out, AttentionText& a);

/// What stands ahead of and behind the definitions of its region.
void open_key_function(Writer& out, const AttentionText& a, const KeyFunction& function);
void close_key_function(Writer& out, const KeyFunction& function, const std::string& result);
void emit_key_function(Writer& out, const AttentionText& a, const KeyFunction& function, const std::string& result);
/// The weight `w` times what varies along the row, rounded as the second contraction's operand is.
std::string factored(const AttentionText& a);

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
