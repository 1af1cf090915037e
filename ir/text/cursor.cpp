// Moving along the tokens of a graph file, and saying where it went wrong.
#include "ir/text/cursor.h"

#include <fmt/format.h>

namespace tenon::ir {

Token Cursor::take() {
  const Token taken = token_;
  if (at(TokenKind::left_paren) || at(TokenKind::left_bracket)) ++depth_;
  if ((at(TokenKind::right_paren) || at(TokenKind::right_bracket)) && depth_ > 0) --depth_;
  advance();
  return taken;
}

void Cursor::advance() {
  do token_ = lexer_.next();
  while (depth_ > 0 && token_.kind == TokenKind::newline && token_.text != ";");
}

bool Cursor::accept(TokenKind kind) {
  if (!at(kind)) return false;
  take();
  return true;
}

bool Cursor::accept_word(std::string_view word) {
  if (!at_word(word)) return false;
  take();
  return true;
}

Token Cursor::expect(TokenKind kind, const std::string& what, const std::string& remedy) {
  if (!at(kind)) fail_expected(what, remedy);
  return take();
}

void Cursor::skip_newlines() {
  while (at(TokenKind::newline)) take();
}

void Cursor::fail(const Token& token, const std::string& message, const std::string& remedy) const {
  throw Error(ErrorKind::parse, message, place(token), remedy);
}

void Cursor::fail_expected(const std::string& what, const std::string& remedy) const {
  fail(token_, fmt::format("expected {}, found {}", what, describe(token_)), remedy);
}

}  // namespace tenon::ir
