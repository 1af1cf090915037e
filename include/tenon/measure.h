// How long an executable takes on its device, and what the values of a graph are like in numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/array_refs.h"
#include "tenon/compile.h"
#include "tenon/device_array.h"
#include "tenon/graph.h"
#include "tenon/summary.h"
#include "tenon/times.h"

namespace tenon {

struct MeasureOptions {
  double seconds = 0.2;  ///< of each measurement, about
  bool flush = true;     ///< the caches are written over before each sample, so that inputs come from memory
};

/// Whole runs beside a copy of as many bytes.
struct Benchmark {
  Times run;               ///< on the device, without what the host does before
  Times copy;              ///< of `bytes`, half read and half written: the faster of the driver's and a kernel's
  std::int64_t bytes = 0;  ///< that no plan avoids: inputs that are used, and results, once each
  double flops = 0;        ///< of matmuls and attentions, two for each multiplication
  int kernels = 0;

  double gb_s() const { return run.median > 0 ? static_cast<double>(bytes) / run.median / 1e6 : 0; }
  double tflop_s() const { return run.median > 0 ? flops / run.median / 1e9 : 0; }
  double copy_share() const { return run.median > 0 ? copy.median / run.median : 0; }
};

/// Runs on the inputs, with results of its own, and on copies of what the graph updates. Error(argument) as for a run.
Benchmark benchmark(const Executable& executable, const DeviceArrayRefs& inputs, const MeasureOptions& options = {},
                    const Bindings& bindings = {});

/// One kernel by itself. docs/profiling.md explains the figures.
struct KernelProfile {
  std::string name, kernel_class, operators;  ///< "reduce_sum", "reduce", "sum div mul"
  std::vector<std::string> reads, writes;     ///< values, by name
  Times times;                                ///< of launches by themselves
  double bytes = 0;                           ///< read and written, each element once
  double roof_ms = 0;                         ///< the least that the device's peak rates allow
  std::string bound;                          ///< what sets it: "memory" or "arithmetic"

  double gb_s() const { return times.mean > 0 ? bytes / times.mean / 1e6 : 0; }
  double roof_share() const { return times.mean > 0 ? roof_ms / times.mean : 0; }
};

struct Profile {
  std::string device;
  double copy_gb_s = 0;  ///< of a copy, measured in the same run
  double run_ms = 0;     ///< one whole run, from the first kernel's begin to the last one's end
  std::vector<KernelProfile> kernels;
  std::string table;  ///< the same as text
  std::string trace;  ///< the whole run as a Chrome trace (JSON), which ui.perfetto.dev opens
};

/// Times each kernel of a run on the inputs, as benchmark() times whole runs.
Profile profile(const Executable& executable, const DeviceArrayRefs& inputs, const MeasureOptions& options = {},
                const Bindings& bindings = {});

/// A value of a graph, in numbers.
struct ValueSummary {
  std::string name;  ///< "%12" of a value that has none
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  Summary summary;
};

/// Runs the graph on `target` and says what the values of these names are like, intermediate ones too; without names
/// all are looked at, but unnamed literals. They are returned for it, which may split kernels: 16-bit values on the way
/// may be rounded where they were not. Error(argument) for a name that no value has.
std::vector<ValueSummary> summarize_values(const Graph& graph, const ArrayRefs& inputs,
                                           const std::vector<std::string>& names = {},
                                           const std::string& target = "auto",
                                           const Options& options = default_options());

/// A line for each, under a head.
std::string str(const std::vector<ValueSummary>& values);

}  // namespace tenon
