// tenon bench: time of a graph, fused and unfused, beside a copy of the same bytes on the same device.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "ir/text.h"
#include "runtime/executable.h"
#include "src/pipeline.h"
#include "tools/command.h"

namespace tenon::tools {
namespace {

struct BenchArguments {
  std::vector<std::string> files;
  CompileArguments compile;  ///< its FILE is not used
  bool json = false;
  double seconds = 1.0;  ///< per measurement
};

/// Memory of a backend for the length of a measurement.
class DeviceMemory {
 public:
  DeviceMemory(const runtime::Backend& backend, std::size_t bytes)
      : backend_(backend), memory_(bytes ? backend.allocate(bytes) : nullptr) {}
  ~DeviceMemory() { backend_.release(memory_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* get() const { return memory_; }

 private:
  const runtime::Backend& backend_;
  void* memory_;
};

// The median of repeated calls in milliseconds, after two to warm up.
double median_ms(const std::function<void()>& call, double seconds) {
  using Clock = std::chrono::steady_clock;
  call();
  call();
  std::vector<double> times;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  } while (times.size() < 5 ||
           (times.size() < 200 && std::chrono::duration<double>(Clock::now() - begin).count() < seconds));
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct Measurement {
  double ms = 0;
  int kernels = 0;
  std::int64_t bytes = 0;  ///< each kernel's inputs and outputs once
};

Measurement measure(const ir::Graph& graph, const Options& options,
                    const std::shared_ptr<const runtime::Backend>& backend, const Bindings& bindings, double seconds) {
  const ir::Plan plan = src::plan(graph, options);
  const Executable executable = src::make_executable(plan, backend, options);
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<Buffer> inputs, outputs;
  const auto add = [&](std::vector<Buffer>& buffers, ir::ValueId value) {
    Buffer buffer;
    buffer.dtype = graph.type(value).dtype;
    for (const Dim& extent : graph.type(value).shape) buffer.shape.push_back(extent.evaluate(bindings));
    memory.push_back(std::make_unique<DeviceMemory>(
        *backend,
        static_cast<std::size_t>(element_count(graph.type(value).shape).evaluate(bindings) * size_of(buffer.dtype))));
    buffer.data = memory.back()->get();
    buffers.push_back(std::move(buffer));
  };
  for (ir::ValueId input : graph.inputs) add(inputs, input);
  for (ir::ValueId output : graph.outputs) add(outputs, output);
  const std::vector<ir::HostArray> data = random_inputs(graph, bindings, 1);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    backend->copy_in(inputs[i].data, data[i].bytes.data(), data[i].bytes.size(), nullptr);
  backend->synchronize(nullptr);
  Measurement result;
  result.ms = median_ms([&] { executable.run(inputs, outputs, bindings); }, seconds);
  result.kernels = static_cast<int>(plan.groups.size());
  for (const ir::Group& group : plan.groups) result.bytes += ir::unavoidable_bytes(plan, group, bindings);
  return result;
}

double copy_ms(const runtime::Backend& backend, std::int64_t bytes, double seconds) {
  const auto half = static_cast<std::size_t>(bytes / 2);
  if (half == 0) return 0;
  const DeviceMemory from(backend, half), to(backend, half);
  return median_ms(
      [&] {
        backend.copy(to.get(), from.get(), half, nullptr);
        backend.synchronize(nullptr);
      },
      seconds);
}

int bench(const BenchArguments& arguments) {
  const Options options = arguments.compile.options();
  const auto backend = src::open_backend(arguments.compile.target, options);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!arguments.json)
    fmt::print("{:<28} {:>9} {:>8} {:>10} {:>9} {:>9} {:>8} {:>9}\n", "graph", "ms", "kernels", "MB moved", "GB/s",
               "of copy", "unfused", "speed-up");
  for (const std::string& file : arguments.files) {
    const ir::Graph graph = ir::read_file(file);
    const Bindings bindings = complete_bindings(graph, arguments.compile.bindings());
    const Measurement fused = measure(graph, options, backend, bindings, arguments.seconds);
    Options apart = options;
    apart.fuse = false;
    const Measurement unfused = measure(graph, apart, backend, bindings, arguments.seconds);
    const double copy = copy_ms(*backend, fused.bytes, arguments.seconds);
    const double rate = static_cast<double>(fused.bytes) / fused.ms / 1e6;
    rows.push_back({{"graph", graph.name},
                    {"target", arguments.compile.target},
                    {"ms", fused.ms},
                    {"kernels", fused.kernels},
                    {"bytes", fused.bytes},
                    {"copy_ms", copy},
                    {"unfused_ms", unfused.ms},
                    {"unfused_kernels", unfused.kernels},
                    {"unfused_bytes", unfused.bytes}});
    if (!arguments.json)
      fmt::print("{:<28} {:>9.4f} {:>8} {:>10.1f} {:>9.1f} {:>8.0f}% {:>8.4f} {:>8.2f}x\n", graph.name, fused.ms,
                 fused.kernels, static_cast<double>(fused.bytes) / 1e6, rate, 100 * copy / fused.ms, unfused.ms,
                 unfused.ms / fused.ms);
  }
  if (arguments.json) write_output("-", rows.dump(2) + "\n");
  return fine;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand("bench", "Time graphs, fused and unfused");
  command->add_option("FILES", arguments->files, "graphs (.tn or .json)")->required();
  command->add_option("--target", arguments->compile.target, "cpu, cuda or auto")->capture_default_str();
  command->add_option("--dim", arguments->compile.dims, "value of a dimension: rows=512 (repeatable)");
  command->add_option("--disable", arguments->compile.disable, "pass or feature to switch off (repeatable)");
  command->add_option("--seconds", arguments->seconds, "time for each measurement")->capture_default_str();
  command->add_flag("--json", arguments->json, "as JSON");
  command->callback([arguments, &action] { action = [arguments] { return bench(*arguments); }; });
}

}  // namespace tenon::tools
