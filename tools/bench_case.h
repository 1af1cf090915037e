// One graph's times on one target, beside a copy of as many bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/stopwatch.h"
#include "tenon/compile.h"

namespace tenon::tools {

using runtime::Stopwatch;

struct BenchSettings {
  double seconds = 0.2;                                ///< each measurement
  std::int64_t flush_bytes = std::int64_t{256} << 20;  ///< written before each run; 0: none
  bool unfused = false;                                ///< measure without fusion too
  bool check = false;                                  ///< compare with the interpreter
  std::string save;                                    ///< folder for the inputs' and outputs' bytes; empty: none
};

struct BenchResult {
  std::string graph;
  Times times;
  int kernels = 0;
  double build_ms = 0;         ///< plan, generate, compile or load from the cache; host's clock
  int compiles = 0;            ///< kernels that no cache had
  std::int64_t bytes = 0;      ///< unavoidable (src/measure/work.h)
  double flops = 0;            ///< of contractions
  double instructions = 0;     ///< of one lane, as the planner counts them for the fused plan
  double gigaslots_s = 0;      ///< the planner's rate of these (ir::CostModel)
  std::int64_t unwritten = 0;  ///< elements of outputs that no kernel wrote
  Times copy;                  ///< of `bytes`, half read and half written; the faster of the driver's and a kernel's
  bool copied_by_kernel = false;
  Times unfused;
  int unfused_kernels = 0;
  bool checked = false, equal = true;        ///< by the interpreter
  std::int64_t undecided = 0, elements = 0;  ///< of the outputs that were checked

  double gb_s() const { return times.median > 0 ? static_cast<double>(bytes) / times.median / 1e6 : 0; }
  double tflop_s() const { return times.median > 0 ? flops / times.median / 1e9 : 0; }
  double copy_share() const { return times.median > 0 ? copy.median / times.median : 0; }
  bool right() const { return unwritten == 0 && equal; }
};

/// `say` is told what is done, before each part that may take long. Error: whatever compiling and running may throw.
BenchResult bench_case(const ir::Graph& graph, const Bindings& bindings,
                       const std::shared_ptr<const runtime::Backend>& backend, const Options& options,
                       const BenchSettings& settings, const std::function<void(const char*)>& say);

}  // namespace tenon::tools
