// tenon calibrate: the numbers that the planner predicts with, measured on the device by kernels of Tenon's own and
// kept for it. Each is the rate of one small graph that is bound by it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/fusion/roofline.h"
#include "ir/text/text.h"
#include "runtime/stopwatch.h"
#include "src/driver/cost_model.h"
#include "src/driver/pipeline.h"
#include "tools/command.h"
#include "tools/progress.h"

namespace tenon::tools {
namespace {

using runtime::Memory;
using runtime::Stopwatch;
using BackendPointer = std::shared_ptr<const runtime::Backend>;

constexpr double kSeconds = 0.1;  // each measurement
constexpr int kChain = 33;        // kernels, each of which reads what the one before wrote
constexpr int kPowers = 64;       // multiplications of each of four chains of an arithmetic-bound kernel

/// A graph's time, and what the planner counts in it.
struct Measured {
  double us = 0;
  ir::Estimate estimate;  ///< of all kernels together
};

ir::Estimate sum_of(const ir::Plan& plan) {
  ir::Estimate sum;
  for (const ir::Group& group : plan.groups) ir::add_work(sum, group.estimate);
  return sum;
}

class Calibration {
 public:
  Calibration(BackendPointer backend, const Options& options)
      : backend_(std::move(backend)),
        options_(options),
        cpu_(backend_->target().kind == codegen::TargetKind::cpu),
        // Launches are queued while the flush runs, so that the host's own time does not show.
        time_(*backend_, kSeconds, cpu_ ? 0 : std::int64_t{256} << 20) {}

  ir::CostModel run() const {
    ir::CostModel cost = start();
    const Measured one = chain(1, 1024), many = chain(kChain, 1024);
    cost.launch_us = (many.us - one.us) / (kChain - 1);
    cost.bandwidth_gb_s = rate(cost, measure(copy(), {{"n", cpu_ ? 1 << 24 : 1 << 27}}));
    cost.l2_bandwidth_gb_s = cache_rate(cost);
    cost.gigaslots_s = instruction_rate(cost);
    cost.tensor_tflops = contraction_rate(cost, cost.tensor_cores.bf16 ? DType::bf16 : DType::f16);
    cost.lane_tflops = contraction_rate(cost, DType::f32);
    if (cpu_) cost.block_gb_s = std::max(cost.block_gb_s, cost.bandwidth_gb_s / backend_->target().threads);
    return cost;
  }

 private:
  // What is not measured: sizes, and how kernels are made.
  ir::CostModel start() const {
    const codegen::Target& target = backend_->target();
    ir::CostModel cost = src::assumed_cost_model(target);
    cost.device = backend_->device_name();
    if (cpu_) cost.l2_bytes = static_cast<double>(target.l3_bytes);
    return cost;
  }

  static std::string copy() { return "graph copy(x: f32[n]) {\n  y = neg(x)\n  return y\n}\n"; }

  Measured chain(int kernels, std::int64_t elements) const {
    std::string text = "graph chain(x0: f32[n]) {\n";
    for (int i = 1; i <= kernels; ++i) text += fmt::format("  x{} = {}(x{})\n", i, i % 2 ? "neg" : "abs", i - 1);
    Options apart = options_;
    apart.fuse = false;
    return measure(fmt::format("{}  return x{}\n}}\n", text, kernels), {{"n", elements}}, apart);
  }

  static double rate(const ir::CostModel& cost, const Measured& measured) {
    return measured.estimate.bytes / std::max(measured.us - cost.launch_us, 0.1 * measured.us) * 1e-3;
  }

  // The values of a chain that fit into the last-level cache are read from there.
  double cache_rate(const ir::CostModel& cost) const {
    constexpr double kMostBytes = 16e6;  // of a value: a virtual machine may see a cache that it does not have
    const auto elements = static_cast<std::int64_t>(std::min(0.4 * cost.l2_bytes, kMostBytes) / 4);
    const Measured one = chain(1, elements), many = chain(kChain, elements);
    const Measured step{(many.us - one.us) / (kChain - 1), one.estimate};
    return std::max(cost.bandwidth_gb_s, rate(cost, step));
  }

  double instruction_rate(const ir::CostModel& cost) const {
    std::string text = "graph powers(x: f32[n]) {\n";
    for (int i = 0; i < 4; ++i) {
      text += fmt::format("  p{}_0 = add(x, {})\n", i, i);
      for (int k = 1; k < kPowers; ++k) text += fmt::format("  p{0}_{1} = mul(p{0}_{2}, x)\n", i, k, k - 1);
    }
    text += fmt::format("  y = add(add(p0_{0}, p1_{0}), add(p2_{0}, p3_{0}))\n  return y\n}}\n", kPowers - 1);
    const Measured measured = measure(text, {{"n", cpu_ ? 1 << 20 : 1 << 24}});
    return measured.estimate.slots / compute_us(cost, measured) * 1e-3;
  }

  double contraction_rate(const ir::CostModel& cost, DType dtype) const {
    Options by_lanes = options_;
    by_lanes.disable.insert("split_f32");
    const Measured measured =
        measure(fmt::format("graph square(a: {0}[n, n], b: {0}[n, n]) {{\n  c = matmul(a, b)\n  return c\n}}\n",
                            name_of(dtype)),
                {{"n", cpu_ ? 512 : 4096}}, by_lanes);
    return measured.estimate.flops / compute_us(cost, measured) * 1e-6;
  }

  // C of a kernel that takes launch + C + overlap * M.
  static double compute_us(const ir::CostModel& cost, const Measured& measured) {
    const double memory_us = measured.estimate.bytes / cost.bandwidth_gb_s * 1e-3;
    return std::max(measured.us - cost.launch_us - cost.overlap * memory_us, 0.1 * measured.us);
  }

  Measured measure(const std::string& text, const Bindings& bindings) const {
    return measure(text, bindings, options_);
  }

  Measured measure(const std::string& text, const Bindings& bindings, Options options) const {
    options.typical = bindings;
    const ir::Graph graph = ir::parse(text);
    ir::Plan plan = src::plan(graph, backend_->target().kind, options);
    Measured measured{0, sum_of(plan)};
    const Executable executable = src::make_executable(std::move(plan), backend_, options);
    std::vector<Memory> memory;
    std::vector<Buffer> inputs, outputs;
    const auto add = [&](std::vector<Buffer>& buffers, ir::ValueId value) {
      constexpr unsigned char kByte = 0x3f;  // 0.75 in f32, in bf16 too: no product of it is slow
      Buffer buffer{nullptr, graph.type(value).dtype, {}};
      std::int64_t bytes = size_of(buffer.dtype);
      for (const Dim& extent : graph.type(value).shape) buffer.shape.push_back(extent.evaluate(bindings));
      for (std::int64_t extent : buffer.shape) bytes *= extent;
      memory.push_back(allocate(*backend_, bytes));
      buffer.data = memory.back().get();
      backend_->fill(buffer.data, kByte, static_cast<std::size_t>(bytes), nullptr);
      buffers.push_back(buffer);
    };
    for (ir::ValueId input : graph.inputs) add(inputs, input);
    for (ir::ValueId output : graph.outputs) add(outputs, output);
    measured.us = 1e3 * time_([&] { executable.run_async(inputs, outputs, nullptr, bindings); }).median;
    backend_->synchronize(nullptr);
    return measured;
  }

  BackendPointer backend_;
  Options options_;
  bool cpu_;
  Stopwatch time_;
};

int calibrate(const std::string& target, bool json) {
  const Options options = default_options();
  const BackendPointer backend = src::open_backend(target, options);
  if (backend->device_name().empty())
    throw Error(ErrorKind::argument, fmt::format("--target {}: there is nothing to measure", target), {},
                "use --target cpu, cuda or auto");
  const ir::CostModel assumed = src::assumed_cost_model(backend->target());
  const ir::CostModel cost =
      waiting("measuring " + backend->device_name(), [&] { return Calibration(backend, options).run(); });
  src::keep_cost_model(*backend, options, cost);
  nlohmann::ordered_json document{{"device", cost.device}};
  std::string text = fmt::format("{}\n{:<20} {:>14} {:>14}\n", cost.device, "", "here", assumed.device);
  for (const src::CostField& field : src::cost_fields()) {
    document[field.name] = cost.*field.value;
    text += fmt::format("{:<20} {:>14.6g} {:>14.6g}\n", field.name, cost.*field.value, assumed.*field.value);
  }
  write_output("-", json ? document.dump(2) + "\n" : text + fmt::format("kept in {}\n", options.cache_dir));
  return fine;
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  const auto target = std::make_shared<std::string>("auto");
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure the numbers that the planner predicts with, on an idle device, and keep them for it");
  command->add_option("--target", *target, "cpu, cuda or auto")->capture_default_str();
  command->add_flag("--json", *json, "as JSON");
  command->callback([target, json, &action] { action = [target, json] { return calibrate(*target, *json); }; });
}

}  // namespace tenon::tools
