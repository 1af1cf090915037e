// Every command of README.md, CONTRIBUTING.md and docs/*.md is run, and every graph that they show is built, run and
// checked.
//
// A line of a code block that begins with `tenon` is a command. It runs in a folder that has `examples`, for a few
// seconds at most: one that goes on then has begun well. A line with a word in capitals (FILE, NAME), with a|b, [c] or
// … is a pattern: its options are looked up in the help of the commands that it names. Under a profiler's name, the
// `tenon` command is run without the profiler. Lines that build Tenon and run its tests are looked up in the build tree
// that this test belongs to: their presets, targets and tests exist. Those that install it and build against it are run
// by the test `package`.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "ir/text/text.h"
#include "tests/cli/cli.h"
#include "tests/docs/page.h"

namespace tenon::docs {
namespace {

namespace fs = std::filesystem;

constexpr int kNoDevice = 3, kTimedOut = 124;  // of tenon, and of timeout(1)
constexpr int kSeconds = 5;

class Pages : public ::testing::TestWithParam<std::string> {
 protected:
  Pages() : folder_(fs::temp_directory_path() / ("tenon_docs_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "bin");
    fs::create_symlink(fs::absolute(TENON_SOURCE_DIR) / "examples", folder_ / "examples");
    fs::create_symlink(TENON_CLI, folder_ / "bin/tenon");
  }
  ~Pages() override { fs::remove_all(folder_); }

  Page page() const { return read_page(TENON_SOURCE_DIR, GetParam()); }
  std::string place(int line) const { return GetParam() + ":" + std::to_string(line); }

  Outcome run(const std::string& command) const {
    std::ofstream(folder_ / "command.sh") << command << "\n";
    return outcome_of("cd " + folder_.string() + " && TENON_CACHE_DIR=$PWD/cache PATH=$PWD/bin:$PATH timeout " +
                      std::to_string(kSeconds) + " sh command.sh 2>&1 </dev/null");
  }

 private:
  fs::path folder_;
};

// The word behind an option, or "".
std::string word_behind(const std::string& command, const std::string& option) {
  std::istringstream words(command);
  for (std::string word; words >> word;)
    if (word == option) return words >> word ? word : "";
  return "";
}

// What a line that configures or builds Tenon, or runs its tests, names is there.
void expect_buildable(const std::string& place, const Command& command) {
  const std::string preset = word_behind(command.text, "--preset"), target = word_behind(command.text, "--target");
  if (!preset.empty()) {
    const Outcome presets = outcome_of("cd " TENON_SOURCE_DIR " && cmake --list-presets=all 2>&1");
    EXPECT_TRUE(contains(presets.text, "\"" + preset + "\"")) << place << ": no preset " << preset << presets.text;
  }
  if (!target.empty()) {
    const Outcome targets = outcome_of("cmake --build " TENON_BUILD_DIR " --target help 2>&1");
    EXPECT_TRUE(contains(targets.text, target)) << place << ": no target " << target << "\n" << targets.text;
  }
  if (command.program() == "ctest") {
    const std::string options = std::regex_replace(command.text, std::regex("^ctest|--preset +[^ ]+"), "");
    const Outcome tests = outcome_of("ctest --test-dir " TENON_BUILD_DIR " -N" + options + " 2>&1");
    EXPECT_TRUE(std::regex_search(tests.text, std::regex("Total Tests: [1-9]"))) << place << "\n" << tests.text;
  }
}

// Every option of the pattern is one of the commands that its second word names: `doctor | cache stats` names two.
void expect_known(const std::string& place, const std::string& pattern) {
  std::istringstream words(pattern);
  std::string tenon, command;
  words >> tenon >> command;
  const Outcome help = outcome_of(TENON_CLI " help " + command + " 2>&1");
  EXPECT_EQ(help.code, 0) << place << ": " << pattern << "\n" << help.text;
  static const std::regex kOption("--?[a-z][a-z-]*");
  for (std::string word; words >> word;) {
    std::smatch found;
    const bool names_option = word.starts_with('-') || word.starts_with("[-");
    if (!names_option || !std::regex_search(word, found, kOption)) continue;
    EXPECT_TRUE(contains(help.text, found.str())) << place << ": " << found.str() << " is no option\n" << help.text;
  }
}

TEST_P(Pages, EachCommandRuns) {
  for (const Command& command : commands_of(page())) {
    const std::string program = command.program();
    if (program == "tenon" && command.is_pattern()) {
      expect_known(place(command.line), command.text);
      continue;
    }
    if (program == "cmake" || program == "ctest") {
      // A copy of the programs on another machine has no build tree.
      if (fs::exists(TENON_BUILD_DIR "/CMakeCache.txt")) expect_buildable(place(command.line), command);
      continue;
    }
    const std::size_t own = (" " + command.text).find(" tenon ");  // behind a profiler and its options, if any
    ASSERT_NE(own, std::string::npos) << place(command.line) << ": " << program << " runs no tenon";
    const Outcome outcome = run(command.text.substr(own));
    if (outcome.code == kNoDevice) continue;  // no GPU, no NVRTC, or no CPU target
    EXPECT_TRUE(outcome.code == 0 || outcome.code == kTimedOut) << place(command.line) << ": " << command.text << "\n"
                                                                << outcome.text.substr(0, 2000);
  }
}

// "One kernel" in the prose below a graph is counted.
TEST_P(Pages, EachGraphRuns) {
  const Page page = this->page();
  for (std::size_t i = 0; i < page.blocks.size(); ++i) {
    const Block& block = page.blocks[i];
    std::string text;
    for (const std::string& line : block.lines) text += line + "\n";
    if (block.language == "tn" || text.starts_with("graph ") || contains(text, "\ngraph ")) {
      SCOPED_TRACE(place(block.line));
      const ir::Graph graph = ir::parse(text);
      std::string command = "cat > graph.tn <<'END'\n" + text + "END\ntenon run graph.tn --random 1 --check";
      for (const auto& [symbol, bounds] : graph.symbols)
        command += " --dim " + symbol + "=" + std::to_string(std::max<std::int64_t>(bounds.min, 16));
      const Outcome outcome = run(command);
      if (outcome.code == kNoDevice) continue;
      EXPECT_TRUE(outcome.code == 0 || outcome.code == kTimedOut) << outcome.text;
      const std::string& prose = i + 1 < page.blocks.size() ? page.blocks[i + 1].before : page.rest;
      if (contains(prose.substr(0, 20), "One kernel")) {
        EXPECT_TRUE(contains(outcome.text, ": 1 kernel\n")) << outcome.text;
      }
    } else if (contains(text, "\"format\": \"tenon-graph\"")) {
      SCOPED_TRACE(place(block.line));
      EXPECT_NO_THROW(ir::parse_json(text));
    }
  }
}

// The last `tenon …` of the prose above a cuda block prints that block.
TEST_P(Pages, EachKernelIsWhatItsCommandPrints) {
  static const std::regex kCommand("`(tenon [^`]*)`");
  for (const Block& block : page().blocks) {
    if (block.language != "cuda") continue;
    const std::string prose = std::regex_replace(block.before, std::regex("\n"), " ");
    std::string command;
    for (std::sregex_iterator at(prose.begin(), prose.end(), kCommand), end; at != end; ++at) command = (*at)[1];
    const Outcome outcome = run(command);
    if (outcome.code == kNoDevice) continue;
    std::string text;
    for (const std::string& line : block.lines) text += line + "\n";
    EXPECT_EQ(outcome.text, text + "\n") << place(block.line) << ": " << command;
  }
}

std::string name_of(const ::testing::TestParamInfo<std::string>& page) {
  return std::regex_replace(fs::path(page.param).stem().string(), std::regex("[^A-Za-z0-9]"), "_");
}

INSTANTIATE_TEST_SUITE_P(Docs, Pages, ::testing::ValuesIn(all_pages(TENON_SOURCE_DIR)), name_of);

}  // namespace
}  // namespace tenon::docs
