// Runs on host memory, for the ways in which the public API takes it.
#pragma once

#include <vector>

#include "runtime/executable.h"

namespace tenon::src {

/// Runs on host arrays, one for each input that is not bound, into `outputs` (Executable::run on arrays says how).
void run_on_host(const Executable::Impl& executable, std::vector<Buffer> from, std::vector<Array>& outputs,
                 const Bindings& bindings);

}  // namespace tenon::src
