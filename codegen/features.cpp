// See features.h.
#include "codegen/features.h"

namespace tenon::codegen {

std::span<const Feature> all_features() {
  static constexpr Feature kFeatures[] = {
#define FEATURE(name, what) {#name, &Features::name, what},
#include "codegen/features.def"
#undef FEATURE
  };
  return kFeatures;
}

Features without(Features features, const std::set<std::string>& names) {
  for (const Feature& feature : all_features())
    if (names.count(feature.name)) features.*feature.member = false;
  return features;
}

}  // namespace tenon::codegen
