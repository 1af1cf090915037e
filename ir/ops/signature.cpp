// Checks of op names, attribute names and counts against the op table, with what to write instead.
#include "ir/ops/signature.h"

#include <fmt/format.h>

#include "ir/ops/suggest.h"

namespace tenon::ir {
namespace {

std::string_view type_name(AttrType type) {
  switch (type) {
    case AttrType::integer: return "int";
    case AttrType::integers: return "ints";
    case AttrType::real: return "real";
    case AttrType::boolean: return "bool";
    case AttrType::string: return "string";
    case AttrType::dtype: return "dtype";
    case AttrType::dims: return "dims";
    case AttrType::scalar: return "scalar";
  }
  return {};
}

std::string_view expectation(AttrType type) {
  switch (type) {
    case AttrType::integer: return "an integer";
    case AttrType::integers: return "an integer or a list of integers";
    case AttrType::real: return "a number";
    case AttrType::boolean: return "true or false";
    case AttrType::string: return "a string";
    case AttrType::dtype: return "a dtype";
    case AttrType::dims: return "a dimension or a list of dimensions";
    case AttrType::scalar: return "a number, true or false";
  }
  return {};
}

std::string_view example(AttrType type) {
  switch (type) {
    case AttrType::integer: return "1";
    case AttrType::integers: return "[0, 1]";
    case AttrType::real: return "0.5";
    case AttrType::boolean: return "true";
    case AttrType::string: return "\"text\"";
    case AttrType::dtype: return "f32";
    case AttrType::dims: return "[rows, 4]";
    case AttrType::scalar: return "0.5";
  }
  return {};
}

std::string_view operand_names(int count) {
  constexpr std::string_view kNames[] = {"", "x", "a, b", "a, b, c"};
  return count < 0 || count > 3 ? "x, ..." : kNames[count];
}

std::string did_you_mean(std::string_view word) {
  return word.empty() ? std::string() : fmt::format("did you mean '{}'? ", word);
}

}  // namespace

std::string signature(const OpInfo& op) {
  std::string text(operand_names(op.operands));
  for (const AttrSpec& spec : op.attributes) {
    fmt::format_to(std::back_inserter(text), "{}{}: {}", text.empty() ? "" : ", ", spec.name, type_name(spec.type));
    if (!spec.required) text += " = " + spec.default_text;
  }
  return fmt::format("{}({})", op.name, text);
}

const OpInfo& op_named(std::string_view name, const Place& place) {
  if (const auto op = find_op(name)) return info(*op);
  throw Error(ErrorKind::parse, fmt::format("unknown operator '{}'", name), place,
              did_you_mean(suggest_op(name)) + "`tenon ops` lists them all");
}

DType dtype_named(std::string_view name, const Place& place) {
  if (const auto dtype = parse_dtype(name)) return *dtype;
  throw Error(ErrorKind::parse, fmt::format("unknown dtype '{}'", name), place,
              did_you_mean(suggest_dtype(name)) + "dtypes are " + dtype_list());
}

const AttrSpec& attr_named(const OpInfo& op, std::string_view name, const Place& place) {
  std::vector<std::string_view> names;
  for (const AttrSpec& spec : op.attributes) {
    if (spec.name == name) return spec;
    names.push_back(spec.name);
  }
  const std::string takes = names.empty() ? fmt::format("{} takes no attributes", op.name) : "it is " + signature(op);
  throw Error(ErrorKind::type, fmt::format("{} has no attribute '{}'", op.name, name), place,
              did_you_mean(suggest_attr(name, names)) + takes);
}

void fail_attr_type(const OpInfo& op, const AttrSpec& spec, const std::string& found, const Place& place,
                    const std::string& meant) {
  throw Error(ErrorKind::type,
              fmt::format("{}: attribute '{}' takes {}, not {}", op.name, spec.name, expectation(spec.type), found),
              place,
              meant.empty() ? fmt::format("write it as in {}={}", spec.name, example(spec.type))
                            : fmt::format("write {}={}", spec.name, meant));
}

void check_operand_count(const OpInfo& op, std::size_t count, const Place& place) {
  if (op.operands < 0 ? count > 0 : count == static_cast<std::size_t>(op.operands)) return;
  const std::string takes =
      op.operands < 0 ? "at least 1 operand" : fmt::format("{} operand{}", op.operands, op.operands == 1 ? "" : "s");
  throw Error(ErrorKind::type,
              fmt::format("{} takes {}, but {} {} given", op.name, takes, count, count == 1 ? "is" : "are"), place,
              fmt::format("it is {}{}", signature(op), op.attributes.empty() ? "" : "; attributes are named"));
}

Attrs in_signature_order(const OpInfo& op, std::vector<std::pair<std::string, AttrValue>> given, const Place& place) {
  Attrs ordered;
  for (const AttrSpec& spec : op.attributes) {
    bool found = false;
    for (auto& [name, value] : given) {
      if (name != spec.name) continue;
      ordered.set(name, std::move(value));
      found = true;
      break;
    }
    if (!found && spec.required)
      throw Error(ErrorKind::type, fmt::format("{}: attribute '{}' is missing", op.name, spec.name), place,
                  fmt::format("it is {}", signature(op)));
  }
  return ordered;
}

}  // namespace tenon::ir
