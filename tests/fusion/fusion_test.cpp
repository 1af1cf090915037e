// Fusion regression: each .tn file of this folder holds a graph and, in trailing "#> " lines, the plan expected of it,
// compared exactly. "#! explain" lines before it ask for the refusals too; "#! unfused" for a plan without fusion,
// "#! mixed_order" for one as a GPU has it, with reductions over rows and columns in one kernel,
// "#! unpacked" for one without packs.
// TENON_REWRITE=1 in the environment writes the plans of today into the files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> regression_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(TENON_SOURCE_DIR) / "tests" / "fusion"))
    if (entry.path().extension() == ".tn") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

struct Regression {
  std::string source;    // all but the expectation
  std::string expected;  // empty when absent
  bool explain = false;
  bool unfused = false;
  bool mixed_order = false;
  bool unpacked = false;
};

Regression read_regression(const fs::path& path) {
  Regression regression;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("#>", 0) == 0) {
      regression.expected += line.size() > 3 ? line.substr(3) + "\n" : "\n";
      continue;
    }
    regression.explain = regression.explain || line == "#! explain";
    regression.unfused = regression.unfused || line == "#! unfused";
    regression.mixed_order = regression.mixed_order || line == "#! mixed_order";
    regression.unpacked = regression.unpacked || line == "#! unpacked";
    regression.source += line + "\n";
  }
  return regression;
}

std::string planned(const Regression& regression) {
  PlanOptions options;
  options.fuse = !regression.unfused;
  options.mixed_order = regression.mixed_order;
  if (regression.unpacked) options.max_packed = 1;
  const Plan plan = make_plan(parse(regression.source), options);
  verify(plan);
  return print(plan) + (regression.explain ? "\n" + explain(plan) : "");
}

void rewrite(const fs::path& path, const Regression& regression, const std::string& text) {
  std::ofstream file(path);
  file << regression.source;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) file << (line.empty() ? "#>" : "#> " + line) << "\n";
}

class Fusion : public testing::TestWithParam<fs::path> {};

TEST_P(Fusion, PlanIsAsWrittenInTheFile) {
  const Regression regression = read_regression(GetParam());
  const std::string text = planned(regression);
  const char* wanted = std::getenv("TENON_REWRITE");
  if (wanted != nullptr && std::string(wanted) == "1") {
    rewrite(GetParam(), regression, text);
    return;
  }
  ASSERT_FALSE(regression.expected.empty())
      << GetParam() << " expects nothing; set TENON_REWRITE=1 to write today's plan";
  EXPECT_EQ(text, regression.expected);
}

INSTANTIATE_TEST_SUITE_P(Files, Fusion, testing::ValuesIn(regression_files()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(FusionFiles, CoverTheRules) { EXPECT_GE(regression_files().size(), 40U); }

}  // namespace
}  // namespace tenon::ir
