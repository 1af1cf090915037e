// Fusion regression: each .tn file of this folder holds a graph and, in trailing "#> " lines, the plan expected of it,
// compared exactly. "#! explain" lines before it ask for the refusals too; "#! unfused" for a plan without fusion,
// "#! mixed_order" for one as a GPU has it, with reductions over rows and columns in one kernel,
// "#! products" for one whose products are arranged as for a GPU (ir/fusion/products.h),
// "#! unpacked" for one without packs, "#! max_nodes=2" for one under another limit (kLimits).
// TENON_REWRITE=1 in the environment writes the plans of today into the files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
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
  bool products = false;
  bool unpacked = false;
  std::map<std::string, double> limits;
};

struct Limit {
  const char* name;
  void (*set)(PlanOptions& options, double value);
};

const Limit kLimits[] = {
    {"max_nodes", [](PlanOptions& options, double value) { options.max_nodes = static_cast<int>(value); }},
    {"max_pointers", [](PlanOptions& options, double value) { options.max_pointers = static_cast<int>(value); }},
    {"max_live_bytes", [](PlanOptions& options, double value) { options.max_live_bytes = value; }},
    {"max_readers", [](PlanOptions& options, double value) { options.max_readers = static_cast<int>(value); }},
    {"window", [](PlanOptions& options, double value) { options.window = static_cast<int>(value); }},
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
    regression.products = regression.products || line == "#! products";
    regression.unpacked = regression.unpacked || line == "#! unpacked";
    for (const Limit& limit : kLimits)
      if (const std::string start = fmt::format("#! {}=", limit.name); line.rfind(start, 0) == 0)
        regression.limits[limit.name] = std::stod(line.substr(start.size()));
    regression.source += line + "\n";
  }
  return regression;
}

std::string planned(const Regression& regression) {
  PlanOptions options;
  options.fuse = !regression.unfused;
  options.mixed_order = regression.mixed_order;
  options.pad_rows = options.turn_f8 = options.turn_few = options.split_depth = options.split_f32 =
      options.pair_products = options.split_pieces = regression.products;
  if (regression.unpacked) options.max_packed = 1;
  for (const Limit& limit : kLimits)
    if (const auto value = regression.limits.find(limit.name); value != regression.limits.end())
      limit.set(options, value->second);
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

TEST(FusionFiles, CoverTheRules) {
  std::string shown;
  for (const fs::path& path : regression_files()) shown += read_regression(path).expected;
  for (const RuleInfo& row : all_rules())
    EXPECT_NE(shown.find("[" + name_of(row.rule) + "]"), std::string::npos)
        << "no file shows " << name_of(row.rule) << ", which keeps apart " << row.what;
}

}  // namespace
}  // namespace tenon::ir
