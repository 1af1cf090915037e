// Text to tokens. Bytes are ASCII outside comments; every error says what to write instead.
#include "ir/text/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "ir/graph/limits.h"

namespace tenon::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || is_digit(c); }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

constexpr std::uint64_t kMaxMagnitude = std::uint64_t{1} << 63;

}  // namespace

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "end of file";
  if (token.kind == TokenKind::newline) return token.text == ";" ? "';'" : "end of line";
  if (token.kind == TokenKind::string) return fmt::format("\"{}\"", token.text);
  return fmt::format("'{}'", token.text);
}

bool is_identifier(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameLength && starts_name(name.front()) &&
         std::all_of(name.begin(), name.end(), continues_name);
}

Lexer::Lexer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  if (text_.substr(0, 3) == "\xEF\xBB\xBF") line_start_ = at_ = 3;
}

Token Lexer::next() {
  skip_blanks();
  const Token token = start();
  if (at_ == text_.size()) return token;
  const char c = peek();
  if (starts_name(c)) return identifier();
  if (is_digit(c)) return number();
  switch (c) {
    case '\n': {
      const Token newline = take(token, TokenKind::newline, 1);
      ++line_;
      line_start_ = at_;
      return newline;
    }
    case ';': return take(token, TokenKind::newline, 1);
    case '"': return string();
    case '(': return take(token, TokenKind::left_paren, 1);
    case ')': return take(token, TokenKind::right_paren, 1);
    case '[': return take(token, TokenKind::left_bracket, 1);
    case ']': return take(token, TokenKind::right_bracket, 1);
    case '{': return take(token, TokenKind::left_brace, 1);
    case '}': return take(token, TokenKind::right_brace, 1);
    case ',': return take(token, TokenKind::comma, 1);
    case ':': return take(token, TokenKind::colon, 1);
    case '+': return take(token, TokenKind::plus, 1);
    case '-': return take(token, TokenKind::minus, 1);
    case '*': return take(token, TokenKind::star, 1);
    case '%': return take(token, TokenKind::percent, 1);
    case '=': return peek(1) == '=' ? take(token, TokenKind::equal_equal, 2) : take(token, TokenKind::equals, 1);
    case '<':
      if (peek(1) == '=') return take(token, TokenKind::less_equal, 2);
      break;
    case '>':
      if (peek(1) == '=') return take(token, TokenKind::greater_equal, 2);
      break;
    case '.':
      if (is_digit(peek(1))) fail(token, "a number starts with '.'", "write a digit first, as in 0.5");
      break;
    case '\'': fail(token, "unexpected character '''", "strings stand in double quotes"); break;
    case '/': fail(token, "unexpected character '/'", "write div(a, b), or floordiv(rows, 4) in dimensions"); break;
    default: break;
  }
  if (!is_printable(c))
    fail(token, fmt::format("unexpected byte 0x{:02X}", static_cast<unsigned char>(c)), "use ASCII outside comments");
  fail(token, fmt::format("unexpected character '{}'", c), "see docs/text-form.md for what a graph file may hold");
}

void Lexer::skip_blanks() {
  comment_ = {};
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      comment_ = text_.substr(at_, end - at_);
      at_ = end;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

Token Lexer::start() const {
  Token token;
  token.line = line_;
  token.column = static_cast<int>(at_ - line_start_) + 1;
  return token;
}

Token Lexer::take(Token token, TokenKind kind, std::size_t length) {
  token.kind = kind;
  token.text = text_.substr(at_, length);
  at_ += length;
  return token;
}

Token Lexer::identifier() {
  std::size_t length = 1;
  while (continues_name(peek(length))) ++length;
  const Token token = start();
  if (length > kMaxNameLength)
    fail(token, fmt::format("a name of {} characters", length), fmt::format("use at most {}", kMaxNameLength));
  return take(token, TokenKind::identifier, length);
}

Token Lexer::number() {
  std::size_t length = 0;
  if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
    length = 2;
    while (is_hex_digit(peek(length)) || peek(length) == '.') ++length;
    if (peek(length) == 'p' || peek(length) == 'P') {
      ++length;
      if (peek(length) == '+' || peek(length) == '-') ++length;
      while (is_digit(peek(length))) ++length;
    }
  } else {
    while (is_digit(peek(length)) || peek(length) == '.') ++length;
    if (peek(length) == 'e' || peek(length) == 'E') {
      ++length;
      if (peek(length) == '+' || peek(length) == '-') ++length;
      while (is_digit(peek(length))) ++length;
    }
  }
  const bool hex = length >= 2 && (peek(1) == 'x' || peek(1) == 'X');
  if (length > 512) fail(start(), fmt::format("a number of {} characters", length), "use at most 512");
  const Token token = start();
  if (continues_name(peek(length))) {
    while (continues_name(peek(length))) ++length;
    const std::string_view written = text_.substr(at_, std::min<std::size_t>(length, 40));
    fail(token, fmt::format("malformed number '{}'", written),
         "numbers look like 2, 1e-5, 0.5, 0x1.8p3; names start with a letter");
  }
  return hex ? hexadecimal(token, length) : decimal(token, length);
}

Token Lexer::decimal(Token token, std::size_t length) {
  const std::string_view digits = text_.substr(at_, length);
  const char* end = digits.data() + digits.size();
  const bool integral = digits.find_first_of(".eE") == std::string_view::npos;
  const auto [stop, error] =
      integral ? std::from_chars(digits.data(), end, token.magnitude) : std::from_chars(digits.data(), end, token.real);
  if (error == std::errc::result_out_of_range || (integral && token.magnitude > kMaxMagnitude)) {
    if (integral)
      fail(token, fmt::format("the integer {} leaves 64 bits", digits),
           "integers reach from -2^63 to 2^63 - 1; write larger numbers with a point or exponent");
    fail(token, fmt::format("the number {} is beyond f64", digits), "write inf, or 0.0");
  }
  if (error != std::errc{} || stop != end)
    fail(token, fmt::format("malformed number '{}'", digits), "numbers look like 2, 1e-5, 0.5, 0x1.8p3");
  return take(token, integral ? TokenKind::integer : TokenKind::real, length);
}

Token Lexer::hexadecimal(Token token, std::size_t length) {
  const std::string_view digits = text_.substr(at_, length);
  const char* begin = digits.data() + 2;
  const char* end = digits.data() + digits.size();
  const bool integral = digits.find_first_of(".pP") == std::string_view::npos;
  const auto [stop, error] = integral ? std::from_chars(begin, end, token.magnitude, 16)
                                      : std::from_chars(begin, end, token.real, std::chars_format::hex);
  if (error == std::errc::result_out_of_range || (integral && token.magnitude > kMaxMagnitude)) {
    if (integral)
      fail(token, fmt::format("the integer {} leaves 64 bits", digits),
           "integers reach from -2^63 to 2^63 - 1; write larger numbers with an exponent, as in 0x1p70");
    fail(token, fmt::format("the number {} is beyond f64", digits), "write inf, or 0.0");
  }
  if (error != std::errc{} || stop != end)
    fail(token, fmt::format("malformed number '{}'", digits), "hexadecimal numbers look like 0xff or 0x1.8p3");
  return take(token, integral ? TokenKind::integer : TokenKind::real, length);
}

Token Lexer::string() {
  std::size_t length = 1;
  while (at_ + length < text_.size() && peek(length) != '"' && is_printable(peek(length)) && peek(length) != '\\')
    ++length;
  const Token token = start();
  if (peek(length) == '\\') fail(token, "a string holds '\\'", "strings are plain printable ASCII, without escapes");
  if (peek(length) != '"')
    fail(token, "a string does not end on its line", "close it with '\"'; strings are plain printable ASCII");
  if (length - 1 > kMaxNameLength)
    fail(token, fmt::format("a string of {} characters", length - 1), fmt::format("use at most {}", kMaxNameLength));
  Token result = take(token, TokenKind::string, length + 1);
  result.text = result.text.substr(1, length - 1);
  return result;
}

void Lexer::fail(const Token& token, const std::string& message, const std::string& remedy) const {
  throw Error(ErrorKind::parse, message, place(token), remedy);
}

}  // namespace tenon::ir
