// See writer.h.
#include "codegen/emit/cuda/text/writer.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace tenon::codegen::cuda {
namespace {

bool has_word(const std::string& line, const std::string& word) {
  const std::size_t end = std::min(line.find("//"), line.size());
  for (std::size_t at = line.find(word); at < end; at = line.find(word, at + 1))
    if ((at == 0 || !is_word(line[at - 1])) && (at + word.size() >= end || !is_word(line[at + word.size()])))
      return true;
  return false;
}

std::size_t indentation(const std::string& line) { return line.find_first_not_of(' '); }

// Whether the name that line `at` defines occurs below it in its scope, which the indentation shows.
bool used_below(const std::vector<std::string>& lines, std::size_t at, const std::string& name) {
  for (std::size_t i = at + 1; i < lines.size() && indentation(lines[i]) >= indentation(lines[at]); ++i)
    if (has_word(lines[i], name)) return true;
  return false;
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
  for (std::size_t i = lines.size(); i-- > 0;) {  // from below, so that what only unused values used goes too
    const std::string name = defined_name(lines[i]);
    if (!name.empty() && !used_below(lines, i, name)) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

}  // namespace tenon::codegen::cuda
