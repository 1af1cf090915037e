// tenon run: a graph on NumPy files.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/text.h"
#include "src/npy.h"
#include "src/pipeline.h"
#include "tools/command.h"
#include "tools/profile.h"
#include "tools/summary.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::ordered_json;

struct RunArguments {
  CompileArguments compile;
  std::vector<std::string> inputs, outputs;  ///< name=file.npy
  std::vector<std::string> summaries;        ///< values to summarize, or "all"
  std::string trace;                         ///< file of the Chrome trace; empty: none
  std::int64_t seed = -1;
  bool check = false, profile = false, json = false;
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

Json as_json(const std::string& name, const ir::Comparison& c) {
  return {{"name", name},
          {"equal", c.equal},
          {"max_abs_error", c.max_abs_error},
          {"max_rel_error", c.max_rel_error},
          {"of_tolerance", c.max_tolerance_ratio},
          {"mismatches", c.mismatches},
          {"elements", c.elements},
          {"undecided", c.undecided}};
}

std::string line_of(const std::string& name, const ir::Comparison& c) {
  return fmt::format(
      "check {}: {}, max abs error {:.3g}, max rel error {:.3g}, {:.2f} of tolerance, {} of {} elements differ{}\n",
      name, c.equal ? "ok" : "DIFFERS", c.max_abs_error, c.max_rel_error, c.max_tolerance_ratio, c.mismatches,
      c.elements, c.undecided ? fmt::format(", {} undecided", c.undecided) : "");
}

std::map<std::string, std::string> output_files(const RunArguments& arguments, const ir::Graph& written) {
  std::map<std::string, std::string> files;
  for (const std::string& text : arguments.outputs) files.insert(key_value(text, "--output"));
  for (const auto& [name, file] : files)
    if (std::find(written.outputs_names.begin(), written.outputs_names.end(), name) == written.outputs_names.end())
      throw Error(ErrorKind::argument, fmt::format("--output {}: the graph has no such output", name), {},
                  "tenon fmt shows what it returns");
  return files;
}

Bindings all_bindings(const ir::Graph& graph, const std::vector<ir::HostArray>& inputs, const Bindings& given) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const ir::HostArray& input : inputs) shapes.push_back(input.shape);
  return ir::bind_symbols(graph, shapes, given);
}

// What is said of a run: text as it goes, or all of it as one JSON document at the end.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}
  void add(const std::string& text) const {
    if (!json_) fmt::print("{}", text);
  }
  void add(const char* key, Json value) { document_[key] = std::move(value); }
  void finish() const {
    if (json_) write_output("-", document_.dump(2) + "\n");
  }

 private:
  bool json_;
  Json document_;
};

bool check(Report& report, const ir::Graph& graph, const std::vector<ir::HostArray>& inputs,
           const std::vector<Array>& outputs, const Bindings& bindings) {
  std::vector<ir::HostArray> actual;
  for (const Array& output : outputs) actual.push_back(to_host(output));
  const auto comparisons = ir::compare_with_interpreter(graph, inputs, actual, bindings);
  Json list = Json::array();
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    report.add(line_of(graph.outputs_names[i], comparisons[i]));
    list.push_back(as_json(graph.outputs_names[i], comparisons[i]));
  }
  report.add("check", list);
  return std::all_of(comparisons.begin(), comparisons.end(), [](const ir::Comparison& c) { return c.equal; });
}

int run(const RunArguments& arguments) {
  const ir::Graph written = ir::read_file(arguments.compile.file);
  const Observed observed = observe(written, arguments.summaries);
  const ir::Graph& graph = observed.graph;
  Bindings bindings = arguments.compile.bindings();
  const std::vector<ir::HostArray> inputs = read_inputs(arguments, graph, bindings);
  const auto files = output_files(arguments, written);
  Options options = arguments.compile.options();
  const auto backend = src::open_backend(arguments.compile.target, options);
  options.typical = all_bindings(graph, inputs, bindings);  // planned for the sizes that run
  const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  std::vector<Array> arrays;
  for (const ir::HostArray& input : inputs) arrays.push_back(to_array(input));
  const std::vector<Array> outputs = executable(arrays, bindings);

  Report report(arguments.json);
  report.add(fmt::format("ran {} on {}: {} kernels\n", graph.name, executable.target(), executable.stats().kernels));
  report.add("graph", graph.name);
  report.add("target", executable.target());
  report.add("kernels", executable.stats().kernels);
  report.add(summary_table(observed, arrays, outputs));
  if (!observed.places.empty()) report.add("summary", summary_json(observed, arrays, outputs));
  if (arguments.profile || !arguments.trace.empty()) {
    const runtime::Profile profile = tools::profile(executable, inputs, bindings, options);
    if (arguments.profile) report.add(profile_table(profile));
    if (arguments.profile) report.add("profile", profile_json(profile));
    if (!arguments.trace.empty()) write_output(arguments.trace, chrome_trace(profile));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const auto file = files.find(graph.outputs_names[i]); file != files.end())
      write_npy(file->second, to_host(outputs[i]));
  const bool right = !arguments.check || check(report, graph, inputs, outputs, bindings);
  report.finish();
  return right ? fine : different;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a graph on .npy files");
  arguments->compile.add_to(*command);
  command->add_option("--input", arguments->inputs, "x=x.npy (repeatable)");
  command->add_option("--output", arguments->outputs, "y=y.npy (repeatable)");
  command
      ->add_option("--summary", arguments->summaries,
                   "dtype, shape, min, max, mean, standard deviation, counts of NaN, Inf and zeros of these values, "
                   "intermediate ones too, or of 'all' (h,y; repeatable); the graph returns the intermediate ones as "
                   "well, which changes "
                   "what is fused")
      ->delimiter(',');
  command->add_flag("--profile", arguments->profile,
                    "each kernel's times by the target's clock, its bytes and bandwidth, and how near that is to what "
                    "the device can do");
  command->add_option("--trace", arguments->trace, "file for the run as a Chrome trace, which Perfetto opens");
  command->add_flag("--json", arguments->json, "what is printed, as JSON");
  command->add_option("--random", arguments->seed, "seed: random data for inputs without a file")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--check", arguments->check, "compare with the interpreter; exit 4 if results differ");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace tenon::tools
