// Where a kernel's values stand in the loop nest. A Scope binds axes to loop variables, at most one of them to SIMD
// lanes; evaluate() emits an instruction in the outermost scope that binds all it depends on, and once only. This is
// the one expression emitter of all kernel classes. Expressions are straight-line code.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/llvm/unit.h"

namespace tenon::codegen::simd {

struct Scope {
  Scope* parent = nullptr;
  llvm::BasicBlock* home = nullptr;  ///< values of this scope go to its end, before the terminator
  std::uint64_t bound = 0;           ///< bit a: axis a has a value, here or above
  std::vector<Value*> axes;          ///< i64; of the vector axis: its value in lane 0
  int vector_axis = -1;              ///< lane l of it is axes[vector_axis] + l
  int lanes = 1;
  Value* mask = nullptr;       ///< lanes in use; null: all
  bool inside = false;         ///< the points lie in the kernel's interior: guards of one axis hold
  bool holds_results = false;  ///< reductions and contractions are bound here: what uses them stays inside
  std::map<InstrId, Value*> values;
  std::map<std::string, Value*> indices;
};

/// A scope with no axis bound, at the builder's position.
Scope root_scope(Unit& unit);
/// A scope inside `parent` at the builder's position.
Scope child_of(Scope& parent, Unit& unit);
void bind(Scope& scope, int axis, Value* value);
/// Binds `axis` to `lanes` lanes from `base`; `mask` may be null.
void bind_lanes(Scope& scope, int axis, Value* base, int lanes, Value* mask);

/// for (i = begin; i < end; i += step) body(scope inside, i).
void loop_in(Unit& unit, Scope& scope, Value* begin, Value* end, Value* step, const std::string& name,
             const std::function<void(Scope&, Value*)>& body);
void if_in(Unit& unit, Scope& scope, Value* condition, const std::function<void(Scope&)>& body);

/// The value of instruction `id`: a scalar when it does not vary along the vector axis, else a vector of scope.lanes.
Value* evaluate(Unit& unit, Scope& scope, InstrId id);
/// As a vector of scope.lanes in any case.
Value* evaluate_lanes(Unit& unit, Scope& scope, InstrId id);

/// The i64 value of `index`: a scalar when it does not vary along the vector axis, else a vector.
Value* evaluate_index(Unit& unit, Scope& scope, const Index& index);
/// The axes along which `index` varies, gathered values included.
std::uint64_t dependence(const Kernel& kernel, const Index& index);
/// An index that steps evenly along the lanes: value in lane 0 and step.
struct Affine {
  Value* base;
  Dim step;
};
std::optional<Affine> evaluate_affine(Unit& unit, Scope& scope, const Index& index);
/// Whether every guard holds: i1 or a vector of them; null when there is none that may not.
Value* evaluate_guards(Unit& unit, Scope& scope, const std::vector<Guard>& guards);

// ---- memory (memory.cpp) ----------------------------------------------------------------------------------------

/// The element of `access` in its compute type.
Value* emit_load(Unit& unit, Scope& scope, const Access& access);
/// The same as it is stored.
Value* emit_load_stored(Unit& unit, Scope& scope, const Access& access);
enum class CacheLevel : std::uint8_t { first, second };
/// Has the line of the first lane's element, `distance` elements on, brought into that cache, where the lanes are
/// consecutive and all in use. It need not lie in the operand. What is read along rows lies in the first level in time;
/// lines of many rows would push each other out of it (bench/results/cpu-2026-11-22.md).
void emit_prefetch(Unit& unit, Scope& scope, const Access& access, const Dim& distance, CacheLevel level);
struct StoreStyle {
  bool streaming = false;  ///< around the caches; contiguous stores must then be aligned to their size
};
/// Writes store.value in the lanes in use; along axes that the store's element does not vary with, once.
void emit_store(Unit& unit, Scope& scope, const Store& store, StoreStyle style = {});
/// Whether the store writes consecutive elements along the vector axis of `scope`.
bool is_contiguous(Unit& unit, const Scope& scope, const Access& access);
/// Address of element `offset` (an i64 or a vector of them) of an operand.
Value* element_address(Unit& unit, int operand, Value* offset);

}  // namespace tenon::codegen::simd
