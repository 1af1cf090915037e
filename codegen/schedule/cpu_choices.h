// What the CPU's heuristics share (cpu.cpp, cpu_reduce.cpp): what a kernel computes and moves, and which of its stores
// go around the caches.
#pragma once

#include <cstdint>

#include "codegen/kernel/kernel.h"
#include "codegen/schedule/schedule.h"

namespace tenon::codegen::cpu {

constexpr double kCostOfByte = 2.5;  ///< issue slots in the time of a byte, with all cores at work

/// Of a value in a register.
std::int64_t computed_bytes(DType dtype);
/// Lanes of one register of the widest value; 64-bit values take two, so that 32-bit ones beside them fill theirs.
int lanes_for(const Kernel& kernel, const Target& target);
/// Roughly how many instructions a vector of the instruction takes.
int cost_of(const Instr& instr);
/// The same of the whole body; long ones fill the pipelines by themselves.
int body_cost(const Kernel& kernel);

/// Whether the kernel moves more than `limit` bytes, for some or for all values of its symbols.
bool may_exceed(const Kernel& kernel, std::int64_t limit, bool some);
/// Whether the rows that are stored one after the other are worth going around the caches.
bool rows_may_stream(const Kernel& kernel, const Target& target);

/// The choice for a Reduce kernel.
ReduceSchedule choose_reduce(const Kernel& kernel, const Target& target);

}  // namespace tenon::codegen::cpu
