// Dimensions, types, literals and attribute values out of tokens.
#include "ir/text/parse_values.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "ir/graph/limits.h"
#include "ir/ops/signature.h"
#include "ir/ops/suggest.h"

namespace tenon::ir {
namespace {

constexpr std::uint64_t kTwoTo63 = std::uint64_t{1} << 63;

// The value of integer token `token` with its sign.
std::int64_t signed_value(const Cursor& cursor, const Token& token, bool negative) {
  if (token.magnitude == kTwoTo63) {
    if (negative) return std::numeric_limits<std::int64_t>::min();
    cursor.fail(token, fmt::format("the integer {} leaves 64 bits", token.text),
                "integers reach from -2^63 to 2^63 - 1; write larger numbers with a point or exponent");
  }
  const auto value = static_cast<std::int64_t>(token.magnitude);
  return negative ? -value : value;
}

// A recursive-descent parser of dimension expressions; `budget` bounds their size and depth.
class DimParser {
 public:
  DimParser(Cursor& cursor, Symbols& symbols, SymbolUse use) : cursor_(cursor), symbols_(symbols), use_(use) {}

  Dim sum() {
    Dim total = product();
    while (cursor_.at(TokenKind::plus) || cursor_.at(TokenKind::minus)) {
      const bool minus = cursor_.take().kind == TokenKind::minus;
      const Dim next = product();
      total = minus ? total - next : total + next;
    }
    return total;
  }

 private:
  Dim product() {
    Dim total = factor();
    while (cursor_.accept(TokenKind::star)) total = total * factor();
    return total;
  }

  Dim factor() {
    if (++used_ > kMaxDimTokens)
      throw Error(ErrorKind::resource, fmt::format("a dimension expression of more than {} parts", kMaxDimTokens),
                  cursor_.place(), "name the dimension with a symbol of its own");
    if (cursor_.accept(TokenKind::minus)) {
      if (cursor_.at(TokenKind::integer)) return signed_value(cursor_, cursor_.take(), true);
      return Dim(-1) * factor();
    }
    if (cursor_.at(TokenKind::integer)) return signed_value(cursor_, cursor_.take(), false);
    if (cursor_.accept(TokenKind::left_paren)) {
      const Dim inside = sum();
      cursor_.expect(TokenKind::right_paren, "')'");
      return inside;
    }
    if (!cursor_.at(TokenKind::identifier))
      cursor_.fail_expected("a dimension", "write an integer, a name, or an expression such as 2*rows + 1");
    const Token name = cursor_.take();
    if (cursor_.at(TokenKind::left_paren)) return floor_division(name);
    return symbol(name);
  }

  Dim floor_division(const Token& name) {
    if (name.text != "floordiv")
      cursor_.fail(name, fmt::format("'{}' is no function of dimensions", name.text),
                   "dimensions know +, -, * and floordiv(a, 4)");
    cursor_.take();
    const Dim numerator = sum();
    cursor_.expect(TokenKind::comma, "','", "write floordiv(a, 4)");
    const Token at = cursor_.token();
    const std::int64_t divisor = parse_integer(cursor_, "divide by a positive integer");
    if (divisor <= 0) cursor_.fail(at, "floordiv by a divisor that is not positive", "divide by a positive integer");
    cursor_.expect(TokenKind::right_paren, "')'", "floordiv takes a dimension and a positive integer");
    return numerator.floor_div(divisor);
  }

  Dim symbol(const Token& name) {
    const std::string text(name.text);
    if (!symbols_.contains(text)) {
      if (use_ == SymbolUse::known) fail_unknown(name);
      declare_symbol(symbols_, text, cursor_.place(name));
    }
    return Dim::symbol(text);
  }

  [[noreturn]] void fail_unknown(const Token& name) const {
    std::vector<std::string_view> known;
    for (const auto& [symbol, bounds] : symbols_) known.push_back(symbol);
    const std::string_view meant = nearest(name.text, known);
    cursor_.fail(name, fmt::format("unknown dimension '{}'", name.text),
                 meant.empty() ? "dimensions are named by the shapes of inputs, or after 'where'"
                               : fmt::format("did you mean '{}'?", meant));
  }

  Cursor& cursor_;
  Symbols& symbols_;
  SymbolUse use_;
  int used_ = 0;
};

// Items between brackets, or one item without them.
template <typename Item>
auto parse_list(Cursor& cursor, Item item) -> std::vector<decltype(item())> {
  std::vector<decltype(item())> items;
  if (!cursor.accept(TokenKind::left_bracket)) {
    items.push_back(item());
    return items;
  }
  while (!cursor.at(TokenKind::right_bracket)) {
    if (items.size() == kMaxListLength)
      throw Error(ErrorKind::resource, fmt::format("a list of more than {} items", kMaxListLength), cursor.place(),
                  "split the operation into several");
    items.push_back(item());
    if (!cursor.accept(TokenKind::comma)) break;
  }
  cursor.expect(TokenKind::right_bracket, "',' or ']'", "close the list with ']'");
  return items;
}

double to_real(const Cursor& cursor, const Token& at, const Scalar& scalar) {
  if (const auto* real = std::get_if<double>(&scalar)) return *real;
  const std::int64_t integer = std::get<std::int64_t>(scalar);
  if (!is_exact_real(integer))
    cursor.fail(at, fmt::format("{} is not exact as a real number", integer), "write it with a point or exponent");
  return static_cast<double>(integer);
}

bool starts_dim(const Cursor& cursor) {
  return cursor.at(TokenKind::integer) || cursor.at(TokenKind::minus) || cursor.at(TokenKind::identifier) ||
         cursor.at(TokenKind::left_paren);
}

// Attribute values are read through this: it knows whose value it is when it has to refuse one.
struct AttrParser {
  Cursor& cursor;
  const OpInfo& op;
  const AttrSpec& spec;
  Symbols& symbols;

  [[noreturn]] void refuse(const Token& found, const std::string& meant = {}) const {
    fail_attr_type(op, spec, describe(found), cursor.place(found), meant);
  }

  std::int64_t integer() const {
    const Token first = cursor.token();
    if (!cursor.at(TokenKind::integer) && !cursor.at(TokenKind::minus)) refuse(first);
    const bool negative = cursor.accept(TokenKind::minus);
    if (!cursor.at(TokenKind::integer)) refuse(cursor.token());
    return signed_value(cursor, cursor.take(), negative);
  }

  Dim dim() const {
    if (!starts_dim(cursor) || cursor.at_word("true") || cursor.at_word("false")) refuse(cursor.token());
    const Dim value = parse_dim(cursor, symbols, SymbolUse::known);
    if (cursor.at(TokenKind::real)) refuse(cursor.token());
    return value;
  }

  Scalar scalar() const {
    const Token first = cursor.token();
    const auto value = accept_scalar(cursor);
    if (!value) refuse(first);
    return *value;
  }

  double real() const {
    const Token first = cursor.token();
    const Scalar value = scalar();
    if (std::holds_alternative<bool>(value)) refuse(first);
    return to_real(cursor, first, value);
  }

  bool boolean() const {
    if (cursor.accept_word("true")) return true;
    if (cursor.accept_word("false")) return false;
    const std::string_view text = cursor.token().text;
    refuse(cursor.token(), text == "True" || text == "1" ? "true" : text == "False" || text == "0" ? "false" : "");
  }

  std::string string() const {
    if (cursor.at(TokenKind::identifier)) refuse(cursor.token(), fmt::format("\"{}\"", cursor.token().text));
    if (!cursor.at(TokenKind::string)) refuse(cursor.token());
    return std::string(cursor.take().text);
  }

  DType dtype() const {
    if (cursor.at(TokenKind::string) && parse_dtype(cursor.token().text))
      refuse(cursor.token(), std::string(cursor.token().text));
    if (!cursor.at(TokenKind::identifier)) refuse(cursor.token());
    const Token name = cursor.take();
    return dtype_named(name.text, cursor.place(name));
  }
};

}  // namespace

Dim parse_dim(Cursor& cursor, Symbols& symbols, SymbolUse use) {
  const Place start = cursor.place();
  try {
    return DimParser(cursor, symbols, use).sum();
  } catch (const Error& error) {
    throw error.at(start);  // arithmetic that leaves 64 bits knows no place
  }
}

Dim parse_dim_text(std::string_view text, Symbols& symbols, SymbolUse use, const Place& place) {
  try {
    Cursor cursor(text, {});
    Dim dim = parse_dim(cursor, symbols, use);
    if (!cursor.at(TokenKind::end))
      cursor.fail_expected("the end of the dimension", "dimensions know +, -, * and floordiv(a, 4)");
    return dim;
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), place, error.remedy());
  }
}

Type parse_type(Cursor& cursor, Symbols& symbols, SymbolUse use) {
  const Token name = cursor.expect(TokenKind::identifier, "a type", "write a dtype and a shape, as in f32[rows, 4]");
  Type type{dtype_named(name.text, cursor.place(name)), {}};
  if (!cursor.accept(TokenKind::left_bracket)) return type;
  while (!cursor.at(TokenKind::right_bracket)) {
    if (type.shape.size() == kMaxRank)
      cursor.fail(cursor.token(), fmt::format("a shape of more than {} dimensions", kMaxRank),
                  "reshape to fewer dimensions");
    type.shape.push_back(parse_dim(cursor, symbols, use));
    if (!cursor.accept(TokenKind::comma)) break;
  }
  cursor.expect(TokenKind::right_bracket, "',' or ']'", "close the shape with ']'");
  check_declared_shape(type.shape, cursor.place(name));
  return type;
}

std::int64_t parse_integer(Cursor& cursor, const std::string& remedy) {
  const bool negative = cursor.accept(TokenKind::minus);
  return signed_value(cursor, cursor.expect(TokenKind::integer, "an integer", remedy), negative);
}

std::optional<Scalar> accept_scalar(Cursor& cursor) {
  if (cursor.accept_word("true")) return Scalar(true);
  if (cursor.accept_word("false")) return Scalar(false);
  const bool negative = cursor.accept(TokenKind::minus);
  const Token token = cursor.token();
  if (cursor.accept(TokenKind::integer)) return Scalar(signed_value(cursor, token, negative));
  if (cursor.accept(TokenKind::real)) return Scalar(negative ? -token.real : token.real);
  if (cursor.accept_word("inf")) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return Scalar(negative ? -kInfinity : kInfinity);
  }
  if (cursor.accept_word("nan")) return Scalar(std::numeric_limits<double>::quiet_NaN());
  if (negative) cursor.fail_expected("a number after '-'", "to negate a value write neg(x)");
  return std::nullopt;
}

AttrValue parse_attr_value(Cursor& cursor, const OpInfo& op, const AttrSpec& spec, Symbols& symbols) {
  const AttrParser parser{cursor, op, spec, symbols};
  switch (spec.type) {
    case AttrType::integer: return parser.integer();
    case AttrType::integers: return parse_list(cursor, [&] { return parser.integer(); });
    case AttrType::real: return parser.real();
    case AttrType::boolean: return parser.boolean();
    case AttrType::string: return parser.string();
    case AttrType::dtype: return parser.dtype();
    case AttrType::dims: return parse_list(cursor, [&] { return parser.dim(); });
    case AttrType::scalar: return AttrValue(std::in_place_type<Scalar>, parser.scalar());
  }
  return {};
}

bool is_exact_real(std::int64_t value) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 53;
  return value >= -kLimit && value <= kLimit;
}

void check_declared_shape(const Shape& shape, const Place& place) {
  if (shape.size() > kMaxRank)
    throw Error(ErrorKind::type, fmt::format("a shape of more than {} dimensions", kMaxRank), place,
                "reshape to fewer dimensions");
  for (const Dim& extent : shape)
    if (extent.is_constant() && extent.constant() < 0)
      throw Error(ErrorKind::type, fmt::format("a negative extent: {}", extent.constant()), place,
                  "extents are 0 or more; name unknown ones");
}

void declare_symbol(Symbols& symbols, const std::string& name, const Place& place) {
  if (symbols.size() >= kMaxSymbols && !symbols.contains(name))
    throw Error(ErrorKind::resource, fmt::format("more than {} dimension names", kMaxSymbols), place, "use fewer");
  symbols.emplace(name, SymbolBounds{});
}

}  // namespace tenon::ir
