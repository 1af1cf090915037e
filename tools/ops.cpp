// tenon ops: the table of operators, and of some what they mean, with numbers.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/ops/suggest.h"
#include "ir/text/text.h"
#include "tools/command.h"
#include "tools/op_examples.h"

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

const char* accepts_text(ir::Accepts accepts) {
  switch (accepts) {
    case ir::Accepts::Num: return "numbers";
    case ir::Accepts::Real: return "reals";
    case ir::Accepts::Integer: return "integers";
    case ir::Accepts::Bits: return "integers and bools";
    case ir::Accepts::Bool: return "bools";
    case ir::Accepts::Any: return "any dtype";
  }
  return "";
}

const char* yields_text(ir::Yields yields) {
  switch (yields) {
    case ir::Yields::Same: return "gives their dtype";
    case ir::Yields::Boolean: return "gives bool";
    case ir::Yields::Index: return "gives i64";
    case ir::Yields::Special: return "gives the dtype that it says";
  }
  return "";
}

nlohmann::ordered_json as_json(const ir::OpInfo& op) {
  nlohmann::ordered_json row{{"name", op.name},
                             {"kind", kind_text(op.kind)},
                             {"operands", op.operands},
                             {"results", op.results},
                             {"doc", op.doc}};
  row["attributes"] = nlohmann::ordered_json::array();
  for (const ir::AttrSpec& attribute : op.attributes)
    row["attributes"].push_back(
        {{"name", attribute.name}, {"required", attribute.required}, {"default", attribute.default_text}});
  return row;
}

// "  y = [0.5, 2]"; the further rows of a matrix stand below the first.
std::string value_text(const std::string& name, const ir::HostArray& array) {
  std::string text = str(to_array(array)), indented = fmt::format("  {} = ", name);
  text.erase(0, text.find('\n') + 1);  // its type, which the graph says
  const std::string margin(indented.size(), ' ');
  for (const char c : text) {
    indented += c;
    if (c == '\n') indented += margin;
  }
  return indented + "\n";
}

std::string values_text(const OpExample& example) {
  std::string text;
  for (std::size_t i = 0; i < example.inputs.size(); ++i)
    text += value_text(example.graph.value(example.graph.inputs[i]).name, example.inputs[i]);
  for (std::size_t i = 0; i < example.outputs.size(); ++i)
    text += value_text(example.graph.outputs_names[i], example.outputs[i]);
  return text;
}

std::string described(const ir::OpInfo& op) {
  std::string text = fmt::format("{}\n  {}\n  {}", signature(op), op.doc, kind_text(op.kind));
  if (op.kind == ir::Kind::map || op.kind == ir::Kind::reduce)
    text += fmt::format(", takes {}, {}", accepts_text(op.accepts), yields_text(op.yields));
  const OpExample example = example_of(op);
  return text + "\n\n" + ir::print(example.graph) + "\n" + values_text(example);
}

const ir::OpInfo& op_named(const std::string& name) {
  if (const auto op = ir::find_op(name)) return ir::info(*op);
  const std::string_view meant = ir::suggest_op(name);
  throw Error(ErrorKind::argument, fmt::format("there is no operator '{}'", name), {},
              meant.empty() ? "`tenon ops` lists them" : fmt::format("did you mean {}? `tenon ops` lists all", meant));
}

int ops(const std::vector<std::string>& names, bool json) {
  std::vector<const ir::OpInfo*> chosen;
  for (const std::string& name : names) chosen.push_back(&op_named(name));
  if (names.empty())
    for (const ir::OpInfo& op : ir::all_ops()) chosen.push_back(&op);
  std::string text;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ir::OpInfo* op : chosen) {
    if (json) {
      rows.push_back(as_json(*op));
      if (!names.empty()) rows.back()["example"] = ir::print(example_of(*op).graph);
    } else if (names.empty()) {
      text += fmt::format("{:<10} {}\n           {}\n", kind_text(op->kind), signature(*op), op->doc);
    } else {
      text += (text.empty() ? "" : "\n") + described(*op);
    }
  }
  write_output("-", json ? rows.dump(2) + "\n" : text);
  return fine;
}

}  // namespace

void add_ops(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  const auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("ops", "List the operators, or say what some mean");
  command->add_option("NAME", *names, "operators to show with an example");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, names, &action] { action = [json, names] { return ops(*names, *json); }; });
}

}  // namespace tenon::tools
