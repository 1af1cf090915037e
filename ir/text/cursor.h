// One token of look-ahead over the lexer: what the parsers of values and of graphs walk along.
#pragma once

#include <string>
#include <string_view>

#include "ir/text/lexer.h"

namespace tenon::ir {

class Cursor {
 public:
  Cursor(std::string_view text, const std::string& file) : lexer_(text, file) { advance(); }

  const Token& token() const { return token_; }
  bool at(TokenKind kind) const { return token_.kind == kind; }
  bool at_word(std::string_view word) const { return at(TokenKind::identifier) && token_.text == word; }

  /// The current token; moves on to the next. Line ends inside ( ) and [ ] are skipped.
  Token take();
  bool accept(TokenKind kind);
  bool accept_word(std::string_view word);
  /// Takes a token of `kind`, or Error(parse) "expected <what>, found …".
  Token expect(TokenKind kind, const std::string& what, const std::string& remedy = {});
  void skip_newlines();

  Place place(const Token& token) const { return lexer_.place(token); }
  Place place() const { return place(token_); }
  [[noreturn]] void fail(const Token& token, const std::string& message, const std::string& remedy) const;
  /// Error(parse) "expected <what>, found <the current token>".
  [[noreturn]] void fail_expected(const std::string& what, const std::string& remedy) const;

 private:
  void advance();

  Lexer lexer_;
  Token token_;
  int depth_ = 0;  // of ( and [
};

}  // namespace tenon::ir
