// What counts as a command of a page, on a page that a test writes.
#include "tests/docs/page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace tenon::docs {
namespace {

TEST(DocsPage, CommandsStandInIndentedAndShellBlocks) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string name = "tenon_page_" + std::to_string(::getpid()) + ".md";
  std::ofstream(folder / name)
      << "# Title\n\ntenon prose\n\n    tenon ops sum   # says what it means\n\n    tenon run FILE\n"
         "\n```cpp\ntenon code;\n```\n\n```sh\ntenon doctor\ncmake --version\nls\n```\nthe end\n";
  const Page page = read_page(folder, name);
  std::filesystem::remove(folder / name);
  const std::vector<Command> commands = commands_of(page);
  ASSERT_EQ(commands.size(), 4U);
  EXPECT_EQ(commands[0].text, "tenon ops sum");
  EXPECT_EQ(commands[0].line, 5);
  EXPECT_FALSE(commands[0].is_pattern());
  EXPECT_TRUE(commands[1].is_pattern());
  EXPECT_EQ(commands[2].text, "tenon doctor");
  EXPECT_EQ(commands[2].line, 14);
  EXPECT_EQ(commands[3].program(), "cmake");
  EXPECT_EQ(page.blocks[1].language, "cpp");
  EXPECT_EQ(page.rest, "the end\n");
}

TEST(DocsPage, PatternsAreSeenByTheirCapitalsChoicesAndBrackets) {
  const auto is_pattern = [](const char* text) { return Command{1, text}.is_pattern(); };
  for (const char* text : {"tenon run FILE", "tenon run x.tn --output y=FILE", "tenon completion bash|zsh",
                           "tenon ops [x]", "tenon bench x…", "tenon run x.tn --save-inputs FOLDER"})
    EXPECT_TRUE(is_pattern(text)) << text;
  for (const char* text :
       {"tenon run x.tn --dim rows=8", "tenon sweep --bytes 64M:1G", "tenon dump a.tn --target sm_90a"})
    EXPECT_FALSE(is_pattern(text)) << text;
}

}  // namespace
}  // namespace tenon::docs
