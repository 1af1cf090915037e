// The text form tidied up token by token: what a person wrote, line breaks inside brackets, comments and all, with the
// spaces and the indentation of the canonical layout. Relies on parse() having accepted the text.
#include <algorithm>
#include <string>
#include <string_view>

#include "ir/text/lexer.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

bool opens(TokenKind kind) { return kind == TokenKind::left_paren || kind == TokenKind::left_bracket; }
bool closes(TokenKind kind) { return kind == TokenKind::right_paren || kind == TokenKind::right_bracket; }

class Formatter {
 public:
  explicit Formatter(std::string_view text) : lexer_(text, {}) {}

  std::string run() {
    for (Token token = lexer_.next();; token = lexer_.next()) {
      if (!lexer_.comment().empty()) comment(lexer_.comment());
      if (token.kind == TokenKind::end) break;
      token.kind == TokenKind::newline ? newline(token) : word(token);
    }
    end_line();
    return std::move(text_);
  }

 private:
  void newline(const Token& token) {
    if (line_.empty() && token.text != ";") blank_ = !text_.empty() && !after_brace_;
    end_line();
  }

  // A comment on a line of its own, or after what stands on its line.
  void comment(std::string_view written) {
    while (!written.empty() && (written.back() == ' ' || written.back() == '\t' || written.back() == '\r'))
      written.remove_suffix(1);
    if (line_.empty()) {
      start_line(0);
    } else {
      line_ += "  ";
    }
    line_ += written;
  }

  void word(const Token& token) {
    const bool closing_brace = token.kind == TokenKind::right_brace;
    if (closing_brace) end_line();
    if (line_.empty()) {
      if (closing_brace) blank_ = false;
      start_line(closes(token.kind) || closing_brace ? 1 : 0);
    } else if (needs_space(token)) {
      line_ += ' ';
    }
    line_ += token.kind == TokenKind::string ? "\"" + std::string(token.text) + "\"" : std::string(token.text);
    remember(token);
    if (token.kind == TokenKind::left_brace) {
      end_line();
      after_brace_ = true;
    }
  }

  bool needs_space(const Token& token) const {
    if (unary_ || opens(last_) || closes(token.kind)) return false;
    if (token.kind == TokenKind::comma || token.kind == TokenKind::colon) return false;
    if (token.kind == TokenKind::star || last_ == TokenKind::star) return false;
    if (token.kind == TokenKind::equals || last_ == TokenKind::equals) return parens_ == 0;
    if (opens(token.kind)) return last_ != TokenKind::identifier || last_is_in_;
    return true;
  }

  void remember(const Token& token) {
    const bool operand_before =
        last_ == TokenKind::identifier || last_ == TokenKind::integer || last_ == TokenKind::real || closes(last_);
    unary_ = token.kind == TokenKind::minus && !operand_before;
    last_is_in_ = token.text == "in" && last_ == TokenKind::identifier;
    if (opens(token.kind) || token.kind == TokenKind::left_brace) ++depth_;
    if ((closes(token.kind) || token.kind == TokenKind::right_brace) && depth_ > 0) --depth_;
    if (opens(token.kind)) ++parens_;
    if (closes(token.kind) && parens_ > 0) --parens_;
    last_ = token.kind;
  }

  void start_line(int outdent) {
    if (blank_) text_ += '\n';
    blank_ = after_brace_ = false;
    const int continued = depth_ == 0 && parens_ == 0 && !text_.empty() && !at_top_ ? 1 : 0;
    line_.assign(static_cast<std::size_t>(2 * std::max(0, depth_ - outdent + continued)), ' ');
  }

  void end_line() {
    if (line_.empty()) return;
    text_ += line_ + "\n";
    line_.clear();
    at_top_ = last_ == TokenKind::end || last_ == TokenKind::right_brace;
  }

  Lexer lexer_;
  std::string text_, line_;
  TokenKind last_ = TokenKind::end;
  int depth_ = 0;   // of all brackets
  int parens_ = 0;  // of ( and [
  bool unary_ = false, last_is_in_ = false;
  bool blank_ = false;        // a blank line was asked for
  bool after_brace_ = false;  // nothing stands after '{' yet
  bool at_top_ = true;        // outside the graph
};

}  // namespace

std::string format(std::string_view text, const std::string& file) {
  parse(text, file);
  return Formatter(text).run();
}

}  // namespace tenon::ir
