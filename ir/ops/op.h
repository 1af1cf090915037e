// Operators as data: what ops.def says of each. Passes ask these functions and never switch on an op's name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/dtype.h"

namespace tenon::ir {

enum class Op : std::uint8_t {
#define TENON_MAP(name, ...) name,
#define TENON_REDUCE(name, ...) name,
#define TENON_VIEW(name, ...) name,
#define TENON_SOURCE(name, ...) name,
#define TENON_RANDOM(name, ...) name,
#define TENON_CONTRACT(name, ...) name,
#define TENON_COMPOSITE(name, ...) name,
#include "ir/ops.def"
};

enum class Kind : std::uint8_t { map, reduce, view, source, random, contract, composite };

/// Which operand dtypes an op takes (see ops.def).
enum class Accepts : std::uint8_t { Num, Real, Integer, Bits, Bool, Any };

/// The result's dtype. Special: by a rule of ir/ops/infer.cpp.
enum class Yields : std::uint8_t { Same, Boolean, Index, Special };

enum class AttrType : std::uint8_t { integer, integers, real, boolean, string, dtype, dims, scalar };

/// One attribute in an op's signature.
struct AttrSpec {
  std::string name;
  AttrType type;
  bool required;             ///< must be written
  std::string default_text;  ///< as in ops.def; "none" or empty when there is no default value
};

/// Spellings of one op on one operand class; empty when the op is not defined there.
struct OpText {
  std::string_view meaning;  ///< C++ and CUDA expression over a, b, c
  std::string_view llvm;     ///< see ops.def
};

struct OpInfo {
  Op op;
  Kind kind;
  std::string_view name;
  int operands;  ///< -1: one or more
  int results;   ///< -1: decided by the attributes
  Accepts accepts;
  Yields yields;
  OpText real, integer;
  std::string_view identity_real, identity_integer;  ///< of a reduction
  int cost;
  std::string_view doc;
  std::vector<AttrSpec> attributes;
};

/// What the table says of `op`.
const OpInfo& info(Op op);
/// All rows in the table's order.
std::span<const OpInfo> all_ops();
/// The op spelled `name` in text and JSON, or nothing.
std::optional<Op> find_op(std::string_view name);

inline Kind kind_of(Op op) { return info(op).kind; }
inline std::string_view name_of(Op op) { return info(op).name; }

/// The text that applies to operands of `dtype`.
inline const OpText& text_for(const OpInfo& op, DType dtype) { return is_real(dtype) ? op.real : op.integer; }

/// Whether `op` takes operands of `dtype`.
bool accepts(Accepts accepts, DType dtype);

}  // namespace tenon::ir
