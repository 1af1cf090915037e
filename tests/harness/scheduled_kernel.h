// A group as the pipeline hands it to the emitters.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "codegen/kernel/kernel.h"
#include "ir/text/text.h"

namespace tenon::test {

/// The group, lowered, with the heuristics' schedule.
inline codegen::Kernel scheduled_kernel(const ir::Plan& plan, int group, const codegen::Specialization& specialization,
                                        const codegen::Target& target) {
  codegen::Kernel kernel = codegen::lower(plan, group, specialization, target);
  kernel.schedule = codegen::choose_schedule(kernel, target);
  return kernel;
}

/// A graph of one kernel, lowered for `target`, that no schedule was chosen for.
inline codegen::Kernel lowered_kernel(const std::string& text, const codegen::Target& target) {
  const ir::Plan plan = ir::make_plan(ir::parse(text));
  EXPECT_EQ(plan.groups.size(), 1U) << print(plan);
  return codegen::lower(plan, 0, codegen::unspecialized(plan), target);
}

}  // namespace tenon::test
