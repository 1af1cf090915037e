// infer(): from an op, its operands' types and its attributes to its result types. This file picks the rule by the
// op's kind and holds the rules of maps and reductions.
#include "ir/ops/infer.h"

#include <fmt/format.h>

#include "ir/graph/build.h"
#include "ir/graph/check.h"

namespace tenon::ir {
namespace {

std::string list_of(std::span<const Type> types) {
  std::string text;
  for (std::size_t i = 0; i < types.size(); ++i)
    text += (i == 0 ? "" : i + 1 == types.size() ? " and " : ", ") + str(types[i]);
  return text;
}

struct Wording {
  std::string_view takes;
  std::string_view remedy;
};

Wording wording(Accepts accepts) {
  switch (accepts) {
    case Accepts::Num:
      return {"numbers", "cast the bool: cast(x, dtype=i32); for bools there are logical_and, any and all"};
    case Accepts::Real: return {"reals", "cast the operand: cast(x, dtype=f32)"};
    case Accepts::Integer: return {"integers", "cast the operand: cast(x, dtype=i32)"};
    case Accepts::Bits: return {"integers or bools", "bitcast the operand: bitcast(x, dtype=i32)"};
    case Accepts::Bool: return {"bools", "compare first: not_equal(x, 0)"};
    case Accepts::Any: return {};
  }
  return {};
}

void check_accepted(Op op, const Type& type) {
  const OpInfo& row = info(op);
  if (accepts(row.accepts, type.dtype)) return;
  const Wording words = wording(row.accepts);
  type_error(fmt::format("takes {}, not {}", words.takes, str(type)), std::string(words.remedy));
}

// The dtype to which a cast of the other operand is most likely meant.
DType wider(DType a, DType b) {
  if (class_of(a) != class_of(b)) return class_of(a) > class_of(b) ? a : b;
  return size_of(a) >= size_of(b) ? a : b;
}

void check_same_dtype(std::span<const Type> types) {
  for (const Type& type : types)
    if (type.dtype != types[0].dtype)
      type_error(fmt::format("operands have different dtypes: {}", list_of(types)),
                 fmt::format("cast one side: cast(x, dtype={})", name_of(wider(types[0].dtype, type.dtype))));
}

DType bitcast_dtype(const Type& operand, DType dtype) {
  if (dtype == DType::bool_) type_error("bool has no bit pattern of its own", "compare instead: not_equal(x, 0)");
  if (size_of(dtype) != size_of(operand.dtype))
    type_error(fmt::format("{} has {} bytes an element, {} has {}", name_of(operand.dtype), size_of(operand.dtype),
                           name_of(dtype), size_of(dtype)),
               "bitcast keeps the size; cast converts the value");
  return dtype;
}

DType special_map_dtype(const Inference& in) {
  if (in.op == Op::cast) return in.attrs.get<DType>("dtype");
  if (in.op == Op::bitcast) return bitcast_dtype(in.operands[0], in.attrs.get<DType>("dtype"));
  TENON_CHECK(in.op == Op::where, fmt::format("{} has no dtype rule", name_of(in.op)));
  if (in.operands[0].dtype != DType::bool_)
    type_error(fmt::format("the condition must be bool, not {}", str(in.operands[0])),
               "compare first: not_equal(x, 0)");
  check_same_dtype(in.operands.subspan(1));
  return in.operands[1].dtype;
}

DType map_dtype(const Inference& in) {
  switch (info(in.op).yields) {
    case Yields::Same: return in.operands[0].dtype;
    case Yields::Boolean: return DType::bool_;
    case Yields::Index: return DType::i64;
    case Yields::Special: return special_map_dtype(in);
  }
  return in.operands[0].dtype;
}

// A reduction's `dtype` may keep every value of the operand's: same class and no narrower, or integers to reals.
DType widened_dtype(DType from, DType to) {
  const bool widens = class_of(from) == class_of(to) ? size_of(to) >= size_of(from) : is_integer(from) && is_real(to);
  if (!widens)
    type_error(fmt::format("dtype={} does not widen {}", name_of(to), name_of(from)),
               "reduce first, then cast the result");
  return to;
}

void check_operand_count(Op op, std::size_t count) {
  const int wanted = info(op).operands;
  if (wanted < 0 ? count >= 1 : count == static_cast<std::size_t>(wanted)) return;
  type_error(wanted < 0 ? "takes at least one operand, got none"
                        : fmt::format("takes {} operand{}, got {}", wanted, wanted == 1 ? "" : "s", count),
             fmt::format("{}: {}", name_of(op), info(op).doc));
}

std::vector<Type> infer_kind(const Inference& in) {
  switch (info(in.op).kind) {
    case Kind::map: return {infer_map(in)};
    case Kind::reduce: return {infer_reduce(in)};
    case Kind::view: return {infer_view(in)};
    case Kind::source: return {infer_source(in)};
    case Kind::random: return {infer_random(in)};
    case Kind::contract: return {infer_matmul(in)};
    case Kind::composite: return infer_composite(in);
  }
  return {};
}

}  // namespace

Type infer_map(const Inference& in) {
  for (const Type& type : in.operands) check_accepted(in.op, type);
  if (info(in.op).yields != Yields::Special) check_same_dtype(in.operands);
  const DType dtype = map_dtype(in);
  return {dtype, broadcast_types(in.operands)};
}

Type infer_reduce(const Inference& in) {
  const Type& x = in.operands[0];
  check_accepted(in.op, x);
  const int rank = static_cast<int>(x.shape.size());
  std::vector<bool> reduced(x.shape.size(), !in.attrs.has("axis"));
  if (in.attrs.has("axis"))
    for (int axis : normalize_axes(in.attrs.get<std::vector<std::int64_t>>("axis"), rank))
      reduced[static_cast<std::size_t>(axis)] = true;
  Type result{info(in.op).yields == Yields::Index ? DType::i64 : x.dtype, {}};
  if (in.attrs.has("dtype")) result.dtype = widened_dtype(x.dtype, in.attrs.get<DType>("dtype"));
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (!reduced[i]) result.shape.push_back(x.shape[i]);
    if (reduced[i] && in.attrs.get<bool>("keepdims")) result.shape.push_back(Dim(1));
  }
  return result;
}

std::vector<Type> infer(Op op, std::span<const Type> operands, const Attrs& attrs, const Symbols& symbols) {
  try {
    check_operand_count(op, operands.size());
    const Attrs complete = with_defaults(op, normalize_attributes(op, attrs));
    std::vector<Type> types = infer_kind({op, operands, complete, symbols});
    for (const Type& type : types) check_type(type, symbols);
    return types;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    throw Error(error.kind(), fmt::format("{}: {}", name_of(op), error.message()), error.place(), error.remedy());
  }
}

}  // namespace tenon::ir
