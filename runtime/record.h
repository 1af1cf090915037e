// Launch records: what a run at exact sizes needs besides pointers.
#pragma once

#include "runtime/executable.h"

namespace tenon::runtime {

/// Results that update inputs: in their memory (updates.h), or apart, as if they updated nothing, so that a run can be
/// repeated.
enum class Updates : std::uint8_t { placed, apart };

/// The record of `plan` at `bindings`, whose kernels are `built` for the dimension class of these bindings on
/// `backend`.
LaunchRecord make_record(const Backend& backend, const ir::Plan& plan, std::shared_ptr<const BuiltPlan> built,
                         const Bindings& bindings, Updates updates = Updates::placed);

}  // namespace tenon::runtime
