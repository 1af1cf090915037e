// See page.h.
#include "tests/docs/page.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <regex>
#include <utility>

namespace tenon::docs {
namespace {

constexpr std::string_view kIndent = "    ", kFence = "```";
constexpr std::array<std::string_view, 5> kPrograms{"tenon", "cmake", "ctest", "nsys", "ncu"};

std::string without_comment(const std::string& line) {
  std::string text = line.substr(0, line.find(" #"));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

Page read_page(const std::filesystem::path& root, const std::string& path) {
  Page page{path, {}, {}};
  std::ifstream file(root / path);
  std::string line;
  bool fenced = false, indented = false;
  for (int number = 1; std::getline(file, line); ++number) {
    const bool inside = fenced || line.starts_with(kIndent) || (indented && line.empty());
    if (line.starts_with(kFence)) {
      fenced = !fenced;
      indented = false;
      if (fenced) page.blocks.push_back({line.substr(kFence.size()), number + 1, {}, std::exchange(page.rest, {})});
    } else if (!inside) {
      indented = false;
      page.rest += line + "\n";
    } else if (fenced) {
      page.blocks.back().lines.push_back(line);
    } else {
      if (!indented) page.blocks.push_back({"", number, {}, std::exchange(page.rest, {})});
      indented = true;
      page.blocks.back().lines.push_back(line.substr(std::min(line.size(), kIndent.size())));
    }
  }
  return page;
}

std::vector<std::string> all_pages(const std::filesystem::path& root) {
  std::vector<std::string> pages{"README.md", "CONTRIBUTING.md"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.push_back("docs/" + entry.path().filename().string());
  std::sort(pages.begin() + 2, pages.end());
  return pages;
}

std::string Command::program() const { return text.substr(0, text.find(' ')); }

bool Command::is_pattern() const {
  static const std::regex kPattern("(^|[ =/])[A-Z]{2,}|[|\\[\\]]|…");
  return std::regex_search(text, kPattern);
}

std::vector<Command> commands_of(const Page& page) {
  std::vector<Command> commands;
  for (const Block& block : page.blocks) {
    if (!block.language.empty() && block.language != "sh" && block.language != "bash") continue;
    for (std::size_t i = 0; i < block.lines.size(); ++i) {
      const Command command{block.line + static_cast<int>(i), without_comment(block.lines[i])};
      if (std::ranges::find(kPrograms, command.program()) != kPrograms.end()) commands.push_back(command);
    }
  }
  return commands;
}

}  // namespace tenon::docs
