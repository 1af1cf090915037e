// A graph from the disk or from standard input, whichever of the two forms it has.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "ir/graph/limits.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

// Reads at most one byte more than a graph file may have, so that an endless stream ends too.
std::string read_all(std::FILE* stream, const std::string& name) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (text.size() <= kMaxFileBytes) {
    const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stream);
    if (count == 0) break;
    text.append(buffer.data(), count);
  }
  if (std::ferror(stream))
    throw Error(ErrorKind::io, fmt::format("reading '{}' failed: {}", name, std::strerror(errno)), {},
                "check the file and its permissions");
  return text;
}

std::string read_path(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file)
    throw Error(ErrorKind::io, fmt::format("cannot open '{}': {}", path, std::strerror(errno)), {},
                "check the path and its permissions");
  return read_all(file.get(), path);
}

}  // namespace

GraphText read_text(const std::string& path) {
  const bool is_stdin = path == "-";
  GraphText file{is_stdin ? read_all(stdin, "standard input") : read_path(path), is_stdin ? "<stdin>" : path, false};
  const auto first = file.text.find_first_not_of(" \t\r\n");
  file.json = path.ends_with(".json") || (is_stdin && first != std::string::npos && file.text[first] == '{');
  return file;
}

Graph read_file(const std::string& path) {
  const GraphText file = read_text(path);
  return file.json ? parse_json(file.text, file.name) : parse(file.text, file.name);
}

}  // namespace tenon::ir
