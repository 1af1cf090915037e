// A cost model as the metadata of a cache entry without a binary: JSON with one number a field.
#include "src/driver/cost_model.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/disk_cache.h"
#include "src/driver/switches.h"
#include "tenon/error.h"
#include "tenon_build.h"

namespace tenon::src {
namespace {

using Json = nlohmann::ordered_json;

constexpr CostField kFields[] = {
    {"launch_us", &ir::CostModel::launch_us},
    {"bandwidth_gb_s", &ir::CostModel::bandwidth_gb_s},
    {"l2_bandwidth_gb_s", &ir::CostModel::l2_bandwidth_gb_s},
    {"l2_bytes", &ir::CostModel::l2_bytes},
    {"gigaslots_s", &ir::CostModel::gigaslots_s},
    {"tensor_tflops", &ir::CostModel::tensor_tflops},
    {"lane_tflops", &ir::CostModel::lane_tflops},
    {"moved_load_slots", &ir::CostModel::moved_load_slots},
    {"guarded_load_slots", &ir::CostModel::guarded_load_slots},
    {"overlap", &ir::CostModel::overlap},
    {"threads", &ir::CostModel::threads},
    {"block_gb_s", &ir::CostModel::block_gb_s},
    {"row_blocks", &ir::CostModel::row_blocks},
    {"row_block_bytes", &ir::CostModel::row_block_bytes},
    {"outer_elements", &ir::CostModel::outer_elements},
    {"outer_blocks", &ir::CostModel::outer_blocks},
};

// Kernels change with the version, and what they reach with them.
std::string key_of(const runtime::Backend& backend) {
  return runtime::CacheKey{TENON_VERSION " " TENON_COMMIT, "", backend.target().arch, backend.device_name(),
                           "cost model"}
      .text();
}

runtime::DiskCache open_folder(const Options& options) {
  return runtime::DiskCache({.folder = options.cache_dir, .max_bytes = options.cache_bytes, .log = {}});
}

// An entry that another program wrote, or that was written by hand, is no reason to fail: false.
bool read(const std::string& text, ir::CostModel& cost) {
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return false;
  for (const CostField& field : kFields) {
    const auto entry = document.find(field.name);
    if (entry == document.end() || !entry->is_number()) return false;
    const auto number = entry->get<double>();
    if (!std::isfinite(number) || number <= 0) return false;
    cost.*field.value = number;
  }
  return true;
}

}  // namespace

std::span<const CostField> cost_fields() { return kFields; }

ir::CostModel cost_model(const runtime::Backend& backend, const Options& options) {
  const std::string device = backend.device_name();
  ir::CostModel cost = assumed_cost_model(backend.target());
  if (device.empty() || !options.cache || !parts_without(options.disable).calibration) return cost;
  const auto entry = open_folder(options).load(key_of(backend));
  if (ir::CostModel kept = cost; entry && read(entry->metadata, kept)) {
    cost = kept;
    cost.device = device;
  }
  return cost;
}

void keep_cost_model(const runtime::Backend& backend, const Options& options, const ir::CostModel& cost) {
  Json document;
  for (const CostField& field : kFields) document[field.name] = cost.*field.value;
  if (!options.cache || !open_folder(options).store(key_of(backend), {document.dump(), {}}))
    throw Error(ErrorKind::io, "the numbers could not be kept: no folder for the kernel cache", {},
                "tenon doctor says why; set TENON_CACHE_DIR to a folder of your own");
}

}  // namespace tenon::src
