// The rules by which the planner keeps kernels apart, listed in rules.def.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tenon::ir {

enum class Rule : std::uint8_t {
  none,  ///< nothing stays apart
#define RULE(name, what) name,
#include "ir/fusion/rules.def"
};

/// A row of the table, for whoever lists them.
struct RuleInfo {
  Rule rule;
  const char* what;  ///< stays apart
};
std::span<const RuleInfo> all_rules();

/// "different-reduced-axes": short and stable, for people and tests.
std::string name_of(Rule rule);

}  // namespace tenon::ir
