// What the texts of a plan share.
#pragma once

#include <string>
#include <vector>

#include "ir/fusion/plan.h"

namespace tenon::ir::fusion {

/// For each value: the user's name, or one made from the group that writes it ("k2.0"); empty for the rest.
std::vector<std::string> memory_names(const Plan& plan);

/// "2 launches": of a plan with packs.
std::string launches_text(const Plan& plan);

/// "[rows]", "[rows] x [4096]": kept extents, and reduced ones.
std::string domain_text(const Group& group);

/// "sum div mul": a group's operators in definition order.
std::string operators_text(const Plan& plan, const Group& group);

}  // namespace tenon::ir::fusion
