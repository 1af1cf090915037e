// What generated CUDA computes, against the interpreter: graphs as one kernel each, run on the host.
#pragma once

#include <functional>
#include <string>

#include "codegen/emit/source.h"
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

}  // namespace tenon::codegen
