// The device-side pieces that generated CUDA code calls, as text: codegen/prelude/*.cuh, embedded into the library at
// build time (cmake/embed_prelude.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace tenon::codegen {

struct PreludeFile {
  std::string_view name;  ///< without folder: "reduce.cuh"
  std::string_view text;
};

/// All files of the prelude, by name.
std::vector<PreludeFile> prelude_files();

/// The text of the prelude file `name`; a name that is not there is a defect of Tenon.
std::string_view prelude_file(std::string_view name);

}  // namespace tenon::codegen
