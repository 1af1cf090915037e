// Kernels of warpgroups as text for the host: each instruction becomes a call (hopper_shim.h).
#pragma once

#include <string>

namespace tenon::test {

/// Whether generated text multiplies in warpgroups.
bool uses_warpgroups(const std::string& text);

void replace_hopper_instructions(std::string& text);

}  // namespace tenon::test
