// tenon run: a graph on NumPy files.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "src/api/npy.h"
#include "src/driver/pipeline.h"
#include "src/measure/observe.h"
#include "src/measure/profile.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/verdict.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::ordered_json;

struct RunArguments {
  CompileArguments compile;
  std::vector<std::string> inputs, outputs;  ///< name=file.npy
  std::vector<std::string> summaries;        ///< values to summarize, or "all"
  std::string trace;                         ///< file of the Chrome trace; empty: none
  std::string save_inputs;                   ///< folder for the inputs; empty: none
  std::int64_t seed = -1;
  bool check = false, profile = false, json = false;
};

using Files = std::map<std::string, std::string>;

// name=file of an option that may stand several times; `known` are the names that the graph has.
Files files_of(const std::vector<std::string>& texts, const std::string& option, const std::string& what,
               const std::vector<std::string>& known) {
  Files files;
  for (const std::string& text : texts) {
    const auto [name, file] = key_value(text, option);
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(ErrorKind::argument, fmt::format("{} {}: the graph has no such {}", option, name, what), {},
                  known.empty() ? fmt::format("it has no {}", what)
                                : fmt::format("its {}s are {}", what, fmt::join(known, ", ")));
    if (!files.emplace(name, file).second)
      throw Error(ErrorKind::argument, fmt::format("{} {} stands twice", option, name), {},
                  fmt::format("give each {} one file", what));
  }
  return files;
}

std::int64_t count_of_dashes(const Files& files) {
  return std::count_if(files.begin(), files.end(), [](const auto& entry) { return entry.second == "-"; });
}

std::map<std::string, ir::HostArray> read_files(const RunArguments& arguments, const ir::Graph& graph) {
  std::map<std::string, DType> dtypes;
  std::vector<std::string> names;
  for (ir::ValueId input : graph.inputs) {
    names.push_back(graph.value(input).name);
    dtypes[names.back()] = graph.type(input).dtype;
  }
  const Files files = files_of(arguments.inputs, "--input", "input", names);
  if (count_of_dashes(files) + (arguments.compile.file == "-" ? 1 : 0) > 1)
    throw Error(ErrorKind::argument, "standard input is to be read twice", {}, "give all but one as files");
  std::map<std::string, ir::HostArray> arrays;
  for (const auto& [name, file] : files) arrays[name] = read_npy(file, dtypes[name]);
  return arrays;
}

// Symbols that files decide are bound by them; the rest must be given.
void bind_by_files(const ir::Graph& graph, const std::map<std::string, ir::HostArray>& files, Bindings& bindings) {
  for (ir::ValueId input : graph.inputs) {
    const auto file = files.find(graph.value(input).name);
    if (file == files.end()) continue;
    const std::vector<std::int64_t>& shape = file->second.shape;
    for (std::size_t i = 0; i < std::min(shape.size(), graph.type(input).shape.size()); ++i) {
      const Dim& extent = graph.type(input).shape[i];
      if (graph.symbols.count(extent.str())) bindings.emplace(extent.str(), shape[i]);
    }
  }
}

std::vector<ir::HostArray> read_inputs(const RunArguments& arguments, const ir::Graph& graph, Bindings& bindings) {
  std::map<std::string, ir::HostArray> files = read_files(arguments, graph);
  std::vector<ir::HostArray> arrays(graph.inputs.size());
  if (arguments.seed >= 0) {
    bind_by_files(graph, files, bindings);
    bindings = complete_bindings(graph, bindings);
    arrays = random_inputs(graph, bindings, static_cast<std::uint64_t>(arguments.seed));
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.value(graph.inputs[i]).name;
    if (const auto file = files.find(name); file != files.end()) {
      arrays[i] = std::move(file->second);
    } else if (arguments.seed < 0) {
      throw Error(ErrorKind::argument, fmt::format("input '{}' has no data", name), {},
                  fmt::format("give --input {}=FILE.npy, or --random SEED for the inputs without files", name));
    }
  }
  return arrays;
}

void save_inputs(const RunArguments& arguments, const ir::Graph& graph, const std::vector<ir::HostArray>& inputs) {
  if (arguments.save_inputs.empty()) return;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    write_npy(fmt::format("{}/{}.npy", arguments.save_inputs, graph.value(graph.inputs[i]).name), inputs[i]);
}

// A number that is none (NaN, infinity) is null.
Json as_json(const std::vector<ValueSummary>& values) {
  Json list = Json::array();
  for (const ValueSummary& value : values) {
    const Summary& s = value.summary;
    list.push_back({{"name", value.name},
                    {"dtype", name_of(value.dtype)},
                    {"shape", value.shape},
                    {"min", s.min},
                    {"max", s.max},
                    {"mean", s.mean},
                    {"std", s.standard_deviation},
                    {"nan", s.nans},
                    {"inf", s.infinities},
                    {"zeros", s.zeros},
                    {"elements", s.elements}});
  }
  return list;
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

std::string line_of(const std::string& name, const ir::Comparison& c, bool colour) {
  const std::string found = verdict(c.equal, c.undecided, c.elements);
  const bool said = found.starts_with("UNDECIDED");
  return fmt::format("check {}: {}, worst error {:.2g} of its tolerance, {:.3g} absolute; {} of {} elements differ{}\n",
                     name, colour ? toned(found) : found, c.max_tolerance_ratio, c.max_abs_error, c.mismatches,
                     c.elements, c.undecided > 0 && !said ? ", undecided " + share_of(c.undecided, c.elements) : "");
}

Files output_files(const RunArguments& arguments, const ir::Graph& written) {
  Files files = files_of(arguments.outputs, "--output", "output", written.outputs_names);
  const std::int64_t arrays = count_of_dashes(files), texts = arguments.trace == "-" ? 1 : 0;
  if (arrays > 0 && isatty(STDOUT_FILENO) != 0)
    throw Error(ErrorKind::argument, "--output to standard output, which is a terminal", {},
                "name a file, or send it to one or to a pipe: > y.npy");
  if (arrays + texts + (arguments.json ? 1 : 0) > 1)
    throw Error(ErrorKind::argument, "standard output is to hold several things", {},
                "only one of --output NAME=-, --trace - and --json may write there; give the others files");
  return files;
}

Bindings all_bindings(const ir::Graph& graph, const std::vector<ir::HostArray>& inputs, const Bindings& given) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const ir::HostArray& input : inputs) shapes.push_back(input.shape);
  return ir::bind_symbols(graph, shapes, given);
}

// What is said of a run: text as it goes, or all of it as one JSON document at the end. The text makes way for a file
// that standard output is to hold.
class Report {
 public:
  Report(bool json, bool aside) : json_(json), aside_(aside) {}
  void add(const std::string& text) const {
    if (json_) return;
    if (aside_) {
      std::fputs(text.c_str(), stderr);
    } else {
      print(text);
    }
  }
  bool aside() const { return aside_; }
  void add(const char* key, Json value) { document_[key] = std::move(value); }
  void finish() const {
    if (json_) write_output("-", document_.dump(2) + "\n");
  }

 private:
  bool json_, aside_;
  Json document_;
};

void write_array(const std::string& path, const ir::HostArray& array) {
  if (path != "-") return write_npy(path, array);
  print(npy_head(array));
  print(npy_data(array));
}

bool check(Report& report, const ir::Graph& graph, const std::vector<ir::HostArray>& inputs,
           const std::vector<Array>& outputs, const Bindings& bindings) {
  std::vector<ir::HostArray> actual;
  for (const Array& output : outputs) actual.push_back(to_host(output));
  const auto comparisons = waiting(graph.name + ": checking with the interpreter",
                                   [&] { return ir::compare_with_interpreter(graph, inputs, actual, bindings); });
  Json list = Json::array();
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    report.add(line_of(graph.outputs_names[i], comparisons[i], !report.aside()));
    list.push_back(as_json(graph.outputs_names[i], comparisons[i]));
  }
  report.add("check", list);
  return std::all_of(comparisons.begin(), comparisons.end(), [](const ir::Comparison& c) { return c.equal; });
}

int run(const RunArguments& arguments) {
  const ir::Graph written = ir::read_file(arguments.compile.file);
  const src::Observed observed = src::observe(written, arguments.summaries);
  const ir::Graph& graph = observed.graph;
  Bindings bindings = arguments.compile.bindings();
  const Files files = output_files(arguments, written);
  const std::vector<ir::HostArray> inputs = read_inputs(arguments, graph, bindings);
  save_inputs(arguments, graph, inputs);
  Options options = arguments.compile.options();
  warn_of_cache(options);
  const auto backend = src::open_backend(arguments.compile.target, options);
  options.typical = all_bindings(graph, inputs, bindings);  // planned for the sizes that run
  std::vector<Array> arrays;
  for (const ir::HostArray& input : inputs) arrays.push_back(to_array(input));
  const Executable executable = waiting(graph.name + ": planning", [&] {
    return src::make_executable(src::plan(graph, *backend, options), backend, options);
  });
  const std::vector<Array> outputs =
      waiting(graph.name + ": building and running", [&] { return executable(arrays, bindings); });

  Report report(arguments.json, count_of_dashes(files) > 0 || arguments.trace == "-");
  report.add(fmt::format("ran {} on {}: {}\n", graph.name, executable.target(),
                         counted(executable.stats().kernels, "kernel")));
  report.add("graph", graph.name);
  report.add("target", executable.target());
  report.add("kernels", executable.stats().kernels);
  const std::vector<ValueSummary> values = summaries_of(observed, arrays, outputs);
  report.add(str(values));
  if (!values.empty()) report.add("summary", as_json(values));
  if (arguments.profile || !arguments.trace.empty()) {
    const runtime::Profile profile = waiting(graph.name + ": timing its kernels",
                                             [&] { return src::profile(executable, inputs, bindings, options); });
    if (arguments.profile) report.add(profile_table(profile));
    if (arguments.profile) report.add("profile", profile_json(profile));
    if (!arguments.trace.empty()) write_output(arguments.trace, chrome_trace(profile));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const auto file = files.find(graph.outputs_names[i]); file != files.end())
      write_array(file->second, to_host(outputs[i]));
  const bool right = !arguments.check || check(report, graph, inputs, outputs, bindings);
  report.finish();
  return right ? fine : different;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a graph on .npy files");
  arguments->compile.add_to(*command);
  command->add_option("--input", arguments->inputs, "x=x.npy (repeatable; - for stdin)");
  command->add_option("--output", arguments->outputs, "y=y.npy (repeatable; - for stdout)");
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
      ->check(whole_number("--random 1"));
  command->add_option(
      "--save-inputs", arguments->save_inputs,
      "folder for the inputs that were used, as NAME.npy each: what --random made, to run it elsewhere");
  command->add_flag("--check", arguments->check, "compare with the interpreter; exit 4 if results differ");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace tenon::tools
