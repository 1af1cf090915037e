// A Markdown page as its code blocks: fenced ones with their language, indented ones without.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::docs {

struct Block {
  std::string language;  ///< what stands behind ```; empty for an indented block
  int line = 0;          ///< of its first line, from 1
  std::vector<std::string> lines;
  std::string before;  ///< the prose since the block before
};

struct Page {
  std::string path;  ///< from the root of the source tree
  std::vector<Block> blocks;
  std::string rest;  ///< the prose behind the last block
};

Page read_page(const std::filesystem::path& root, const std::string& path);

/// README.md, CONTRIBUTING.md and docs/*.md, in order.
std::vector<std::string> all_pages(const std::filesystem::path& root);

/// A line of an indented, sh or bash block that begins with a program that the pages use: tenon, cmake, ctest, and the
/// profilers nsys and ncu. Without its comment.
struct Command {
  int line = 0;
  std::string text;
  std::string program() const;  ///< the first word
  /// Whether the line shows a pattern: a word in capitals (FILE, NAME…), a choice (a|b), brackets, or an ellipsis.
  bool is_pattern() const;
};
std::vector<Command> commands_of(const Page& page);

}  // namespace tenon::docs
