// A group as the pipeline hands it to the emitters.
#pragma once

#include "codegen/kernel/kernel.h"

namespace tenon::test {

/// The group, lowered, with the heuristics' schedule.
inline codegen::Kernel scheduled_kernel(const ir::Plan& plan, int group, const codegen::Specialization& specialization,
                                        const codegen::Target& target) {
  codegen::Kernel kernel = codegen::lower(plan, group, specialization, target);
  kernel.schedule = codegen::choose_schedule(kernel, target);
  return kernel;
}

}  // namespace tenon::test
