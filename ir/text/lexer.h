// Text to tokens: the words of the text form, one at a time, each with its line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tenon/error.h"

namespace tenon::ir {

enum class TokenKind : std::uint8_t {
  identifier,
  integer,
  real,
  string,
  left_paren,
  right_paren,
  left_bracket,
  right_bracket,
  left_brace,
  right_brace,
  comma,
  colon,
  equals,
  plus,
  minus,
  star,
  percent,
  equal_equal,
  less_equal,
  greater_equal,
  newline,  ///< a line's end or ';'
  end,      ///< of the text
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;        ///< as written; a string without its quotes
  int line = 1;                 ///< from 1
  int column = 1;               ///< in bytes, from 1
  std::uint64_t magnitude = 0;  ///< of an integer; at most 2^63, the sign is a token of its own
  double real = 0;              ///< of a real
};

/// The token as an error message names it: "'add'", "end of line", "end of file".
std::string describe(const Token& token);

/// Letters, digits and '_', not starting with a digit, ASCII, at most kMaxNameLength.
bool is_identifier(std::string_view name);

/// Reads tokens from `text`, which must outlive it. Spaces and `#` comments are skipped; the first token may be
/// preceded by a byte order mark.
class Lexer {
 public:
  Lexer(std::string_view text, std::string file);

  /// The next token; `end` again and again after the last. Error(parse) at anything that is no token.
  Token next();

  /// The comment between the last token and the one before it, from its '#' to the line's end; empty when there is
  /// none.
  std::string_view comment() const { return comment_; }

  const std::string& file() const { return file_; }
  Place place(const Token& token) const { return {file_, token.line, token.column, {}}; }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void skip_blanks();
  Token start() const;
  Token take(Token token, TokenKind kind, std::size_t length);
  Token identifier();
  Token number();
  Token decimal(Token token, std::size_t length);
  Token hexadecimal(Token token, std::size_t length);
  Token string();
  [[noreturn]] void fail(const Token& token, const std::string& message, const std::string& remedy) const;

  std::string_view text_;
  std::string file_;
  std::string_view comment_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace tenon::ir
