// The rules of verify(schedule, kernel, target), by class: what a schedule must keep to so that its kernel can be
// written. Behind verify.cpp; nobody else includes it.
#pragma once

#include <string>

#include "codegen/kernel/kernel.h"
#include "codegen/schedule/schedule.h"

namespace tenon::codegen {

using Reason = std::string;  // empty: none

constexpr int kMostThreads = 1024, kMostOfCluster = 8;
constexpr int kWidestVector = 16;  // elements

inline bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }
inline bool is_vector(int vector) { return is_power_of_two(vector) && vector <= kWidestVector; }

/// Of CUDA kernels (verify_contract.cpp, verify_attend.cpp).
Reason verify_cuda(const ContractSchedule& schedule, const Kernel& kernel, const Target& target);
Reason verify_cuda(const AttendSchedule& schedule, const Kernel& kernel, const Target& target);

}  // namespace tenon::codegen
