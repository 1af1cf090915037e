// ops.def as a table of OpInfo, with each attribute signature read once.
#include "ir/ops/op.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "ir/graph/check.h"

namespace tenon::ir {
namespace {

struct Row {
  Op op;
  Kind kind;
  const char* name;
  int operands;
  int results;
  Accepts accepts;
  Yields yields;
  const char* real;
  const char* integer;
  const char* llvm_real;
  const char* llvm_integer;
  const char* identity_real;
  const char* identity_integer;
  int cost;
  const char* attributes;
  const char* doc;
};

constexpr const char* NONE = "";

// An expression of the table as text; NONE is no text.
constexpr const char* text_of(const char* expression) {
  return std::string_view(expression) == "NONE" ? NONE : expression;
}

constexpr const char* kReduceAttributes = "axis: ints = none, keepdims: bool = false";
constexpr const char* kWideningAttributes = "axis: ints = none, keepdims: bool = false, dtype: dtype = none";

// The attributes of a map or reduce row: the only facts that the table leaves to a rule.
constexpr const char* map_attributes(Yields yields, std::string_view name) {
  return yields == Yields::Special && name != "where" ? "dtype: dtype" : "";
}
constexpr const char* reduce_attributes(std::string_view name) {
  return name == "sum" || name == "prod" ? kWideningAttributes : kReduceAttributes;
}

// clang-format off
constexpr Row kRows[] = {
#define TENON_MAP(name, arity, takes, gives, real, integer, llvm_real, llvm_integer, cost, doc)                 \
  {Op::name, Kind::map, #name, arity, 1, Accepts::takes, Yields::gives, text_of(#real), text_of(#integer),      \
   llvm_real, llvm_integer, NONE, NONE, cost, map_attributes(Yields::gives, #name), doc},
#define TENON_REDUCE(name, takes, gives, identity_real, identity_integer, real, integer, llvm_real, llvm_integer, doc) \
  {Op::name, Kind::reduce, #name, 1, 1, Accepts::takes, Yields::gives, text_of(#real), text_of(#integer), llvm_real,   \
   llvm_integer, text_of(#identity_real), text_of(#identity_integer), 1, reduce_attributes(#name), doc},
#define OTHER(kind, name, operands, results, attributes, doc)                                                   \
  {Op::name, Kind::kind, #name, operands, results, Accepts::Any, Yields::Special, NONE, NONE, NONE, NONE, NONE, \
   NONE, 0, attributes, doc},
#define TENON_VIEW(...) OTHER(view, __VA_ARGS__)
#define TENON_SOURCE(...) OTHER(source, __VA_ARGS__)
#define TENON_RANDOM(...) OTHER(random, __VA_ARGS__)
#define TENON_CONTRACT(...) OTHER(contract, __VA_ARGS__)
#define TENON_COMPOSITE(...) OTHER(composite, __VA_ARGS__)
#include "ir/ops.def"
#undef OTHER
};
// clang-format on

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

AttrType attr_type(std::string_view name) {
  constexpr std::pair<std::string_view, AttrType> kNames[] = {
      {"int", AttrType::integer},  {"ints", AttrType::integers}, {"real", AttrType::real},
      {"bool", AttrType::boolean}, {"string", AttrType::string}, {"dtype", AttrType::dtype},
      {"dims", AttrType::dims},    {"scalar", AttrType::scalar}};
  for (const auto& [text, type] : kNames)
    if (text == name) return type;
  TENON_CHECK(false, "unknown attribute type '" + std::string(name) + "' in ops.def");
  return AttrType::integer;
}

std::vector<AttrSpec> parse_attributes(std::string_view text) {
  std::vector<AttrSpec> specs;
  while (!(text = trim(text)).empty()) {
    const auto comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const auto colon = item.find(':');
    const auto equals = item.find('=');
    AttrSpec spec;
    spec.name = trim(item.substr(0, colon));
    spec.type = attr_type(trim(item.substr(colon + 1, equals == std::string_view::npos ? equals : equals - colon - 1)));
    spec.required = equals == std::string_view::npos;
    if (!spec.required) spec.default_text = trim(item.substr(equals + 1));
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<OpInfo> build_table() {
  std::vector<OpInfo> table;
  for (const Row& row : kRows)
    table.push_back({row.op,
                     row.kind,
                     row.name,
                     row.operands,
                     row.results,
                     row.accepts,
                     row.yields,
                     {row.real, row.llvm_real},
                     {row.integer, row.llvm_integer},
                     row.identity_real,
                     row.identity_integer,
                     row.cost,
                     row.doc,
                     parse_attributes(row.attributes)});
  return table;
}

const std::vector<OpInfo>& table() {
  static const std::vector<OpInfo> rows = build_table();
  return rows;
}

}  // namespace

const OpInfo& info(Op op) { return table()[static_cast<std::size_t>(op)]; }

std::span<const OpInfo> all_ops() { return table(); }

std::optional<Op> find_op(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, Op> names;
    for (const OpInfo& row : table()) names.emplace(row.name, row.op);
    return names;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? std::nullopt : std::optional(found->second);
}

bool accepts(Accepts accepts, DType dtype) {
  switch (accepts) {
    case Accepts::Num: return dtype != DType::bool_;
    case Accepts::Real: return is_real(dtype);
    case Accepts::Integer: return is_integer(dtype);
    case Accepts::Bits: return !is_real(dtype);
    case Accepts::Bool: return dtype == DType::bool_;
    case Accepts::Any: return true;
  }
  return false;
}

}  // namespace tenon::ir
