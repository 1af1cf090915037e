// What generated CUDA computes, against the interpreter: graphs as one kernel each, run on the host.
#pragma once

#include <functional>
#include <string>

#include "codegen/emit/source.h"
#include "codegen/schedule/schedule.h"
#include "ir/fusion/plan.h"
#include "tests/codegen/compile_everywhere.h"

namespace tenon::codegen {

/// A graph as one kernel for sm_90a.
struct CudaKernel {
  ir::Graph written;
  ir::Plan plan;
  Source source;
  Kernel kernel;
};

/// Changes what lowering gave, a schedule most of all.
using Adjust = std::function<void(Kernel&)>;

/// The text's graph as one kernel.
CudaKernel one_cuda_kernel(const std::string& text, const Bindings& bindings = {}, const Adjust& adjust = {});

/// Expects it to compute what the interpreter says, on random data.
CudaKernel expect_right(const std::string& text, const Bindings& bindings = {}, const Adjust& adjust = {});

/// Every reduction that takes `dtype`, of one x of `shape`, with `axis` behind it: ", axis=1".
std::string all_reductions(DType dtype, const std::string& shape, const std::string& axis);

inline const ReduceSchedule& schedule_of(const CudaKernel& run) {
  return std::get<ReduceSchedule>(run.kernel.schedule);
}
inline ReduceSchedule& reduce_schedule(Kernel& kernel) { return std::get<ReduceSchedule>(kernel.schedule); }
/// Of a kernel that reduces: a block of a warp for a row, the smallest that has the parts of larger ones.
inline ReduceSchedule& by_blocks(Kernel& kernel) {
  ReduceSchedule& schedule = reduce_schedule(kernel);
  schedule.team.mapping = RowMapping::block;
  schedule.team.threads = 32;
  return schedule;
}

}  // namespace tenon::codegen
