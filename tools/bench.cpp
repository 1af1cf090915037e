// tenon bench: how fast graphs run, as a table and as JSON.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tenon_build.h"
#include "tools/bench_case.h"
#include "tools/command.h"
#include "tools/first_result.h"
#include "tools/progress.h"
#include "tools/terminal.h"
#include "tools/verdict.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::ordered_json;

struct BenchArguments : TimingArguments {
  BenchSettings settings;
  bool no_flush = false, first = false;
};

Json as_json(const BenchResult& r) {
  Json row{{"graph", r.graph},
           {"ms", r.times.median},
           {"p10_ms", r.times.p10},
           {"p90_ms", r.times.p90},
           {"samples", r.times.samples},
           {"kernels", r.kernels},
           {"bytes", r.bytes},
           {"gb_s", r.gb_s()},
           {"instructions", r.instructions},
           {"gigaslots_s", r.gigaslots_s},
           {"copy_ms", r.copy.median},
           {"copy_by", r.copied_by_kernel ? "kernel" : "driver"},
           {"copy_share", r.copy_share()},
           {"build_ms", r.build_ms},
           {"compiles", r.compiles},
           {"unwritten", r.unwritten}};
  if (r.flops > 0) row.update({{"flops", r.flops}, {"tflop_s", r.tflop_s()}});
  if (r.unfused_kernels > 0) row.update({{"unfused_ms", r.unfused.median}, {"unfused_kernels", r.unfused_kernels}});
  if (r.checked) row.update({{"check", r.equal ? "ok" : "differs"}, {"undecided", r.undecided}});
  return row;
}

std::string table_head(const BenchSettings& settings) {
  return fmt::format("{:<40} {:>10} {:>6} {:>8} {:>9} {:>8} {:>8} {:>8}{}\n", "graph", "ms", "+-%", "kernels", "MB",
                     "GB/s", "of copy", "TFLOP/s",
                     settings.unfused ? fmt::format(" {:>10} {:>8} {:>9}", "unfused", "kernels", "speed-up") : "");
}

std::string table_row(const BenchResult& r) {
  std::string text =
      fmt::format("{:<40} {:>10.4f} {:>6.1f} {:>8} {:>9.1f} {:>8.1f} {:>7.1f}% {:>8}", r.graph, r.times.median,
                  50 * (r.times.p90 - r.times.p10) / r.times.median, r.kernels, static_cast<double>(r.bytes) / 1e6,
                  r.gb_s(), 100 * r.copy_share(), r.flops > 0 ? fmt::format("{:.1f}", r.tflop_s()) : "-");
  if (r.unfused_kernels > 0)
    text += fmt::format(" {:>10.4f} {:>8} {:>8.2f}x", r.unfused.median, r.unfused_kernels,
                        r.unfused.median / r.times.median);
  if (r.unwritten > 0) text += fmt::format("  {} ELEMENTS UNWRITTEN", r.unwritten);
  if (r.checked) text += "  check " + toned(verdict(r.equal, r.undecided, r.elements));
  return text + "\n";
}

BenchResult timed(const ir::Graph& graph, const Bindings& bindings,
                  const std::shared_ptr<const runtime::Backend>& backend, const Options& options,
                  const BenchSettings& settings) {
  Progress progress(graph.name);
  return bench_case(graph, bindings, backend, options, settings,
                    [&](const char* what) { progress.say(fmt::format("{}: {}", graph.name, what)); });
}

int bench(const BenchArguments& arguments) {
  const Options options = arguments.compile.options();
  warn_of_cache(options);
  const auto backend = src::open_backend(arguments.compile.target, options);
  BenchSettings settings = arguments.settings;
  if (arguments.no_flush) settings.flush_bytes = 0;
  Json document{{"tenon", TENON_VERSION " " TENON_COMMIT},
                {"target", backend->target().kind == codegen::TargetKind::cpu ? "cpu" : backend->target().arch},
                {"device", backend->device_name()},
                {"seconds", settings.seconds},
                {"flush_bytes", settings.flush_bytes},
                {"cases", Json::array()}};
  int code = fine;
  if (!arguments.json) print(toned(Tone::heading, table_head(settings)));
  for (const std::string& file : arguments.files) {
    const ir::Graph graph = ir::read_file(file);
    try {
      const Bindings bindings = complete_bindings(graph, arguments.compile.bindings());
      const BenchResult result = timed(graph, bindings, backend, options, settings);
      document["cases"].push_back(as_json(result));
      if (!result.right()) code = different;
      if (!arguments.json) print(table_row(result));
    } catch (const Error& error) {  // the other graphs still have their times
      if (error.kind() == ErrorKind::device_lost || error.kind() == ErrorKind::argument ||
          error.kind() == ErrorKind::io)
        throw;
      document["cases"].push_back({{"graph", graph.name}, {"error", error.message()}});
      std::fprintf(stderr, "%s %s\n", toned(Tone::bad, graph.name + ":", stderr).c_str(), error.what());
      code = failed;
    }
    flush_stdout();
  }
  if (arguments.json) write_output("-", document.dump(2) + "\n");
  if (!arguments.output.empty()) write_output(arguments.output, document.dump(2) + "\n");
  return code;
}

int bench_first(const BenchArguments& arguments) {
  if (arguments.files.size() != 1)
    throw Error(ErrorKind::argument, "--first with more than one graph", {}, "run tenon once for each graph");
  const ir::Graph graph = ir::read_file(arguments.files[0]);
  const FirstResult first = first_result(graph, complete_bindings(graph, arguments.compile.bindings()),
                                         arguments.compile.target, arguments.compile.options());
  const Json document{{"tenon", TENON_VERSION " " TENON_COMMIT},
                      {"graph", graph.name},
                      {"device_ms", first.device_ms},
                      {"first_ms", first.first_ms},
                      {"kernels", first.kernels},
                      {"compiles", first.compiles}};
  if (arguments.json) {
    write_output("-", document.dump(2) + "\n");
  } else {
    print(fmt::format("{}: first result after {:.2f} ms ({} of {} compiled), the device opened in {:.2f} ms\n",
                      graph.name, first.first_ms, first.compiles, counted(first.kernels, "kernel"), first.device_ms));
  }
  if (!arguments.output.empty()) write_output(arguments.output, document.dump(2) + "\n");
  return fine;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand("bench", "Time graphs beside a device copy of the bytes they cannot avoid");
  arguments->add_to(*command, arguments->settings.seconds);
  command->add_flag("--unfused", arguments->settings.unfused, "time one kernel for each operator as well");
  command->add_flag("--no-flush", arguments->no_flush, "leave the caches as the run before left them");
  command->add_flag(
      "--check", arguments->settings.check,
      "compare with the interpreter, which takes about a microsecond an element; exit 4 if results differ");
  command->add_option("--save", arguments->settings.save,
                      "folder for the bytes of inputs and outputs, as GRAPH.in0.bin and GRAPH.out0.bin");
  command->add_flag("--first", arguments->first, "instead, how long this process takes to one graph's first result");
  command->callback([arguments, &action] {
    action = [arguments] { return arguments->first ? bench_first(*arguments) : bench(*arguments); };
  });
}

}  // namespace tenon::tools
