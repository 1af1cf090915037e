// See features.h.
#include "codegen/target/features.h"

namespace tenon::codegen {

Features cuda_features() {
  Features all;
#define FEATURE(name, what) all.name = true;
#define CUDA_FEATURE(name, what) all.name = true;
#define CPU_FEATURE(name, what)
#include "codegen/target/features.def"
  return all;
}

Features cpu_features() {
  Features all;
#define FEATURE(name, what) all.name = true;
#define CUDA_FEATURE(name, what)
#define CPU_FEATURE(name, what) all.name = true;
#include "codegen/target/features.def"
  return all;
}

std::span<const Feature> all_features() {
  static constexpr Feature kFeatures[] = {
#define FEATURE(name, what) {#name, &Features::name, what},
#define CUDA_FEATURE(name, what) {#name, &Features::name, what},
#define CPU_FEATURE(name, what) {#name, &Features::name, what},
#include "codegen/target/features.def"
  };
  return kFeatures;
}

Features without(Features features, const std::set<std::string>& names) {
  for (const Feature& feature : all_features())
    if (names.count(feature.name)) features.*feature.member = false;
  return features;
}

}  // namespace tenon::codegen
