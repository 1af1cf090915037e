// Random schedules, legal or not: fields of a schedule that a tuner tries, drawn anew.
#pragma once

#include <optional>
#include <random>

#include "codegen/kernel/kernel.h"
#include "codegen/target/target.h"

namespace tenon::test {

/// A schedule of the kernel's class that starts from one of its candidates. It is often not legal.
codegen::Schedule random_schedule(const codegen::Kernel& kernel, const codegen::Target& target,
                                  std::mt19937_64& random);

/// A legal one; a candidate where a hundred draws found none.
codegen::Schedule random_legal_schedule(const codegen::Kernel& kernel, const codegen::Target& target,
                                        std::mt19937_64& random);

}  // namespace tenon::test
