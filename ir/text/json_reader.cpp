// JSON to graph. Every number's kind and range is looked at before it is taken (nlohmann converts silently), every key
// must be known, and errors name the place by JSON pointer: "block.json#/nodes/3/attrs/axis".
#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph/build.h"
#include "ir/graph/limits.h"
#include "ir/ops/signature.h"
#include "ir/ops/suggest.h"
#include "ir/text/json_document.h"
#include "ir/text/lexer.h"
#include "ir/text/naming.h"
#include "ir/text/parse_values.h"
#include "ir/text/read_checks.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

using Json = nlohmann::json;

// A value of the document and the way to it.
struct Field {
  const Json& json;
  const Field* parent = nullptr;
  std::string_view key = {};  // in an object
  std::size_t index = 0;      // in an array
  const std::string* file = nullptr;

  std::string pointer() const {
    if (parent == nullptr) return *file + "#";
    return parent->pointer() + "/" +
           (parent->json.is_array() ? std::to_string(index)
            : is_identifier(key)    ? std::string(key)
                                    : "?");
  }
  Place place(std::string_view value = {}) const { return {pointer(), 0, 0, std::string(value)}; }
  Field at(std::string_view name) const { return {json.at(std::string(name)), this, name}; }
  Field at(std::size_t i) const { return {json[i], this, {}, i}; }
  bool has(std::string_view name) const { return json.contains(std::string(name)); }
};

[[noreturn]] void fail(const Field& field, const std::string& message, const std::string& remedy) {
  throw Error(ErrorKind::parse, message, field.place(), remedy);
}

std::string describe(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return json.empty() ? "an empty list" : "a list";
    case Json::value_t::string: return display(json.get_ref<const std::string&>());
    case Json::value_t::boolean: return json.get<bool>() ? "true" : "false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return json.dump();
    case Json::value_t::binary:
    case Json::value_t::discarded: break;
  }
  return "nothing";
}

[[noreturn]] void fail_expected(const Field& field, const std::string& what, const std::string& remedy) {
  fail(field, fmt::format("expected {}, found {}", what, describe(field.json)), remedy);
}

const std::string& string_of(const Field& field, const std::string& what, const std::string& remedy) {
  if (!field.json.is_string()) fail_expected(field, what, remedy);
  return field.json.get_ref<const std::string&>();
}

// An integer that fits 64 bits with its sign; 3.0 is none.
std::optional<std::int64_t> as_integer(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
  if (json.is_number_integer()) return json.get<std::int64_t>();
  return std::nullopt;
}

// A number, or "inf", "-inf", "nan", or a string holding a hexadecimal float.
std::optional<Scalar> as_number(const Json& json) {
  if (json.is_number_float()) return Scalar(json.get<double>());
  if (const auto integer = as_integer(json)) return Scalar(*integer);
  if (!json.is_string()) return std::nullopt;
  try {
    Cursor cursor(json.get_ref<const std::string&>(), {});
    if (cursor.at_word("true") || cursor.at_word("false")) return std::nullopt;
    const auto value = accept_scalar(cursor);
    return cursor.at(TokenKind::end) ? value : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::int64_t integer_of(const Field& field) {
  const auto value = as_integer(field.json);
  if (!value) fail_expected(field, "an integer of at most 64 bits", "write a whole number without a point");
  return *value;
}

void check_keys(const Field& object, std::span<const std::string_view> required,
                std::span<const std::string_view> optional) {
  std::vector<std::string_view> known(required.begin(), required.end());
  known.insert(known.end(), optional.begin(), optional.end());
  if (!object.json.is_object()) fail_expected(object, "an object", "its keys are " + join(known));
  for (const auto& [key, value] : object.json.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string_view meant = nearest(key, known);
    fail(object, fmt::format("unknown key {}", display(key)),
         (meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant)) + "keys are " + join(known));
  }
  for (std::string_view key : required)
    if (!object.has(key)) fail(object, fmt::format("the key '{}' is missing", key), "keys are " + join(known));
}

const std::string& identifier_of(const Field& field, const std::string& what) {
  const std::string& name = string_of(field, what, "write a name of letters, digits and '_'");
  if (!is_identifier(name))
    fail(field, fmt::format("{} is no name", display(name)),
         fmt::format("use up to {} letters, digits and '_', not starting with a digit", kMaxNameLength));
  return name;
}

// Runs item(field) over a list, or over the field itself when it is none.
template <typename Item>
auto list_of(const Field& field, Item item) -> std::vector<decltype(item(field))> {
  std::vector<decltype(item(field))> items;
  if (!field.json.is_array()) {
    items.push_back(item(field));
    return items;
  }
  if (field.json.size() > kMaxListLength)
    throw Error(ErrorKind::resource, fmt::format("a list of more than {} items", kMaxListLength), field.place(),
                "split the operation into several");
  for (std::size_t i = 0; i < field.json.size(); ++i) items.push_back(item(field.at(i)));
  return items;
}

class Reader {
 public:
  explicit Reader(const Field& root) : root_(root) {}

  Graph run() {
    constexpr std::string_view kRequired[] = {"format", "version", "inputs", "nodes", "outputs"};
    constexpr std::string_view kOptional[] = {"name", "symbols"};
    check_keys(root_, kRequired, kOptional);
    check_format();
    if (root_.has("name")) graph_.name = identifier_of(root_.at("name"), "the graph's name");
    std::set<std::string> bound_by_caller;
    if (root_.has("symbols")) symbols(root_.at("symbols"), bound_by_caller);
    each(root_.at("inputs"), [&](const Field& input) { read_input(input); });
    check_symbols_decided(graph_, bound_by_caller, root_.at("inputs").place());
    each(root_.at("nodes"), [&](const Field& node) { read_node(node); });
    each(root_.at("outputs"), [&](const Field& output) { read_output(output); });
    if (graph_.outputs.empty()) fail(root_.at("outputs"), "the graph returns nothing", "name at least one output");
    return std::move(graph_);
  }

 private:
  void check_format() const {
    const Field format = root_.at("format");
    if (string_of(format, "\"tenon-graph\"", "write \"format\": \"tenon-graph\"") != "tenon-graph")
      fail_expected(format, "\"tenon-graph\"", "write \"format\": \"tenon-graph\"");
    const Field version = root_.at("version");
    if (integer_of(version) != 1) fail_expected(version, "version 1", "this Tenon reads version 1");
  }

  template <typename Read>
  static void each(const Field& list, Read read) {
    if (!list.json.is_array()) fail_expected(list, "a list", "write [ … ]");
    for (std::size_t i = 0; i < list.json.size(); ++i) read(list.at(i));
  }

  void symbols(const Field& object, std::set<std::string>& named) {
    if (!object.json.is_object())
      fail_expected(object, "an object", "write {\"rows\": {\"min\": 1, \"max\": 65536, \"divisor\": 16}}");
    for (const auto& [name, value] : object.json.items()) {
      const Field field = object.at(name);
      if (!is_identifier(name))
        fail(field, fmt::format("{} is no name", display(name)),
             "use letters, digits and '_', not starting with a digit");
      constexpr std::string_view kOptional[] = {"min", "max", "divisor"};
      check_keys(field, {}, kOptional);
      declare_symbol(graph_.symbols, name, field.place());
      SymbolBounds& bounds = graph_.symbols[name];
      if (field.has("min")) bounds.min = integer_of(field.at("min"));
      if (field.has("max")) bounds.max = integer_of(field.at("max"));
      if (field.has("divisor")) bounds.divisor = integer_of(field.at("divisor"));
      check_bounds(name, bounds, field.place());
      named.insert(name);
    }
  }

  Dim dim_of(const Field& field, SymbolUse use) {
    if (const auto integer = as_integer(field.json)) return *integer;
    const std::string& text =
        string_of(field, "a dimension", "write an integer, or an expression such as \"2*rows + 1\"");
    return parse_dim_text(text, graph_.symbols, use, field.place());
  }

  DType dtype_of(const Field& field) const {
    const std::string& name = string_of(field, "a dtype", "write one of " + dtype_list());
    if (!is_identifier(name)) fail_expected(field, "a dtype", "write one of " + dtype_list());
    return dtype_named(name, field.place());
  }

  Shape shape_of(const Field& field, SymbolUse use) {
    Shape shape = list_of(field, [&](const Field& item) { return dim_of(item, use); });
    check_declared_shape(shape, field.place());
    return shape;
  }

  const std::string& new_name(const Field& field) const {
    const std::string& name = identifier_of(field, "a value's name");
    if (is_reserved(name))
      fail(field, fmt::format("'{}' cannot name a value", name), "it is a word of the language; choose another name");
    if (values_.contains(name))
      fail(field, fmt::format("'{}' is defined twice", name), "values are defined once; choose another name");
    return name;
  }

  void read_input(const Field& input) {
    constexpr std::string_view kRequired[] = {"name", "dtype", "shape"};
    check_keys(input, kRequired, {});
    const std::string& name = new_name(input.at("name"));
    check_border_count(graph_.inputs.size(), input.place());
    check_node_count(graph_, input.place());
    const DType dtype = dtype_of(input.at("dtype"));
    values_[name] =
        append_input(graph_, name, dtype, shape_of(input.at("shape"), SymbolUse::declare), input.place(name));
  }

  void read_node(const Field& node) {
    constexpr std::string_view kRequired[] = {"op", "results"};
    constexpr std::string_view kOptional[] = {"operands", "attrs"};
    check_keys(node, kRequired, kOptional);
    const Field op_field = node.at("op");
    const std::string& op_name = string_of(op_field, "an operator", "write \"op\": \"add\"");
    if (!is_identifier(op_name)) fail_expected(op_field, "an operator", "write \"op\": \"add\"");
    const OpInfo& op = op_named(op_name, op_field.place());
    if (op.op == Op::input) fail(op_field, "inputs are no nodes", "list them under \"inputs\"");
    const Field results = node.at("results");
    const std::string target = first_result(results);
    const Place place = node.place(target);
    std::vector<ValueId> operands = node.has("operands") ? read_operands(node.at("operands")) : std::vector<ValueId>{};
    check_operand_count(op, operands.size(), place);
    Attrs attrs = in_signature_order(
        op, node.has("attrs") ? read_attrs(op, node.at("attrs")) : decltype(read_attrs(op, node)){}, place);
    check_node_count(graph_, place);
    define(results, op, append(graph_, op.op, std::move(operands), std::move(attrs), place));
  }

  static std::string first_result(const Field& results) {
    if (!results.json.is_array() || results.json.empty())
      fail_expected(results, "a list of results", "write \"results\": [{\"name\": \"y\"}]");
    const Json& first = results.json.front();
    const bool named = first.is_object() && first.contains("name") && first["name"].is_string();
    const std::string name = named ? first["name"].get<std::string>() : "";
    return is_identifier(name) ? name : "";
  }

  std::vector<ValueId> read_operands(const Field& list) {
    if (!list.json.is_array()) fail_expected(list, "a list of operands", "write \"operands\": [\"x\", \"y\"]");
    if (list.json.size() > kMaxOperands)
      throw Error(ErrorKind::resource, fmt::format("more than {} operands", kMaxOperands), list.place(),
                  "split the node into several");
    std::vector<ValueId> operands;
    each(list, [&](const Field& item) {
      operands.push_back(item.json.is_object() ? read_literal(item) : value_named(item));
    });
    return operands;
  }

  ValueId read_literal(const Field& item) {
    constexpr std::string_view kRequired[] = {"value", "dtype"};
    check_keys(item, kRequired, {});
    check_node_count(graph_, item.place());
    return append_literal(graph_, scalar_of(item.at("value")), dtype_of(item.at("dtype")), item.place());
  }

  static Scalar scalar_of(const Field& field) {
    if (field.json.is_boolean()) return field.json.get<bool>();
    const auto number = as_number(field.json);
    if (!number)
      fail_expected(field, "a number, true or false",
                    "write a JSON number, or \"inf\", \"-inf\", \"nan\", \"0x1.8p3\"");
    return *number;
  }

  ValueId value_named(const Field& field) const {
    const std::string& name =
        string_of(field, "a value's name", "write a name, or a literal as {\"value\": 1.0, \"dtype\": \"f32\"}");
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    std::vector<std::string_view> known;
    for (const Value& value : graph_.values)
      if (!value.name.empty()) known.push_back(value.name);
    const std::string_view meant = nearest(std::string_view(name).substr(0, kMaxNameLength), known);
    fail(
        field, fmt::format("unknown value {}", display(name)),
        meant.empty() ? "define it by an earlier node, or make it an input" : fmt::format("did you mean '{}'?", meant));
  }

  std::vector<std::pair<std::string, AttrValue>> read_attrs(const OpInfo& op, const Field& object) {
    if (!object.json.is_object()) fail_expected(object, "an object", fmt::format("it is {}", signature(op)));
    std::vector<std::pair<std::string, AttrValue>> attrs;
    for (const auto& [name, value] : object.json.items()) {
      const Field field = object.at(name);
      if (!is_identifier(name))
        fail(field, fmt::format("{} is no attribute", display(name)), fmt::format("it is {}", signature(op)));
      attrs.emplace_back(name, attr_value(op, attr_named(op, name, field.place()), field));
    }
    return attrs;
  }

  AttrValue attr_value(const OpInfo& op, const AttrSpec& spec, const Field& field) {
    const auto refuse = [&](const Field& at) { fail_attr_type(op, spec, describe(at.json), at.place()); };
    const auto integer = [&](const Field& at) {
      const auto value = as_integer(at.json);
      if (!value) refuse(at);
      return *value;
    };
    switch (spec.type) {
      case AttrType::integer: return integer(field);
      case AttrType::integers: return list_of(field, integer);
      case AttrType::real: return real_of(op, spec, field);
      case AttrType::boolean:
        if (!field.json.is_boolean()) refuse(field);
        return field.json.get<bool>();
      case AttrType::string:
        if (!field.json.is_string()) refuse(field);
        return checked_string(field);
      case AttrType::dtype: return dtype_of(field);
      case AttrType::dims: return list_of(field, [&](const Field& item) { return dim_of(item, SymbolUse::known); });
      case AttrType::scalar: return AttrValue(std::in_place_type<Scalar>, scalar_of(field));
    }
    return {};
  }

  static double real_of(const OpInfo& op, const AttrSpec& spec, const Field& field) {
    const auto number = as_number(field.json);
    if (!number) fail_attr_type(op, spec, describe(field.json), field.place());
    if (const auto* real = std::get_if<double>(&*number)) return *real;
    const std::int64_t value = std::get<std::int64_t>(*number);
    if (!is_exact_real(value))
      fail(field, fmt::format("{} is not exact as a real number", value), "write it with a point or exponent");
    return static_cast<double>(value);
  }

  static std::string checked_string(const Field& field) {
    const auto& text = field.json.get_ref<const std::string&>();
    const bool plain =
        std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
    if (!plain || text.size() > kMaxNameLength)
      fail(field, fmt::format("{} is no string that a graph may hold", display(text)),
           fmt::format("use up to {} printable ASCII characters, without quotes and '\\'", kMaxNameLength));
    return text;
  }

  void define(const Field& results, const OpInfo& op, const std::vector<ValueId>& values) {
    if (results.json.size() != values.size())
      fail(results,
           fmt::format("{} gives {} result{}, but {} {} listed", op.name, values.size(), values.size() == 1 ? "" : "s",
                       results.json.size(), results.json.size() == 1 ? "is" : "are"),
           "list one object for each result");
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Field result = results.at(i);
      constexpr std::string_view kRequired[] = {"name"};
      constexpr std::string_view kOptional[] = {"dtype", "shape"};
      check_keys(result, kRequired, kOptional);
      const std::string& name = new_name(result.at("name"));
      const Type& type = graph_.type(values[i]);
      Type written = type;
      if (result.has("dtype")) written.dtype = dtype_of(result.at("dtype"));
      if (result.has("shape")) written.shape = shape_of(result.at("shape"), SymbolUse::known);
      if (written != type)
        throw Error(ErrorKind::type, fmt::format("{} is {}, not {} as written", name, str(type), str(written)),
                    result.place(), "correct its dtype and shape, or leave them out");
      graph_.values[static_cast<std::size_t>(values[i])].name = name;
      values_.emplace(name, values[i]);
    }
  }

  void read_output(const Field& output) {
    constexpr std::string_view kRequired[] = {"name", "value"}, kOptional[] = {"into"};
    check_keys(output, kRequired, kOptional);
    check_border_count(graph_.outputs.size(), output.place());
    const ValueId value = value_named(output.at("value"));
    const Field name = output.at("name");
    const std::string& text = identifier_of(name, "the output's name");
    if (!outputs_.insert(text).second) fail(name, fmt::format("two outputs are named '{}'", text), "rename one");
    if (output.has("into"))
      append_update(graph_, value, text, value_named(output.at("into")), output.at("into").place());
    else
      append_output(graph_, value, text);
  }

  const Field& root_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> values_;
  std::set<std::string> outputs_;
};

}  // namespace

Graph parse_json(std::string_view text, const std::string& file) {
  check_file_size(text.size(), file);
  const Json document = read_json_document(text, file);
  return Reader(Field{document, nullptr, {}, 0, &file}).run();
}

}  // namespace tenon::ir
