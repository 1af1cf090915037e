// What the instructions of a kernel's body use, and what has to be computed for some of them.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Everything that the values in `roots` need, themselves included, in definition order; not below those in `defined`.
std::vector<InstrId> needed(const Kernel& kernel, const std::vector<InstrId>& roots, const std::vector<bool>& defined);
/// The same where nothing is defined yet.
std::vector<InstrId> needed(const Kernel& kernel, const std::vector<InstrId>& roots);
/// The instructions that a store uses: its value and those in its index.
std::vector<InstrId> roots_of(const Store& store);
/// The same of several, by their numbers.
std::vector<InstrId> roots_of(const Kernel& kernel, const std::vector<int>& stores);
/// Bit a: the store is made anew, or is guarded, along axis a.
std::uint64_t axes_of(const Kernel& kernel, const Store& store);
/// Instructions whose values occur in the instruction itself: arguments, offsets, guards.
std::vector<InstrId> operands_of(const Instr& instr);
/// Where `id` comes from, past casts between reals and roundings; itself when it is neither.
InstrId behind_casts(const Kernel& kernel, InstrId id);

bool contains(const std::vector<InstrId>& list, InstrId id);
/// Whether the value varies along the axis.
bool varies(const Kernel& kernel, InstrId id, int axis);
/// Whether the instruction is the literal 0.
bool is_zero(const Instr& instr);
/// Whether the value is the literal -inf, behind casts between reals.
bool is_minus_infinity(const Kernel& kernel, InstrId id);

}  // namespace tenon::codegen
