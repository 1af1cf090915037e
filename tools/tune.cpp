// tenon tune: searches the schedules of graphs' kernels on this device and keeps the fastest for later runs.
#include "src/driver/tune.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tenon_build.h"
#include "tools/bench_data.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/terminal.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::ordered_json;

struct TuneArguments : TimingArguments {
  double seconds = src::TuneSettings{}.seconds;
  bool again = false;
};

// How near the heuristics' schedules are to the best ones found, in geometric mean and at worst.
class Nearness {
 public:
  void add(const src::KernelTuning& tuning) {
    const double share = tuning.best_us() / tuning.heuristic_us();
    logs_ += std::log(share);
    worst_ = std::min(worst_, share);
    ++count_;
  }
  int count() const { return count_; }
  double mean() const { return count_ == 0 ? 1 : std::exp(logs_ / count_); }
  double worst() const { return worst_; }

 private:
  double logs_ = 0, worst_ = 1;
  int count_ = 0;
};

Json as_json(const std::string& graph, const src::KernelTuning& tuning) {
  Json trials = Json::array();
  for (const src::Trial& trial : tuning.trials) {
    Json entry{{"schedule", codegen::print(trial.schedule)}, {"us", trial.us}};
    if (trial.different > 0) entry["different"] = trial.different;
    if (!trial.refused.empty()) entry["refused"] = trial.refused;
    trials.push_back(std::move(entry));
  }
  return {{"graph", graph},
          {"kernel", tuning.kernel},
          {"heuristic_us", tuning.heuristic_us()},
          {"best_us", tuning.best_us()},
          {"best", codegen::print(tuning.trials[tuning.best].schedule)},
          {"trials", std::move(trials)}};
}

std::string table_row(const std::string& graph, const src::KernelTuning& tuning) {
  std::size_t refused = 0, wrong = 0;
  for (const src::Trial& trial : tuning.trials) {
    refused += trial.refused.empty() ? 0 : 1;
    wrong += trial.different > 0 ? 1 : 0;
  }
  std::string text = fmt::format("{:<40} {:<24} {:>10.2f} {:>10.2f} {:>6.3f} {:>6}  {}", graph, tuning.kernel,
                                 tuning.heuristic_us(), tuning.best_us(), tuning.best_us() / tuning.heuristic_us(),
                                 tuning.trials.size(), codegen::print(tuning.trials[tuning.best].schedule));
  if (tuning.best == 0) text += " (the heuristics' choice)";
  if (refused > 0) text += fmt::format("  {} did not compile", refused);
  if (wrong > 0) text += toned(Tone::bad, fmt::format("  {} WRONG", wrong));
  return text + "\n";
}

std::vector<src::KernelTuning> tune_graph(const ir::Graph& graph, const TuneArguments& arguments,
                                          const std::shared_ptr<const runtime::Backend>& backend,
                                          const Options& options) {
  const Bindings bindings = complete_bindings(graph, arguments.compile.bindings());
  Progress progress(graph.name + ": building");
  const BenchData data = random_data(graph, bindings, backend, options);
  const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  executable.prepare(bindings);
  const auto tunings = src::open_tunings(options, arguments.again);
  src::TuneSettings settings;
  settings.seconds = arguments.seconds;
  settings.progress = [&](const std::string& kernel, std::size_t done, std::size_t all) {
    progress.say(fmt::format("{} {}", graph.name, kernel), done, all);
  };
  return src::tune(executable.impl(), *executable.impl().record_for(bindings), data.inputs, data.outputs, *tunings,
                   options, settings);
}

int tune(const TuneArguments& arguments) {
  const Options options = arguments.compile.options();
  warn_of_cache(options);
  const auto backend = src::open_backend(arguments.compile.target, options);
  Json document{{"tenon", TENON_VERSION " " TENON_COMMIT}, {"kernels", Json::array()}};
  Nearness nearness;
  int code = fine;
  if (!arguments.json)
    print(toned(Tone::heading, fmt::format("{:<40} {:<24} {:>10} {:>10} {:>6} {:>6}  best\n", "graph", "kernel",
                                           "before us", "best us", "share", "tried")));
  // As far as it went: a file that is there already when the rest is cut off.
  const auto write_document = [&] {
    document["heuristic_share"] = {{"geometric_mean", nearness.mean()}, {"least", nearness.worst()}};
    if (!arguments.output.empty()) write_output(arguments.output, document.dump(2) + "\n");
  };
  for (const std::string& file : arguments.files) {
    const ir::Graph graph = ir::read_file(file);
    for (const src::KernelTuning& tuning : tune_graph(graph, arguments, backend, options)) {
      document["kernels"].push_back(as_json(graph.name, tuning));
      nearness.add(tuning);
      for (const src::Trial& trial : tuning.trials)
        if (trial.different > 0) code = different;
      if (!arguments.json) print(table_row(graph.name, tuning));
      flush_stdout();
    }
    if (arguments.output != "-") write_document();
  }
  write_document();
  if (arguments.json) {
    write_output("-", document.dump(2) + "\n");
  } else if (nearness.count() == 0) {
    print("nothing to tune: no kernel has more than one candidate that is not tuned already (--again)\n");
  } else {
    print(fmt::format("the heuristics reach {:.3f} of the best in geometric mean, {:.3f} at worst, of {}\n",
                      nearness.mean(), nearness.worst(), counted(nearness.count(), "kernel")));
  }
  return code;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command = app.add_subcommand("tune", "Try several schedules for each kernel and keep the fastest");
  arguments->add_to(*command, arguments->seconds);
  command->add_flag("--again", arguments->again, "also kernels that are tuned already");
  command->callback([arguments, &action] { action = [arguments] { return tune(*arguments); }; });
}

}  // namespace tenon::tools
