// What the files of the LLVM emitter share: the module being built, the kernel's parameters, element types and
// structured control flow. Vector code is written out; no later pass is relied on to find it.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"
#include "codegen/target/target.h"

namespace tenon::codegen::simd {

using llvm::Type;
using llvm::Value;

/// One kernel's module while it grows. `b` stands where the next instruction goes.
struct Unit {
  Unit(const Kernel& kernel, const Target& target);
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  const Kernel& kernel;
  const Target& target;
  llvm::LLVMContext context;
  llvm::Module module;
  llvm::IRBuilder<> b;

  std::vector<bool> uses_results;  ///< of each instruction: a reduction or contraction stands in it or behind it

  // Of the function being built (begin_function).
  llvm::Function* function = nullptr;
  std::vector<Value*> operands;              ///< base pointers; after the kernel's own: scratch, when there is one
  std::map<std::string, Value*> dim_values;  ///< dimensions by their text, computed in the entry block
  std::map<std::pair<Value*, DType>, Value*> stored_as;  ///< of values that were widened from a storage type: from what
  Value* zeros = nullptr;                                ///< 64 zero bytes: what a load whose guard fails reads
};

/// Opens `void name(ptr pointers, ptr dims, i64 begin, i64 end)`; loads `pointer_count` pointers.
struct TaskRange {
  Value* begin;
  Value* end;
};
TaskRange begin_function(Unit& unit, const std::string& name, std::size_t pointer_count);
void end_function(Unit& unit);

// ---- types --------------------------------------------------------------------------------------------------------

/// Lanes of a SIMD register of 32-bit elements: the width that values of every dtype share.
int native_lanes(const Target& target);
/// The type in which an element of `dtype` is computed: i1, i8 … i64, float, double.
Type* compute_type_of(Unit& unit, DType dtype);
/// The integer or floating type of its storage: i8 for bool and 8-bit floats, i16 for 16-bit floats.
Type* storage_type_of(Unit& unit, DType dtype);
/// <lanes x type>, or `type` itself for one lane.
Type* vector_of(Type* type, int lanes);
/// 1 for a scalar.
int lanes_of(const Value* value);
/// `value` in every lane; a vector is returned as it is.
Value* splat(Unit& unit, Value* value, int lanes);
/// Lanes [from, from + count) of `value`; beyond its end, its first lane (a harmless number).
Value* piece(Unit& unit, Value* value, int from, int count);
/// As many pieces of equal lengths as a power of two, one behind the other.
Value* concatenate(Unit& unit, std::vector<Value*> pieces);
/// <0, 1, 2, …> as integers of `type`, for addresses.
Value* lane_numbers(Unit& unit, Type* type, int lanes);
/// The same for whatever masks may be made of. With AVX-512 LLVM does not see the numbers: of 16 lanes that are
/// compared in 64 bits, so in two halves, it may else find the upper half of a mask to be 0. It then clears those bits
/// by KMOVB, which its register allocator takes for a copy and drops where it spills (LLVM 19; for which CPU is a
/// matter of luck).
Value* hidden_lane_numbers(Unit& unit, Type* type, int lanes);
/// <0, 1, …> < count: the first `count` lanes (an i64; none when it is negative).
Value* first_lanes(Unit& unit, Value* count, int lanes);

Value* constant(Unit& unit, std::int64_t value);              ///< i64
Value* constant_like(const Value* like, std::int64_t value);  ///< an integer of the type of `like`, splat
Value* real_like(const Value* like, double value);            ///< a real of the type of `like`, splat

// ---- dimensions and control flow ------------------------------------------------------------------------------------

/// The i64 value of `dim`, computed once in the entry block.
Value* emit_dim(Unit& unit, const Dim& dim);

/// A variable of the function: mem2reg turns it into registers.
llvm::AllocaInst* variable(Unit& unit, Type* type, const std::string& name);

/// for (i = begin; i < end; i += step) body(i). The comparison at the head and at the latch, so that the body is one
/// straight block; values may be hoisted into the block that ends in the first comparison.
void emit_loop(Unit& unit, Value* begin, Value* end, Value* step, const std::string& name,
               const std::function<void(Value*)>& body);
/// if (condition) body().
void emit_if(Unit& unit, Value* condition, const std::function<void()>& body);

Value* minimum_of(Unit& unit, Value* a, Value* b);  ///< of signed integers
Value* maximum_of(Unit& unit, Value* a, Value* b);  ///< of signed integers
/// ceil(a / divisor) for a >= 0.
Value* ceil_div(Unit& unit, Value* a, std::int64_t divisor);

}  // namespace tenon::codegen::simd
