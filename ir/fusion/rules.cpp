// See rules.h.
#include "ir/fusion/rules.h"

#include <algorithm>

namespace tenon::ir {
namespace {

const char* spelling(Rule rule) {
  switch (rule) {
    case Rule::none: return "none";
#define RULE(name, what) \
  case Rule::name: return #name;
#include "ir/fusion/rules.def"
  }
  return "";
}

}  // namespace

std::span<const RuleInfo> all_rules() {
  static constexpr RuleInfo kRules[] = {
#define RULE(name, what) {Rule::name, what},
#include "ir/fusion/rules.def"
  };
  return kRules;
}

std::string name_of(Rule rule) {
  std::string name = spelling(rule);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace tenon::ir
