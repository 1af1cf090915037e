// The planner's numbers for one device: measured by `tenon calibrate`, kept in the folder of the kernel cache, and used
// by every compile for that device from then on.
#pragma once

#include <span>
#include <string>

#include "ir/fusion/plan.h"
#include "runtime/backend.h"

namespace tenon::src {

/// A number of a cost model, for texts.
struct CostField {
  const char* name;
  double ir::CostModel::* value;
};
std::span<const CostField> cost_fields();

/// What is assumed of a device that was not measured: a CPU's numbers by its threads, a GPU's by the target's facts, of
/// the device that the model then names.
ir::CostModel assumed_cost_model(const codegen::Target& target);

/// What was kept for the backend's device by this version of Tenon; what is assumed of it where nothing was, where
/// there is no cache, or where calibration is switched off (switches.def).
ir::CostModel cost_model(const runtime::Backend& backend, const Options& options);

/// Keeps it for the backend's device. Error(io) when there is no folder that can be written.
void keep_cost_model(const runtime::Backend& backend, const Options& options, const ir::CostModel& cost);

}  // namespace tenon::src
