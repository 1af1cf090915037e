// tenon fmt, ops, switches and version: what needs no compiler.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "src/driver/switches.h"
#include "tenon_build.h"
#include "tools/command.h"

namespace tenon::tools {
namespace {

std::string signature(const ir::OpInfo& op) {
  std::string text(op.name);
  text += op.operands < 0 ? "(x, …" : "(";
  for (int i = 0; i < op.operands; ++i) text += fmt::format("{}{}", i ? ", " : "", static_cast<char>("abc"[i % 3]));
  for (const ir::AttrSpec& attribute : op.attributes)
    text += fmt::format("{}{}{}", text.back() == '(' ? "" : ", ", attribute.name,
                        attribute.required ? "" : "=" + attribute.default_text);
  return text + ")";
}

const char* kind_text(ir::Kind kind) {
  switch (kind) {
    case ir::Kind::map: return "map";
    case ir::Kind::reduce: return "reduce";
    case ir::Kind::view: return "view";
    case ir::Kind::source: return "source";
    case ir::Kind::random: return "random";
    case ir::Kind::contract: return "contract";
    case ir::Kind::composite: return "composite";
  }
  return "";
}

int ops(bool json) {
  if (json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const ir::OpInfo& op : ir::all_ops()) {
      nlohmann::ordered_json row{{"name", op.name},
                                 {"kind", kind_text(op.kind)},
                                 {"operands", op.operands},
                                 {"results", op.results},
                                 {"doc", op.doc}};
      row["attributes"] = nlohmann::ordered_json::array();
      for (const ir::AttrSpec& attribute : op.attributes)
        row["attributes"].push_back(
            {{"name", attribute.name}, {"required", attribute.required}, {"default", attribute.default_text}});
      rows.push_back(std::move(row));
    }
    write_output("-", rows.dump(2) + "\n");
    return fine;
  }
  std::string text;
  for (const ir::OpInfo& op : ir::all_ops())
    text += fmt::format("{:<10} {}\n           {}\n", kind_text(op.kind), signature(op), op.doc);
  write_output("-", text);
  return fine;
}

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
std::string formatted(const std::string& path, bool json) {
  const ir::GraphText file = ir::read_text(path);
  if (!json && !file.json) return ir::format(file.text, file.name);
  const ir::Graph graph = file.json ? ir::parse_json(file.text, file.name) : ir::parse(file.text, file.name);
  return json ? ir::print_json(graph) : ir::print(graph);
}

}  // namespace

void add_ops(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("ops", "List the operators");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, &action] { action = [json] { return ops(*json); }; });
}

void add_switches(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("switches", "List what --disable and TENON_DISABLE switch off, to compare");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, &action] { action = [json] { return switches(*json); }; });
}

void add_fmt(CLI::App& app, Action& action) {
  struct Arguments {
    std::string file, output;
    bool json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("fmt", "Write a graph in canonical form");
  command->add_option("FILE", arguments->file, "graph (.tn or .json; - for stdin)")->required();
  command->add_flag("--json", arguments->json, "as JSON");
  command->add_option("-o,--output", arguments->output, "file to write (default: stdout)");
  command->callback([arguments, &action] {
    action = [arguments] {
      write_output(arguments->output, formatted(arguments->file, arguments->json));
      return fine;
    };
  });
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
