// Attributes against the signatures of ops.def: order, types, defaults. The only place that converts an attribute
// from the type in which it was written to the type that the signature asks for.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

std::string_view words_for(AttrType type) {
  switch (type) {
    case AttrType::integer: return "an integer";
    case AttrType::integers: return "a list of integers";
    case AttrType::real: return "a number";
    case AttrType::boolean: return "true or false";
    case AttrType::string: return "a string";
    case AttrType::dtype: return "a dtype";
    case AttrType::dims: return "a list of dimensions";
    case AttrType::scalar: return "a number, true or false";
  }
  return {};
}

std::string_view words_for(const AttrValue& value) {
  if (const auto* scalar = std::get_if<Scalar>(&value)) {
    constexpr std::string_view kScalars[] = {"a number", "an integer", "a bool"};
    return kScalars[scalar->index()];
  }
  constexpr std::string_view kNames[] = {"an integer", "a list of integers",  "a number", "a bool", "a string",
                                         "a dtype",    "a list of dimensions"};
  return kNames[value.index()];
}

std::string example_for(AttrType type) {
  switch (type) {
    case AttrType::integer: return "0";
    case AttrType::integers: return "[0, 1]";
    case AttrType::real: return "0.5";
    case AttrType::boolean: return "true";
    case AttrType::string: return "\"none\"";
    case AttrType::dtype: return "f32";
    case AttrType::dims: return "[rows, 64]";
    case AttrType::scalar: return "0.5";
  }
  return {};
}

std::string signature_of(const OpInfo& op) {
  if (op.attributes.empty()) return fmt::format("{} has no attributes", op.name);
  std::string text = fmt::format("{} takes ", op.name);
  for (std::size_t i = 0; i < op.attributes.size(); ++i) text += (i ? ", " : "") + op.attributes[i].name;
  return text;
}

// A bare scalar, whichever alternative it was written as.
std::optional<Scalar> as_scalar(const AttrValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return Scalar(*integer);
  if (const auto* real = std::get_if<double>(&value)) return Scalar(*real);
  if (const auto* boolean = std::get_if<bool>(&value)) return Scalar(*boolean);
  if (const auto* scalar = std::get_if<Scalar>(&value)) return *scalar;
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> as_integers(const AttrValue& value) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  if (const auto* dims = std::get_if<std::vector<Dim>>(&value)) {
    std::vector<std::int64_t> list;
    for (const Dim& dim : *dims) {
      if (!dim.is_constant()) return std::nullopt;
      list.push_back(dim.constant());
    }
    return list;
  }
  const auto scalar = as_scalar(value);
  if (scalar && std::holds_alternative<std::int64_t>(*scalar)) return std::vector{std::get<std::int64_t>(*scalar)};
  return std::nullopt;
}

std::optional<std::vector<Dim>> as_dims(const AttrValue& value) {
  if (const auto* dims = std::get_if<std::vector<Dim>>(&value)) return *dims;
  if (const auto list = as_integers(value)) return std::vector<Dim>(list->begin(), list->end());
  return std::nullopt;
}

template <typename T>
std::optional<AttrValue> as_alternative(const AttrValue& value) {
  if (std::holds_alternative<T>(value)) return value;
  if (const auto scalar = as_scalar(value)) {
    if constexpr (std::is_same_v<T, double>) {
      if (const auto* integer = std::get_if<std::int64_t>(&*scalar)) return AttrValue(static_cast<double>(*integer));
    }
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, bool>) {
      if (const auto* exact = std::get_if<T>(&*scalar)) return AttrValue(*exact);
    }
  }
  return std::nullopt;
}

std::optional<AttrValue> convert(const AttrValue& value, AttrType type) {
  switch (type) {
    case AttrType::integer: return as_alternative<std::int64_t>(value);
    case AttrType::integers:
      if (auto list = as_integers(value)) return AttrValue(std::move(*list));
      return std::nullopt;
    case AttrType::real: return as_alternative<double>(value);
    case AttrType::boolean: return as_alternative<bool>(value);
    case AttrType::string: return as_alternative<std::string>(value);
    case AttrType::dtype: return as_alternative<DType>(value);
    case AttrType::dims:
      if (auto dims = as_dims(value)) return AttrValue(std::move(*dims));
      return std::nullopt;
    case AttrType::scalar:
      if (auto scalar = as_scalar(value)) return AttrValue(*scalar);
      return std::nullopt;
  }
  return std::nullopt;
}

template <typename T>
T parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TENON_CHECK(error == std::errc() && end == text.data() + text.size(),
              fmt::format("default '{}' in ops.def is no number", text));
  return value;
}

// The default of one attribute as ops.def writes it; lists there have one element, because a comma ends an attribute.
AttrValue parse_default(const AttrSpec& spec) {
  const std::string_view text = spec.default_text;
  const std::string_view inside = text.size() >= 2 ? text.substr(1, text.size() - 2) : text;
  switch (spec.type) {
    case AttrType::integer: return parse_number<std::int64_t>(text);
    case AttrType::integers: return std::vector{parse_number<std::int64_t>(inside)};
    case AttrType::real: return parse_number<double>(text);
    case AttrType::boolean: return text == "true";
    case AttrType::string: return std::string(inside);
    case AttrType::dtype: return parse_dtype(text).value();
    case AttrType::dims: return std::vector{Dim(parse_number<std::int64_t>(inside))};
    case AttrType::scalar: return Scalar(parse_number<std::int64_t>(text));
  }
  return false;
}

std::vector<Attrs> build_defaults() {
  std::vector<Attrs> table;
  for (const OpInfo& op : all_ops()) {
    Attrs defaults;
    for (const AttrSpec& spec : op.attributes)
      if (!spec.required && !spec.default_text.empty() && spec.default_text != "none")
        defaults.set(spec.name, parse_default(spec));
    table.push_back(std::move(defaults));
  }
  return table;
}

void check_known(const OpInfo& op, const Attrs& attrs) {
  for (const auto& [name, value] : attrs.items()) {
    const bool known = std::any_of(op.attributes.begin(), op.attributes.end(),
                                   [&key = name](const AttrSpec& spec) { return spec.name == key; });
    if (!known) type_error(fmt::format("there is no attribute '{}'", name), signature_of(op));
  }
}

}  // namespace

Attrs normalize_attributes(Op op, Attrs attrs) {
  const OpInfo& row = info(op);
  check_known(row, attrs);
  Attrs ordered;
  for (const AttrSpec& spec : row.attributes) {
    const AttrValue* value = attrs.find(spec.name);
    if (value == nullptr) {
      if (spec.required)
        type_error(fmt::format("attribute '{}' is missing", spec.name),
                   fmt::format("write {}={}", spec.name, example_for(spec.type)));
      continue;
    }
    auto converted = convert(*value, spec.type);
    if (!converted)
      type_error(fmt::format("attribute '{}' must be {}, not {}", spec.name, words_for(spec.type), words_for(*value)),
                 fmt::format("write {}={}", spec.name, example_for(spec.type)));
    ordered.set(spec.name, std::move(*converted));
  }
  return ordered;
}

Attrs with_defaults(Op op, const Attrs& attrs) {
  static const std::vector<Attrs> table = build_defaults();
  const Attrs& defaults = table[static_cast<std::size_t>(op)];
  Attrs complete = attrs;
  for (const auto& [name, value] : defaults.items())
    if (!complete.has(name)) complete.set(name, value);
  return complete;
}

}  // namespace tenon::ir
