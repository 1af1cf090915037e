// tenon sweep: graphs drawn at random, each timed beside a copy of the bytes it cannot avoid, and how these shares are
// distributed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "ir/text/text.h"
#include "src/api/write_file.h"
#include "src/driver/backends.h"
#include "tenon_build.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/sweep/report.h"

namespace tenon::tools {
namespace {

using sweep::Json;
using sweep::Row;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kEachThread = 4;  // graphs that are built before some are timed
constexpr double kKeepSeconds = 10;     // between two writings of the JSON

struct SweepArguments {
  CompileArguments compile;  ///< its FILE and sizes are not used
  sweep::DrawSettings draw;
  sweep::MeasureSettings measure;
  std::string bytes = "1M:4G", check_bytes = "64K", output, save;
  std::optional<std::uint64_t> seed, only;
  std::uint64_t first = 0, count = 200;
  std::size_t worst = 10;
  double budget = INFINITY;
  bool json = false, check = false, no_flush = false;
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// "64M" is 64 * 2^20.
std::int64_t bytes_from(const std::string& text, const std::string& option) {
  constexpr std::string_view kUnits = "KMG";
  const std::size_t unit = text.empty() ? std::string::npos : kUnits.find(text.back());
  const std::string digits = unit == std::string::npos ? text : text.substr(0, text.size() - 1);
  const bool number =
      !digits.empty() && digits.size() < 12 && digits.find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t bytes = number ? std::stoll(digits) << (unit == std::string::npos ? 0 : 10 * (unit + 1)) : 0;
  if (bytes <= 0)
    throw Error(ErrorKind::argument, fmt::format("{}: '{}' is no number of bytes", option, text), {},
                "write 4096, 64K, 16M or 2G");
  return bytes;
}

void read_bytes(SweepArguments& arguments) {
  const std::size_t colon = arguments.bytes.find(':');
  const std::string least = arguments.bytes.substr(0, colon);
  arguments.draw.least_bytes = bytes_from(least, "--bytes");
  arguments.draw.most_bytes = colon == std::string::npos ? arguments.draw.least_bytes
                                                         : bytes_from(arguments.bytes.substr(colon + 1), "--bytes");
  if (arguments.draw.least_bytes > arguments.draw.most_bytes)
    throw Error(ErrorKind::argument, fmt::format("--bytes {}: the first is the larger", arguments.bytes), {},
                "write the least, then the most: --bytes 64M:1G");
}

sweep::Recipe recipe_of(const SweepArguments& arguments) {
  return {*arguments.seed, arguments.bytes, arguments.draw.classes};
}

std::string write_graph(const SweepArguments& arguments, const sweep::Drawn& drawn) {
  const std::string path = fmt::format("{}/{}.tn", arguments.save.empty() ? "." : arguments.save, drawn.graph.name);
  write_file(path, ir::print(drawn.graph));
  return path;
}

int draw_only(const SweepArguments& arguments) {
  const sweep::Drawn drawn = sweep::draw(*arguments.seed, *arguments.only, arguments.draw);
  print(fmt::format("# {}, {:.1f} MB, {}\n{}", drawn.kind->name, static_cast<double>(drawn.bytes) / 1e6,
                    write_graph(arguments, drawn), ir::print(drawn.graph)));
  return fine;
}

Json about(const SweepArguments& arguments, const runtime::Backend& backend) {
  return {{"tenon", TENON_VERSION " " TENON_COMMIT},
          {"target", backend.target().kind == codegen::TargetKind::cpu ? "cpu" : backend.target().arch},
          {"device", backend.device_name()},
          {"seconds", arguments.measure.seconds},
          {"flush_bytes", arguments.measure.flush_bytes}};
}

int code_of(const std::vector<Row>& rows) {
  if (!rows.empty() && rows.back().lost) return no_device;
  if (!std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.right(); })) return different;
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.error.empty(); }) ? fine : failed;
}

int run_sweep(const SweepArguments& arguments) {
  const auto begin = Clock::now();
  const Options options = arguments.compile.options();
  warn_of_cache(options);
  const auto backend = src::open_backend(arguments.compile.target, options);
  sweep::Measure measure(backend, options, arguments.measure);
  const sweep::Recipe recipe = recipe_of(arguments);
  if (!arguments.json)
    print(fmt::format("seed {}, {}, {} bytes; an empty launch takes {:.4f} ms\n", recipe.seed,
                      arguments.measure.build_only ? backend->target().arch : backend->device_name(), recipe.bytes,
                      measure.floor_ms()) +
          sweep::table_head(arguments.measure.tune));
  std::vector<Row> rows;
  const auto document = [&] {
    Json all = about(arguments, *backend);
    all.update(sweep::document_of(recipe, rows));
    return all.dump(1) + "\n";
  };
  std::uint64_t next = 0;
  double building = 0, kept = 0;
  const std::size_t batch = kEachThread * std::max(1U, std::thread::hardware_concurrency());
  Progress progress("drawing graphs");
  while (seconds_since(begin) < arguments.budget && (next < arguments.count || measure.waiting() > 0)) {
    if (measure.waiting() == 0) {
      if (!arguments.output.empty() && seconds_since(begin) > kept + kKeepSeconds) {
        write_output(arguments.output, document());  // what is measured outlives a crash of what comes
        kept = seconds_since(begin);
      }
      const auto started = Clock::now();
      const std::size_t some = std::min<std::uint64_t>(batch, arguments.count - next);
      progress.say(fmt::format("building graphs {} to {} of {}", next + 1, next + some, arguments.count));
      measure.build(recipe.seed, arguments.first + next, some, arguments.draw);
      next += some;
      building += seconds_since(started);
    }
    progress.say(fmt::format("timing graph {} of {}", rows.size() + 1, arguments.count));
    rows.push_back(measure.next());
    progress.hide();
    if (!arguments.save.empty()) write_graph(arguments, rows.back().drawn);
    if (!arguments.json) print(sweep::table_row(rows.back()));
    flush_stdout();
    if (rows.back().lost) break;
  }
  progress.end();
  if (!arguments.output.empty()) write_output(arguments.output, document());
  if (arguments.json) {
    write_output("-", document());
  } else {
    print((arguments.measure.build_only ? "" : sweep::summary_table(rows)) +
          sweep::worst_table(recipe, rows, arguments.worst) +
          fmt::format("\n{} of {} in {:.1f} s, of which {:.1f} s were building\n", rows.size(),
                      counted(static_cast<std::int64_t>(arguments.count), "graph"), seconds_since(begin), building));
  }
  return code_of(rows);
}

int sweep_graphs(SweepArguments arguments) {
  read_bytes(arguments);
  if (!arguments.seed) arguments.seed = std::random_device{}() % 1000000000;
  if (arguments.only) return draw_only(arguments);
  arguments.measure.most_bytes =
      static_cast<std::int64_t>(sweep::kNear * static_cast<double>(arguments.draw.most_bytes)) + 8;
  if (arguments.no_flush) arguments.measure.flush_bytes = 0;
  if (arguments.check)
    arguments.measure.check_bytes = static_cast<double>(bytes_from(arguments.check_bytes, "--check-bytes"));
  return run_sweep(arguments);
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command = app.add_subcommand("sweep", "Draw graphs at random and time each beside a copy of its bytes");
  command->add_option("--target", arguments->compile.target, "cpu, cuda or auto")->capture_default_str();
  command->add_option("--bytes", arguments->bytes, "that a graph cannot avoid, from least to most: 64M:1G")
      ->capture_default_str();
  command->add_option("--count", arguments->count, "graphs")->check(whole_number("--count 200"))->capture_default_str();
  command->add_option("--seed", arguments->seed, "of the drawing (default: a new one, which is printed)");
  command->add_option("--first", arguments->first, "index of the first graph")->capture_default_str();
  command->add_option("--only", arguments->only, "print the graph of this index, write its .tn, and time nothing");
  command->add_option("--classes", arguments->draw.classes, "of graphs, by name")->delimiter(',');
  command->add_option("--seconds", arguments->measure.seconds, "time for each measurement")
      ->check(positive_number("--seconds 0.02"))
      ->capture_default_str();
  command->add_option("--budget", arguments->budget, "seconds after which no graph is begun")
      ->check(positive_number("--budget 240"));
  command->add_option("--worst", arguments->worst, "how many of the slowest to list")->capture_default_str();
  command->add_option("--save", arguments->save, "folder for the graphs, as sweep_SEED_INDEX.tn");
  command->add_option("--disable", arguments->compile.disable, "what to switch off, a name of `tenon switches`");
  command->add_flag("--build", arguments->measure.build_only,
                    "build the graphs and time nothing; --target sm_90a needs no GPU");
  command->add_flag("--tune", arguments->measure.tune, "search for better schedules of each kernel; slow");
  command->add_flag("--check", arguments->check,
                    "compare with the interpreter at a smaller size; exit 4 if results differ");
  command->add_option("--check-bytes", arguments->check_bytes, "that size")->capture_default_str();
  command->add_flag("--no-flush", arguments->no_flush, "leave the caches as the run before left them");
  command->add_flag("--json", arguments->json, "as JSON");
  command->add_option("-o,--output", arguments->output, "file to write the JSON to as well");
  command->callback([arguments, &action] { action = [arguments] { return sweep_graphs(*arguments); }; });
}

}  // namespace tenon::tools
