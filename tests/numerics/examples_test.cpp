// Every file of examples/ at several sizes, its widths made small enough for the interpreter to follow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

// Widths that are written in a file, and what stands for them here; sizes that must agree with each other still do.
struct Smaller {
  const char* file;
  std::vector<std::pair<const char*, const char*>> sizes;
};
const std::vector<Smaller>& smaller_widths() {
  static const std::vector<Smaller> all = {
      {"gpt2_block.tn", {{"1024", "37"}, {"2304", "144"}, {"3072", "192"}, {"768", "48"}, {"64", "4"}}},
      {"attention.tn", {{"32", "8"}, {"8", "2"}, {"128", "40"}}},
      {"attention_by_hand_alibi.tn", {{"16", "3"}, {"64", "20"}}},
      {"mlp.tn", {{"4096", "130"}, {"1024", "97"}}},
      {"cross_entropy.tn", {{"50304", "5031"}}},
  };
  return all;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The numbers replaced all at once, where they stand alone (the 64 of "64]", not that of "f64" or "0.64").
std::string with_small_widths(const std::string& text, const std::string& file) {
  for (const Smaller& smaller : smaller_widths()) {
    if (file != smaller.file) continue;
    static const std::regex number(R"(([^\w.])(\d+)(?![\w.]))");
    std::string result;
    auto end = text.begin();
    for (std::sregex_iterator found(text.begin(), text.end(), number), none; found != none; ++found) {
      result.append(end, text.begin() + found->position(2));
      std::string size = found->str(2);
      for (const auto& [from, to] : smaller.sizes)
        if (size == from) {
          size = to;
          break;
        }
      result += size;
      end = text.begin() + found->position(2) + found->length(2);
    }
    return result.append(end, text.end());
  }
  return text;
}

std::vector<std::string> example_files() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(TENON_SOURCE_DIR) / "examples", ignored))
    if (entry.path().extension() == ".tn") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Examples, AreThere) { EXPECT_GE(example_files().size(), 10U) << "run from the root of the source tree"; }

class ExampleFiles : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExampleFiles);

TEST_P(ExampleFiles, AreRightAtEverySize) {
  const auto& [target, file] = GetParam();
  require(target);
  if (IsSkipped() || HasFatalFailure()) return;
  const ir::Graph graph =
      ir::parse(with_small_widths(text_of(fs::path(TENON_SOURCE_DIR) / "examples" / file), file), file);
  std::vector<Bindings> sizes;
  for (const std::int64_t size : {0, 1, 2, 7, 16, 33}) {
    Bindings bindings;
    for (const auto& [symbol, bounds] : graph.symbols)  // different sizes for different symbols
      bindings[symbol] =
          std::clamp<std::int64_t>(size + (symbol == "seq" && size > 1 ? 26 : 0), bounds.min, bounds.max);
    if (sizes.empty() || bindings != sizes.back()) sizes.push_back(bindings);
  }
  expect_right(graph, target, sizes, 0.3);  // attention stays well-conditioned
}

std::string test_name(const std::string& target, const std::string& file) {
  return target + "_" + file.substr(0, file.find('.'));
}
INSTANTIATE_TEST_SUITE_P(On, ExampleFiles,
                         ::testing::Combine(::testing::ValuesIn(all_targets()), ::testing::ValuesIn(example_files())),
                         [](const auto& each) { return test_name(std::get<0>(each.param), std::get<1>(each.param)); });

}  // namespace
}  // namespace tenon::test
