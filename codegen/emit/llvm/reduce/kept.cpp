// See kept.h.
#include "codegen/emit/llvm/reduce/kept.h"

#include "codegen/emit/llvm/classes.h"
#include "codegen/emit/llvm/tensor/product.h"

namespace tenon::codegen::simd {
namespace {

constexpr std::int64_t kElementBytes = 8;  // of the widest compute type

Type* type_of(Unit& unit, const KeptValue& kept) {
  return compute_type_of(unit, unit.kernel.instr(kept.what.value).dtype);
}

Value* address_of(Unit& unit, const Scope& scope, const KeptValue& kept) {
  return advance(unit, type_of(unit, kept), kept.memory, scope.axes[static_cast<std::size_t>(scope.vector_axis)]);
}

}  // namespace

std::vector<KeptValue> reserve_kept(Unit& unit, const Rounds& rounds, const std::vector<int>& reduced, int lanes) {
  if (!std::holds_alternative<InBuffer>(std::get<ReduceSchedule>(unit.kernel.schedule).keep)) return {};
  auto& b = unit.b;
  const std::vector<DearValue> values = dear_values(unit.kernel, rounds);
  // A vector may begin anywhere in the row, and is read as a whole.
  Value* elements = b.CreateAdd(emit_dim(unit, extent_of(unit.kernel, reduced.back())), constant(unit, lanes));
  Value* bytes = b.CreateMul(elements, constant(unit, kElementBytes));
  Value* memory = thread_scratch(unit, b.CreateMul(bytes, constant(unit, static_cast<std::int64_t>(values.size()))));
  std::vector<KeptValue> kept;
  for (const DearValue& value : values) {
    kept.push_back({value, memory});
    memory = advance(unit, b.getInt8Ty(), memory, bytes);
  }
  return kept;
}

void bind_kept(Unit& unit, std::size_t sweep, const std::vector<KeptValue>& all, std::vector<Scope>& scopes) {
  for (const KeptValue& kept : all)
    for (Scope& scope : scopes)
      if (kept.what.sweep < sweep)
        scope.values[kept.what.value] = unit.b.CreateAlignedLoad(vector_of(type_of(unit, kept), scope.lanes),
                                                                 address_of(unit, scope, kept), llvm::Align(1));
}

void keep(Unit& unit, std::size_t sweep, const std::vector<KeptValue>& all, std::vector<Scope>& scopes) {
  for (const KeptValue& kept : all)
    for (Scope& scope : scopes) {
      if (kept.what.sweep != sweep) continue;
      Value* value = evaluate_lanes(unit, scope, kept.what.value);
      Value* address = address_of(unit, scope, kept);
      if (scope.mask) {
        unit.b.CreateMaskedStore(value, address, llvm::Align(1), scope.mask);
      } else {
        unit.b.CreateAlignedStore(value, address, llvm::Align(1));
      }
    }
}

}  // namespace tenon::codegen::simd
