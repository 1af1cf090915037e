// The features of generated code, listed in features.def.
#pragma once

#include <set>
#include <span>
#include <string>

namespace tenon::codegen {

/// What a target can, and nobody has switched off.
struct Features {
#define FEATURE(name, what) bool name = false;
#define CUDA_FEATURE(name, what) bool name = false;
#define CPU_FEATURE(name, what) bool name = false;
#include "codegen/target/features.def"

  bool operator==(const Features&) const = default;
};

/// All that there are for a kind of target.
Features cuda_features();
Features cpu_features();

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
