// tenon fmt, switches and version: what needs no compiler.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "src/driver/switches.h"
#include "tenon_build.h"
#include "tools/command.h"

namespace tenon::tools {
namespace {

int switches(bool json) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string text;
  for (const src::Switch& row : src::all_switches()) {
    rows.push_back({{"name", row.name}, {"part", row.part}, {"what", row.what}});
    text += fmt::format("{:<8} {:<17} {}\n", row.part, row.name, row.what);
  }
  write_output("-", json ? rows.dump(2) + "\n" : text);
  return fine;
}

// Text stays text, comments included; JSON, or a request for it, goes through the graph.
std::string formatted(const ir::GraphText& file, bool json) {
  if (!json && !file.json) return ir::format(file.text, file.name);
  const ir::Graph graph = file.json ? ir::parse_json(file.text, file.name) : ir::parse(file.text, file.name);
  return json ? ir::print_json(graph) : ir::print(graph);
}

}  // namespace

void add_switches(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("switches", "List what --disable and TENON_DISABLE switch off, to compare");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, &action] { action = [json] { return switches(*json); }; });
}

namespace {

struct FmtArguments {
  std::vector<std::string> files;
  std::string output;
  bool json = false, in_place = false, check = false;
};

// Says which files are not in canonical form.
int check_format(const FmtArguments& arguments) {
  std::string wrong;
  for (const std::string& file : arguments.files)
    if (const ir::GraphText text = ir::read_text(file); formatted(text, arguments.json) != text.text)
      wrong += file + "\n";
  print(wrong);
  return wrong.empty() ? fine : different;
}

int format_files(const FmtArguments& arguments) {
  const bool several = arguments.files.size() > 1;
  if (arguments.in_place && !arguments.output.empty())
    throw Error(ErrorKind::argument, "fmt: --in-place and --output", {}, "give one of them");
  for (const std::string& file : arguments.files)
    if (arguments.in_place && file == "-")
      throw Error(ErrorKind::argument, "fmt: standard input has no place", {}, "leave --in-place out");
  if (several && !arguments.in_place && !arguments.check)
    throw Error(ErrorKind::argument, fmt::format("fmt: {} files", arguments.files.size()), {},
                "add --in-place to rewrite them, or --check to look only");
  if (arguments.check) return check_format(arguments);
  for (const std::string& file : arguments.files) {
    const ir::GraphText old = ir::read_text(file);
    const std::string text = formatted(old, arguments.json);
    if (!arguments.in_place)
      write_output(arguments.output, text);
    else if (text != old.text)
      write_output(file, text);
  }
  return fine;
}

}  // namespace

void add_fmt(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<FmtArguments>();
  CLI::App* command = app.add_subcommand("fmt", "Write graphs in canonical form");
  command->add_option("FILE", arguments->files, "graph (.tn or .json; - for stdin), or several with -i or --check")
      ->required();
  command->add_flag("--json", arguments->json, "as JSON");
  command->add_option("-o,--output", arguments->output, "file to write (default: stdout)");
  command->add_flag("-i,--in-place", arguments->in_place, "rewrite each FILE that is not in this form");
  command->add_flag("--check", arguments->check, "name the files that are not, and exit 4 if there are some");
  command->callback([arguments, &action] { action = [arguments] { return format_files(*arguments); }; });
}

void add_version(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, &action] {
    action = [json] {
      const nlohmann::ordered_json document{{"version", TENON_VERSION}, {"commit", TENON_COMMIT}};
      write_output("-", *json ? document.dump() + "\n" : fmt::format("tenon {} ({})\n", TENON_VERSION, TENON_COMMIT));
      return fine;
    };
  });
}

}  // namespace tenon::tools
