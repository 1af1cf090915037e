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
#include "tools/weights.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::ordered_json;

struct RunArguments {
  CompileArguments compile;
  std::vector<std::string> inputs, outputs;  ///< name=file.npy
  std::vector<std::string> weights;          ///< files of inputs by name
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
void bind_by_files(const ir::Graph& graph, const std::vector<ir::HostArray>& arrays, const std::vector<bool>& there,
                   Bindings& bindings) {
  for (std::size_t input = 0; input < arrays.size(); ++input) {
    const std::vector<std::int64_t>& shape = arrays[input].shape;
    const Shape& wanted = graph.type(graph.inputs[input]).shape;
    for (std::size_t i = 0; there[input] && i < std::min(shape.size(), wanted.size()); ++i)
      if (graph.symbols.count(wanted[i].str())) bindings.emplace(wanted[i].str(), shape[i]);
  }
}

[[noreturn]] void refuse_missing(const ir::Graph& graph, const std::vector<bool>& there) {
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < there.size(); ++i)
    if (!there[i]) missing.push_back(fmt::format("'{}'", graph.value(graph.inputs[i]).name));
  const std::string first = missing.front().substr(1, missing.front().size() - 2);
  throw Error(
      ErrorKind::argument,
      missing.size() == 1 ? fmt::format("input {} has no data", missing.front())
                          : fmt::format("inputs {} have no data", fmt::join(missing, ", ")),
      {},
      fmt::format("give --input {}=FILE.npy, --weights FILE for inputs by their names, or --random SEED for the "
                  "inputs without files",
                  first));
}

// What the inputs are: of files, else of weights, else random. `weights` keeps those that are needed; their elements
// are copied only where something else than the run reads them.
std::vector<ir::HostArray> read_inputs(const RunArguments& arguments, const ir::Graph& graph, GivenWeights& weights,
                                       Bindings& bindings) {
  const bool copies = arguments.check || !arguments.summaries.empty() || !arguments.save_inputs.empty();
  std::map<std::string, ir::HostArray> files = read_files(arguments, graph);
  std::vector<ir::HostArray> arrays(graph.inputs.size());
  std::vector<bool> there(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto file = files.find(graph.value(graph.inputs[i]).name);
    there[i] = file != files.end() || weights.inputs[i] != nullptr;
    if (file != files.end()) {
      arrays[i] = std::move(file->second);
      weights.inputs[i] = nullptr;
    } else if (const Weights::Entry* entry = weights.inputs[i]) {
      arrays[i] = copies ? to_host(entry->view.array()) : ir::HostArray{entry->view.dtype, entry->view.shape, {}};
    }
  }
  if (std::count(there.begin(), there.end(), false) == 0 && arguments.seed < 0) return arrays;
  if (arguments.seed < 0) refuse_missing(graph, there);
  bind_by_files(graph, arrays, there, bindings);
  bindings = complete_bindings(graph, bindings);
  std::vector<ir::HostArray> random = random_inputs(graph, bindings, static_cast<std::uint64_t>(arguments.seed));
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (!there[i]) arrays[i] = std::move(random[i]);
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

std::vector<Array> run_on(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                          const Bindings& bindings) {
  std::vector<Array> arrays;
  for (const ir::HostArray& input : inputs) arrays.push_back(to_array(input));
  return executable(arrays, bindings);
}

int run(const RunArguments& arguments) {
  const ir::Graph written = ir::read_file(arguments.compile.file);
  const src::Observed observed = src::observe(written, arguments.summaries);
  const ir::Graph& graph = observed.graph;
  Bindings bindings = arguments.compile.bindings();
  const Files files = output_files(arguments, written);
  GivenWeights weights = read_weights(arguments.weights, graph);
  const std::vector<ir::HostArray> inputs = read_inputs(arguments, graph, weights, bindings);
  save_inputs(arguments, graph, inputs);
  Options options = arguments.compile.options();
  warn_of_cache(options);
  const auto backend = src::open_backend(arguments.compile.target, options);
  options.typical = all_bindings(graph, inputs, bindings);  // planned for the sizes that run
  const Executable executable = waiting(graph.name + ": planning", [&] {
    const Executable compiled = src::compile_graph(graph, backend, options);
    const Weights bound = weights.by_input(graph);
    return bound.empty() ? compiled : compiled.bind(bound);
  });
  std::vector<Array> arrays;  // all, to be summarized
  std::vector<ir::HostArray> free;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arrays.push_back(to_array(inputs[i]));
    if (weights.inputs[i] == nullptr) free.push_back(inputs[i]);
  }
  const std::vector<Array> outputs =
      waiting(graph.name + ": building and running", [&] { return run_on(executable, free, bindings); });

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
    const runtime::Profile profile =
        waiting(graph.name + ": timing its kernels", [&] { return src::profile(executable, free, bindings, options); });
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
  add_weights(*command, arguments->weights);
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
