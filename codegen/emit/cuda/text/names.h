// The names that generated code gives to a kernel's axes, symbols, instructions and operands, and its index
// expressions in terms of them. Names of the user's never appear.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen::cuda {

struct Names {
  const Kernel* kernel;
  std::vector<std::string> axes;    ///< what each axis is called here: "i0", or "(i0 + j)" inside a loop over a vector
  std::vector<InstrId> keyed = {};  ///< seeds of which "keys4" is defined: numbers are drawn from it instead of v4
  bool widened = false;             ///< where offsets have 32 bits: axes, symbols and values are cast to 64 first
};

/// Every axis by its own name.
Names names_of(const Kernel& kernel);
/// Of indices that are computed in 64 bits, though offsets may have 32.
Names widened(Names names);

/// "int" or "i64": what offsets are computed in.
std::string index_type(const Kernel& kernel);
/// "u32" or "u64": what linear indices are decoded in.
std::string unsigned_index_type(const Kernel& kernel);

/// The operand's name: "in0".
const std::string& operand_name(const Kernel& kernel, int operand);
const Operand& operand_at(const Kernel& kernel, const Access& access);
/// The dtype of its elements in memory.
DType stored_dtype(const Kernel& kernel, const Access& access);
const Store& store_at(const Kernel& kernel, int store);
/// What uses of `instr` are spelled: its name "v12", or the literal itself, in parentheses when negative.
std::string value_name(const Kernel& kernel, InstrId instr);

/// "keys4": the Philox keys of seed v4.
std::string keys_name(InstrId seed);

/// A dimension in terms of n0, n1, … (see dimension_definitions).
std::string dim_text(const Dim& dim, const Names& names);
/// An index in index_type, or in i64 with widened names.
std::string index_text(const Index& index, const Names& names);
/// The conjunction of what is not proven of `guards`; empty when all of it is.
std::string guard_text(const std::vector<Guard>& guards, const Names& names);

/// "const int n0 = (int)dim0;" for each symbol that the kernel takes.
std::vector<std::string> dimension_definitions(const Kernel& kernel);
/// Whether the compiler may take the run's inputs for constant while the kernel runs, and load them when it likes.
bool takes_inputs_for_constant(const Kernel& kernel);
/// "const float* __restrict__ in0" of an operand that is called `name`.
std::string pointer_parameter(const Kernel& kernel, const Operand& operand, const std::string& name);
/// The parameter list. `scratch`, `zeroed`: with pointers to such memory behind those to the operands.
std::string parameters(const Kernel& kernel, bool scratch = false, bool zeroed = false);

}  // namespace tenon::codegen::cuda
