// tenon run: a graph on NumPy files.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "ir/text.h"
#include "src/npy.h"
#include "src/pipeline.h"
#include "tools/command.h"
#include "tools/profile.h"
#include "tools/summary.h"

namespace tenon::tools {
namespace {

struct RunArguments {
  CompileArguments compile;
  std::vector<std::string> inputs, outputs;  ///< name=file.npy
  std::vector<std::string> summaries;        ///< values to summarize, or "all"
  ProfileArguments profile;
  std::int64_t seed = -1;
  bool check = false;
};

std::vector<ir::HostArray> read_inputs(const RunArguments& arguments, const ir::Graph& graph, Bindings& bindings) {
  std::map<std::string, std::string> files;
  for (const std::string& text : arguments.inputs) files.insert(key_value(text, "--input"));
  std::vector<ir::HostArray> arrays;
  if (arguments.seed >= 0) {
    // Symbols that files decide are bound by them; the rest must be given.
    for (ir::ValueId input : graph.inputs)
      if (const auto file = files.find(graph.value(input).name); file != files.end()) {
        const ir::HostArray array = read_npy(file->second, graph.type(input).dtype);
        for (std::size_t i = 0; i < std::min(array.shape.size(), graph.type(input).shape.size()); ++i) {
          const Dim& extent = graph.type(input).shape[i];
          if (graph.symbols.count(extent.str())) bindings.emplace(extent.str(), array.shape[i]);
        }
      }
    bindings = complete_bindings(graph, bindings);
    arrays = random_inputs(graph, bindings, static_cast<std::uint64_t>(arguments.seed));
  } else {
    arrays.resize(graph.inputs.size());
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.value(graph.inputs[i]).name;
    const auto file = files.find(name);
    if (file != files.end()) {
      arrays[i] = read_npy(file->second, graph.type(graph.inputs[i]).dtype);
      files.erase(file);
    } else if (arguments.seed < 0) {
      throw Error(ErrorKind::argument, fmt::format("input '{}' has no data", name), {},
                  fmt::format("give --input {}=FILE.npy, or --random SEED for the inputs without files", name));
    }
  }
  if (!files.empty())
    throw Error(ErrorKind::argument, fmt::format("--input {}: the graph has no such input", files.begin()->first), {},
                "tenon fmt shows the signature");
  return arrays;
}

int compare(const ir::Graph& graph, const std::vector<ir::HostArray>& inputs, const std::vector<ir::HostArray>& outputs,
            const Bindings& bindings) {
  bool equal = true;
  const auto comparisons = ir::compare_with_interpreter(graph, inputs, outputs, bindings);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const ir::Comparison& c = comparisons[i];
    fmt::print(
        "check {}: {}, max abs error {:.3g}, max rel error {:.3g}, {:.2f} of tolerance, {} of {} elements differ{}\n",
        graph.outputs_names[i], c.equal ? "ok" : "DIFFERS", c.max_abs_error, c.max_rel_error, c.max_tolerance_ratio,
        c.mismatches, c.elements, c.undecided ? fmt::format(", {} undecided", c.undecided) : "");
    equal = equal && c.equal;
  }
  return equal ? fine : different;
}

int run(const RunArguments& arguments) {
  const ir::Graph written = ir::read_file(arguments.compile.file);
  const Observed observed = observe(written, arguments.summaries);
  const ir::Graph& graph = observed.graph;
  const Options options = arguments.compile.options();
  Bindings bindings = arguments.compile.bindings();
  const std::vector<ir::HostArray> inputs = read_inputs(arguments, graph, bindings);
  std::map<std::string, std::string> files;
  for (const std::string& text : arguments.outputs) files.insert(key_value(text, "--output"));
  for (const auto& [name, file] : files)
    if (std::find(written.outputs_names.begin(), written.outputs_names.end(), name) == written.outputs_names.end())
      throw Error(ErrorKind::argument, fmt::format("--output {}: the graph has no such output", name), {},
                  "tenon fmt shows what it returns");
  const auto backend = src::open_backend(arguments.compile.target, options);
  const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  std::vector<Array> arrays;
  for (const ir::HostArray& input : inputs) arrays.push_back(to_array(input));
  std::vector<ir::HostArray> outputs;
  for (Array& output : executable(arrays, bindings)) outputs.push_back(to_host(std::move(output)));
  fmt::print("ran {} on {}: {} kernels\n", graph.name, executable.target(), executable.stats().kernels);
  fmt::print("{}", summary_table(observed, outputs));
  if (arguments.profile.table || !arguments.profile.trace.empty())
    profile(executable, inputs, bindings, arguments.profile);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const auto file = files.find(graph.outputs_names[i]); file != files.end()) write_npy(file->second, outputs[i]);
  return arguments.check ? compare(graph, inputs, outputs, bindings) : fine;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a graph on .npy files");
  arguments->compile.add_to(*command);
  command->add_option("--input", arguments->inputs, "x=x.npy (repeatable)");
  command->add_option("--output", arguments->outputs, "y=y.npy (repeatable)");
  command->add_option("--summary", arguments->summaries,
                      "min, max, mean, NaN and Inf counts of a value, intermediate ones too, or of 'all' (repeatable); "
                      "the graph returns these values as well, which changes what is fused");
  command->add_flag("--profile", arguments->profile.table,
                    "time of each kernel by the host's clock, its bytes and bandwidth, beside a copy's");
  command->add_option("--trace", arguments->profile.trace, "the run as a Chrome trace, which Perfetto opens");
  command->add_option("--random", arguments->seed, "seed: random data for inputs without a file")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--check", arguments->check, "compare with the interpreter; exit 4 if results differ");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace tenon::tools
