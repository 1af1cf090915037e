// Lines of generated code with their indentation.
#pragma once

#include <string>
#include <string_view>

namespace tenon::codegen::cuda {

class Writer {
 public:
  explicit Writer(int depth = 0) : depth_(depth) {}

  /// One line at the current depth.
  void line(std::string_view text) { text_.append(static_cast<std::size_t>(2 * depth_), ' ').append(text) += '\n'; }
  /// A line with a comment behind it; no comment when it is empty.
  void line(const std::string& text, const std::string& comment) {
    line(comment.empty() ? text : text + "  // " + comment);
  }
  /// A line that ends in "{", after which the depth is one more.
  void open(const std::string& text) {
    line(text);
    ++depth_;
  }
  /// "}" and what follows it ("else {" opens again).
  void close(const std::string& text = "}") {
    --depth_;
    line(text);
    if (text.back() == '{') ++depth_;
  }
  /// "if (inside) {" and its end, or nothing where there is no condition.
  void open_if(const std::string& condition) {
    if (!condition.empty()) open("if (" + condition + ") {");
  }
  void close_if(const std::string& condition) {
    if (!condition.empty()) close();
  }
  /// "for (int j = 0; j < count; ++j) {", unrolled.
  void unrolled(const std::string& j, int count) {
    line("#pragma unroll");
    open("for (int " + j + " = 0; " + j + " < " + std::to_string(count) + "; ++" + j + ") {");
  }
  const std::string& text() const { return text_; }

 private:
  int depth_;
  std::string text_;
};

/// Whether `c` may stand in an identifier.
constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// `body` without definitions "const T name = …;" whose name occurs nowhere below in their scope: an emitter may define
/// what most kernels need and leave the rest to this.
std::string without_unused(std::string body);

}  // namespace tenon::codegen::cuda
