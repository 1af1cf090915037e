// The features of generated code, listed in features.def.
#pragma once

#include <set>
#include <span>
#include <string>

namespace tenon::codegen {

/// What a target can, and nobody has switched off.
struct Features {
#define FEATURE(name, what) bool name = true;
#include "codegen/features.def"
#undef FEATURE

  bool operator==(const Features&) const = default;
};

/// A feature, for whoever lists them or looks for one by its name.
struct Feature {
  const char* name;
  bool Features::* member;
  const char* what;
};
std::span<const Feature> all_features();

/// `features` without those of `names`. A name that is no feature's is not looked at.
Features without(Features features, const std::set<std::string>& names);

}  // namespace tenon::codegen
