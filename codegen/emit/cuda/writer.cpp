// See writer.h.
#include "codegen/emit/cuda/writer.h"

#include <cctype>
#include <map>
#include <sstream>
#include <vector>

namespace tenon::codegen::cuda {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// How often each word occurs outside comments.
std::map<std::string, int> count_words(const std::vector<std::string>& lines) {
  std::map<std::string, int> count;
  for (const std::string& line : lines) {
    const std::string code = line.substr(0, line.find("//"));
    for (std::size_t i = 0; i < code.size();) {
      std::size_t end = i;
      while (end < code.size() && is_word(code[end])) ++end;
      if (end > i) ++count[code.substr(i, end - i)];
      i = end == i ? i + 1 : end;
    }
  }
  return count;
}

// "x3" of "  const float x3 = …;", or nothing.
std::string defined_name(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  const std::size_t equals = line.find(" = ");
  if (begin == std::string::npos || equals == std::string::npos || line.compare(begin, 6, "const ") != 0) return {};
  const std::size_t space = line.rfind(' ', equals - 1);
  return line.substr(space + 1, equals - space - 1);
}

}  // namespace

std::string without_unused(std::string body) {
  std::vector<std::string> lines;
  std::istringstream stream(body);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  for (bool changed = true; changed;) {
    const std::map<std::string, int> count = count_words(lines);
    const auto unused = [&](const std::string& line) {
      const auto found = count.find(defined_name(line));
      return found != count.end() && found->second == 1;
    };
    changed = std::erase_if(lines, unused) > 0;
  }
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

}  // namespace tenon::codegen::cuda
