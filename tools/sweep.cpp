// tenon sweep: graphs drawn at random, each timed beside a copy of the bytes it cannot avoid, and how these shares are
// distributed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "ir/text/text.h"
#include "src/api/write_file.h"
#include "src/driver/backends.h"
#include "tenon_build.h"
#include "tools/command.h"
#include "tools/sweep/distribution.h"
#include "tools/sweep/measure.h"
#include "tools/verdict.h"

namespace tenon::tools {
namespace {

using sweep::Row;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kEachThread = 4;  // graphs that are built before some are timed

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

// How a graph is drawn again alone.
std::string again(const SweepArguments& arguments, std::uint64_t index) {
  std::string text = fmt::format("tenon sweep --seed {} --bytes {}", *arguments.seed, arguments.bytes);
  if (!arguments.draw.classes.empty()) text += fmt::format(" --classes '{}'", fmt::join(arguments.draw.classes, ","));
  return text + fmt::format(" --only {}", index);
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

Json as_json(const SweepArguments& arguments, const Row& row) {
  Json json{{"seed", *arguments.seed},
            {"index", row.index},
            {"class", row.drawn.kind->name},
            {"bytes", row.drawn.bytes},
            {"text", ir::print(row.drawn.graph)},
            {"graph", Json::parse(ir::print_json(row.drawn.graph))}};
  if (!row.error.empty()) {
    json["error"] = row.error;
  } else {
    json.update({{"kernels", row.kernels}, {"compiles", row.compiles}, {"build_ms", row.build_ms}});
    if (row.of_copy > 0)
      json.update({{"ms", row.times.median},
                   {"p10_ms", row.times.p10},
                   {"p90_ms", row.times.p90},
                   {"copy_ms", row.copy.median},
                   {"of_copy", row.of_copy}});
    if (row.first_choice) json["first_choice"] = *row.first_choice;
  }
  if (row.checked || !row.right())
    json.update({{"check", row.equal ? "ok" : "differs"}, {"undecided", row.undecided}, {"unwritten", row.unwritten}});
  return json;
}

constexpr const char* kHead = "{:>6} {:<14} {:>9} {:>10} {:>7} {:>8} {:>8}{}\n";

std::string table_row(const Row& row) {
  const std::string megabytes = fmt::format("{:.1f}", static_cast<double>(row.drawn.bytes) / 1e6);
  if (!row.error.empty())
    return fmt::format("{:>6} {:<14} {:>9} {}\n", row.index, row.drawn.kind->name, megabytes, row.error);
  if (row.of_copy == 0)
    return fmt::format(fmt::runtime(kHead), row.index, row.drawn.kind->name, megabytes, "-", row.kernels,
                       fmt::format("{:.0f} ms", row.build_ms), "-", "");
  std::string tail = row.first_choice ? fmt::format(" {:>12.3f}", *row.first_choice) : "";
  if (row.checked)
    tail += "  " + verdict(row.equal, row.undecided, row.elements);
  else if (!row.equal)
    tail += "  A SCHEDULE DIFFERS";
  if (row.unwritten > 0) tail += fmt::format("  {} ELEMENTS UNWRITTEN", row.unwritten);
  return fmt::format(fmt::runtime(kHead), row.index, row.drawn.kind->name, megabytes,
                     fmt::format("{:.4f}", row.times.median), row.kernels, fmt::format("{:.0f} ms", row.build_ms),
                     fmt::format("{:.1f}%", 100 * row.of_copy), tail);
}

// What is told of some rows: the shares of a copy, and those of the first choice.
struct Shares {
  std::string name;
  std::vector<double> of_copy, first_choice;

  void add(const Row& row) {
    if (row.of_copy == 0) return;  // not timed
    of_copy.push_back(row.of_copy);
    if (row.first_choice) first_choice.push_back(*row.first_choice);
  }
};

std::string size_of(const Row& row) {
  constexpr std::int64_t kMega = 1 << 20;
  if (row.drawn.bytes <= 16 * kMega) return "to 16 MB";
  return row.drawn.bytes <= 256 * kMega ? "to 256 MB" : "beyond";
}

std::vector<Shares> shares_of(const std::vector<Row>& rows) {
  std::vector<Shares> all{{"all", {}, {}}, {"to 16 MB", {}, {}}, {"to 256 MB", {}, {}}, {"beyond", {}, {}}};
  for (const sweep::Class& kind : sweep::all_classes()) all.push_back({kind.name, {}, {}});
  for (const Row& row : rows)
    for (Shares& shares : all)
      if (shares.name == "all" || shares.name == row.drawn.kind->name || shares.name == size_of(row)) shares.add(row);
  std::erase_if(all, [](const Shares& shares) { return shares.of_copy.empty(); });
  return all;
}

Json as_json(const std::vector<double>& shares) {
  const sweep::Distribution d = sweep::distribution(shares);
  return {{"graphs", d.count}, {"median", d.median}, {"p5", d.p5}, {"worst", d.worst}};
}

std::string summary_table(const std::vector<Row>& rows) {
  std::string text = fmt::format("\n{:<14} {:>7} {:>9} {:>7} {:>7}", "of copy", "graphs", "median", "5th", "worst");
  const std::vector<Shares> all = shares_of(rows);
  const bool tuned = !all.empty() && !all[0].first_choice.empty();
  if (tuned) text += fmt::format("   {:>12} {:>7} {:>7}", "first choice", "5th", "worst");
  text += "\n";
  for (const Shares& shares : all) {
    const sweep::Distribution d = sweep::distribution(shares.of_copy), first = sweep::distribution(shares.first_choice);
    text += fmt::format("{:<14} {:>7} {:>8.1f}% {:>6.1f}% {:>6.1f}%", shares.name, d.count, 100 * d.median, 100 * d.p5,
                        100 * d.worst);
    if (tuned) text += fmt::format("   {:>12.3f} {:>7.3f} {:>7.3f}", first.median, first.p5, first.worst);
    text += "\n";
  }
  return text;
}

std::vector<Row> worst_of(std::vector<Row> rows, std::size_t most) {
  std::erase_if(rows, [](const Row& row) { return row.of_copy == 0; });
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.of_copy < b.of_copy; });
  rows.resize(std::min(rows.size(), most));
  return rows;
}

std::string worst_table(const SweepArguments& arguments, const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : worst_of(rows, arguments.worst))
    text += fmt::format("{:>6.1f}%  {:<14} {}\n", 100 * row.of_copy, row.drawn.kind->name, again(arguments, row.index));
  for (const Row& row : rows)
    if (!row.right() || !row.error.empty())
      text += fmt::format("{:>7}  {:<14} {}\n", row.error.empty() ? "WRONG" : "failed", row.drawn.kind->name,
                          again(arguments, row.index));
  return text.empty() ? text : "\n" + text;
}

Json document_of(const SweepArguments& arguments, const runtime::Backend& backend, const std::vector<Row>& rows) {
  Json document{{"tenon", TENON_VERSION " " TENON_COMMIT},
                {"target", backend.target().kind == codegen::TargetKind::cpu ? "cpu" : backend.target().arch},
                {"device", backend.device_name()},
                {"seed", *arguments.seed},
                {"bytes", arguments.bytes},
                {"classes", arguments.draw.classes},
                {"seconds", arguments.measure.seconds},
                {"flush_bytes", arguments.measure.flush_bytes}};
  for (const Shares& shares : shares_of(rows)) {
    document["of_copy"][shares.name] = as_json(shares.of_copy);
    if (!shares.first_choice.empty()) document["first_choice"][shares.name] = as_json(shares.first_choice);
  }
  document["graphs"] = Json::array();
  for (const Row& row : rows) document["graphs"].push_back(as_json(arguments, row));
  return document;
}

int run_sweep(const SweepArguments& arguments) {
  const auto begin = Clock::now();
  const Options options = arguments.compile.options();
  warn_of_cache(options);
  const auto backend = src::open_backend(arguments.compile.target, options);
  sweep::Measure measure(backend, options, arguments.measure);
  if (!arguments.json)
    print(fmt::format("seed {}, {}, {} bytes; an empty launch takes {:.4f} ms\n", *arguments.seed,
                      arguments.measure.build_only ? backend->target().arch : backend->device_name(), arguments.bytes,
                      measure.floor_ms()) +
          fmt::format(fmt::runtime(kHead), "index", "class", "MB", "ms", "kernels", "built", "of copy",
                      arguments.measure.tune ? " first choice" : ""));
  std::vector<Row> rows;
  std::uint64_t next = 0;
  double building = 0;
  const std::size_t batch = kEachThread * std::max(1U, std::thread::hardware_concurrency());
  const auto keep = [&] {
    if (!arguments.output.empty())
      write_output(arguments.output, document_of(arguments, *backend, rows).dump(1) + "\n");
  };
  while (seconds_since(begin) < arguments.budget && (next < arguments.count || measure.waiting() > 0)) {
    if (measure.waiting() == 0) {
      keep();  // what is measured outlives a crash of what comes
      const auto started = Clock::now();
      const std::size_t some = std::min<std::uint64_t>(batch, arguments.count - next);
      measure.build(*arguments.seed, arguments.first + next, some, arguments.draw);
      next += some;
      building += seconds_since(started);
    }
    rows.push_back(measure.next());
    if (!arguments.save.empty()) write_graph(arguments, rows.back().drawn);
    if (!arguments.json) print(table_row(rows.back()));
    flush_stdout();
    if (rows.back().lost) break;
  }
  keep();
  if (arguments.json) {
    write_output("-", document_of(arguments, *backend, rows).dump(1) + "\n");
  } else {
    print((arguments.measure.build_only ? "" : summary_table(rows)) + worst_table(arguments, rows) +
          fmt::format("\n{} of {} in {:.1f} s, of which {:.1f} s were building\n", rows.size(),
                      counted(static_cast<std::int64_t>(arguments.count), "graph"), seconds_since(begin), building));
  }
  if (!rows.empty() && rows.back().lost) return no_device;
  const bool wrong = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.right(); });
  const bool failures = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.error.empty(); });
  return wrong ? different : failures ? failed : fine;
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
