// Instructions as C++ expressions over the names of their operands. Shared by all kernel classes: maps in bodies,
// prologues, epilogues and score functions are all written by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/cuda/text/names.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen::cuda {

/// `meaning` (ops.def) with the words a, b, c replaced by `args`.
std::string substitute(std::string_view meaning, const std::vector<std::string>& args);

/// The value of a literal, load, index, inside, map, round or random instruction. (A reduction's or contraction's value
/// comes from its kernel class.)
std::string expression(const Kernel& kernel, InstrId instr, const Names& names);

/// The place of a random number, in as many bits as the kernel's may take.
std::string random_index(const Kernel& kernel, const Index& index, const Names& names);
/// "u32" or "u64": what holds the number of a random number's block.
std::string block_type(const Kernel& kernel, const Instr& random);

/// "const float v3 = v1 + v2;" without its comment. For InstrKind as in `expression`, less literals: those are spelled
/// where they are used.
std::string definition(const Kernel& kernel, InstrId instr, const Names& names);

/// What the comment behind a definition says: the instruction's note with nothing in it but letters, digits, '_', '%',
/// '=', '.', ',' and spaces, so that no text can leave the comment.
std::string comment(const Instr& instr);

/// "in0[4096 * i0 + i1]", "in0[0]".
std::string element(const Kernel& kernel, const Access& access, const Names& names);
/// "in0 + 4096 * i0 + i1".
std::string address(const Kernel& kernel, const Access& access, const Names& names);
/// "out1[i0] = f32_to_bf16(v3);". Its guards are the caller's to write.
std::string store_statement(const Kernel& kernel, const Store& store, const Names& names);

/// store_statement where `condition` (empty: always) and the store's guards hold.
std::string conditional_store(const Kernel& kernel, const Store& store, const Names& names,
                              const std::string& condition);
/// "if (a && b) ", less what is empty.
std::string condition_prefix(const std::string& a, const std::string& b);

/// How a reduction combines two values (ops.def), its neutral value, and its lambda for the prelude's collectives.
struct Combination {
  std::string type;  ///< of the accumulator
  std::string identity;
  std::string function;  ///< "[](float a, float b) -> float { return a + b; }"
  bool is_arg = false;   ///< argmax, argmin: the accumulator is a value with its index

  /// The neutral value with its type: "float(0.0f)".
  std::string typed_identity() const { return type + (is_arg ? identity : "(" + identity + ")"); }
};
Combination combination(const Kernel& kernel, InstrId reduce);
/// "a7 = a7 + v6;" of an accumulator, which is no index, and a value.
std::string combine_statement(const Kernel& kernel, InstrId reduce, const std::string& accumulator,
                              const std::string& value);
/// "a7 = a7 + v6;"; `position` is the element's row-major index in the row, `in_order` where it is beyond those of the
/// thread's elements so far; `subscript` stands behind the accumulator.
std::string accumulate_statement(const Kernel& kernel, InstrId reduce, const std::string& position, bool in_order,
                                 const std::string& subscript = "");

}  // namespace tenon::codegen::cuda
