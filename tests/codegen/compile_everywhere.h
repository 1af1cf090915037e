// Compiles generated CUDA for every architecture that Tenon supports, where NVRTC is installed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/emit/source.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/runtime/installed_nvrtc.h"

namespace tenon::test {

inline const char* const kArchitectures[] = {"sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120"};

/// The target of `arch` with typical numbers.
inline codegen::Target cuda_target_for(const std::string& arch) { return codegen::cuda_target(arch); }

/// Expects no error for `target`, and no more dynamic shared memory than it has. Registers may spill.
inline void expect_compiles(const codegen::Source& source, const codegen::Target& target) {
  EXPECT_LE(source.launch.shared_bytes, target.shared_memory_per_block) << source.text;
  try {
    runtime::cuda::compile(*installed_nvrtc(), source.text, source.entry, target.arch);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\n" << source.text;
  }
}

/// Expects no error, no warning and no spill on any of `architectures` that the installed NVRTC knows; where there
/// is none the test counts as skipped, whatever else it looked at.
inline void expect_compiles_for(const codegen::Source& source, const std::vector<std::string>& architectures) {
  static const auto nvrtc = installed_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC to compile with";
  for (const std::string& arch : architectures) {
    const auto& known = nvrtc->architectures;
    if (std::find(known.begin(), known.end(), std::stoi(arch.substr(3))) == known.end()) continue;
    try {
      const auto compiled = runtime::cuda::compile(*nvrtc, source.text, source.entry, arch);
      const bool clean = compiled.warnings.empty() && compiled.resources.spill_store_bytes == 0;
      if (clean) continue;
      ADD_FAILURE() << arch << ": " << (compiled.warnings.empty() ? "registers spilled" : compiled.warnings.front())
                    << "\n"
                    << compiled.log << "\n"
                    << source.text;
      return;
    } catch (const Error& error) {
      ADD_FAILURE() << error.what() << "\n" << source.text;
      return;
    }
  }
}

inline void expect_compiles_everywhere(const codegen::Source& source) {
  expect_compiles_for(source, {std::begin(kArchitectures), std::end(kArchitectures)});
}

}  // namespace tenon::test
