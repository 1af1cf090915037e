// See accumulate.h. What a reduction's elements start from and how two combine stands in ops.def.
#include "codegen/emit/llvm/reduce/accumulate.h"

#include <cmath>
#include <limits>

#include "codegen/analysis/rounds.h"
#include "codegen/emit/llvm/ops/ops.h"
#include "ir/graph/check.h"

namespace tenon::codegen::simd {
namespace {

bool seeks_largest(const Instr& reduce) { return reduce.op == ir::Op::argmax; }

std::int64_t extreme_of(DType dtype, bool largest) {
  if (dtype == DType::bool_) return largest ? 1 : 0;
  if (dtype == DType::u8) return largest ? 255 : 0;
  const int bits = static_cast<int>(8 * size_of(dtype)) - 1;
  const std::int64_t most = static_cast<std::int64_t>((std::uint64_t{1} << bits) - 1);
  return largest ? most : -most - 1;
}

Value* real_identity(Type* type, std::string_view text) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (text == "inf") return llvm::ConstantFP::get(type, infinity);
  if (text == "-inf") return llvm::ConstantFP::get(type, -infinity);
  return llvm::ConstantFP::get(type, text == "1" ? 1.0 : 0.0);
}

Value* integer_identity(Type* type, std::string_view text, DType dtype) {
  if (text == "min_value") return llvm::ConstantInt::getSigned(type, extreme_of(dtype, false));
  if (text == "max_value") return llvm::ConstantInt::getSigned(type, extreme_of(dtype, true));
  return llvm::ConstantInt::get(type, text == "1" ? 1 : 0);
}

// Whether element `a` goes before `b`: it is NaN and b is not, or it is more extreme.
Value* beats(Unit& unit, DType dtype, bool largest, Value* a, Value* b) {
  auto& builder = unit.b;
  if (is_real(dtype)) {
    Value* beyond = largest ? builder.CreateFCmpOGT(a, b) : builder.CreateFCmpOLT(a, b);
    return builder.CreateOr(beyond, builder.CreateAnd(builder.CreateFCmpUNO(a, a), builder.CreateFCmpORD(b, b)));
  }
  if (dtype == DType::u8) return largest ? builder.CreateICmpUGT(a, b) : builder.CreateICmpULT(a, b);
  return largest ? builder.CreateICmpSGT(a, b) : builder.CreateICmpSLT(a, b);
}

Partial choose(Unit& unit, Value* second, const Partial& a, const Partial& b) {
  return {unit.b.CreateSelect(second, b.value, a.value), unit.b.CreateSelect(second, b.index, a.index)};
}

Value* half_of(Unit& unit, Value* value, int from, int count) {
  std::vector<int> lanes;
  for (int i = 0; i < count; ++i) lanes.push_back(from + i);
  return count == 1 ? unit.b.CreateExtractElement(value, static_cast<std::uint64_t>(from))
                    : unit.b.CreateShuffleVector(value, lanes);
}

}  // namespace

bool carries_index(const Instr& reduce) { return reduce.op == ir::Op::argmax || reduce.op == ir::Op::argmin; }

DType element_dtype(const Kernel& kernel, const Instr& reduce) {
  return carries_index(reduce) ? kernel.instr(reduce.args[0]).dtype : reduce.dtype;
}

Partial identity_of(Unit& unit, const Instr& reduce, int lanes) {
  const DType dtype = element_dtype(unit.kernel, reduce);
  Type* type = compute_type_of(unit, dtype);
  if (carries_index(reduce)) {
    Value* worst = is_real(dtype) ? real_identity(type, seeks_largest(reduce) ? "-inf" : "inf")
                                  : integer_identity(type, seeks_largest(reduce) ? "min_value" : "max_value", dtype);
    return {splat(unit, worst, lanes), splat(unit, constant(unit, 0), lanes)};
  }
  const ir::OpInfo& info = ir::info(reduce.op);
  Value* value =
      is_real(dtype) ? real_identity(type, info.identity_real) : integer_identity(type, info.identity_integer, dtype);
  return {splat(unit, value, lanes), nullptr};
}

Partial accumulate(Unit& unit, const Instr& reduce, const Partial& a, const Partial& element) {
  const DType dtype = element_dtype(unit.kernel, reduce);
  if (carries_index(reduce))
    return choose(unit, beats(unit, dtype, seeks_largest(reduce), element.value, a.value), a, element);
  if (is_softmax_maximum(unit.kernel, reduce))  // an instruction everywhere
    return {unit.b.CreateSelect(unit.b.CreateFCmpOGT(element.value, a.value), element.value, a.value), nullptr};
  const std::string_view spelling = ir::text_for(ir::info(reduce.op), dtype).llvm;
  // The element first: an extremum looks at the sign of its first operand, and only `a` is waited for.
  return {emit_spelled(unit, spelling, dtype, {element.value, a.value}), nullptr};
}

Partial merge(Unit& unit, const Instr& reduce, const Partial& a, const Partial& b) {
  if (!carries_index(reduce)) return accumulate(unit, reduce, a, b);
  const DType dtype = element_dtype(unit.kernel, reduce);
  const bool largest = seeks_largest(reduce);
  Value* first = beats(unit, dtype, largest, a.value, b.value);
  Value* second = beats(unit, dtype, largest, b.value, a.value);
  Value* earlier = unit.b.CreateICmpSLT(b.index, a.index);
  return choose(unit, unit.b.CreateOr(second, unit.b.CreateAnd(unit.b.CreateNot(first), earlier)), a, b);
}

Partial merge_all(Unit& unit, const Instr& reduce, std::vector<Partial> parts) {
  for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
    for (std::size_t i = 0, j = parts.size() - 1; i < j; ++i, --j) parts[i] = merge(unit, reduce, parts[i], parts[j]);
  return parts[0];
}

Partial fold_lanes(Unit& unit, const Instr& reduce, Partial a) {
  for (int lanes = lanes_of(a.value); lanes > 1; lanes /= 2) {
    const auto half = [&](int from) {
      return Partial{half_of(unit, a.value, from, lanes / 2),
                     a.index ? half_of(unit, a.index, from, lanes / 2) : nullptr};
    };
    a = merge(unit, reduce, half(0), half(lanes / 2));
  }
  return a;
}

Value* result_of(const Partial& a) { return a.index ? a.index : a.value; }

Accumulator make_accumulator(Unit& unit, const Instr& reduce, int lanes) {
  const Partial start = identity_of(unit, reduce, lanes);
  Accumulator accumulator;
  accumulator.value = variable(unit, start.value->getType(), "sum");
  unit.b.CreateStore(start.value, accumulator.value);
  if (!start.index) return accumulator;
  accumulator.index = variable(unit, start.index->getType(), "where");
  unit.b.CreateStore(start.index, accumulator.index);
  return accumulator;
}

Partial read(Unit& unit, const Accumulator& accumulator) {
  const auto load = [&](llvm::AllocaInst* at) -> Value* {
    return at ? unit.b.CreateLoad(at->getAllocatedType(), at) : nullptr;
  };
  return {load(accumulator.value), load(accumulator.index)};
}

void write(Unit& unit, const Accumulator& accumulator, const Partial& partial) {
  unit.b.CreateStore(partial.value, accumulator.value);
  if (accumulator.index) unit.b.CreateStore(partial.index, accumulator.index);
}

}  // namespace tenon::codegen::simd
