// Plans of many operators are kept in the folder of the kernel cache, for the same build, graph and options.
#include "src/driver/kept_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/fusion/plan_bytes.h"
#include "ir/text/text.h"
#include "runtime/cache_file.h"
#include "tests/runtime/temporary_folder.h"

namespace tenon::test {
namespace {

ir::Graph chain(int length) {
  std::string text = "graph chain(v0: f32[rows, 64]) {\n";
  for (int i = 1; i <= length; ++i)
    text += "  v" + std::to_string(i) + (i % 4 == 0 ? " = softmax(v" : " = exp(v") + std::to_string(i - 1) + ")\n";
  return ir::parse(text + "  return v" + std::to_string(length) + "\n}\n");
}

class KeptPlans : public testing::Test {
 protected:
  KeptPlans() {
    options.cache = true;
    options.cache_dir = (folder.path() / "cache").string();
    options.disable.clear();
  }

  ir::Plan plan(const ir::Graph& graph) const { return src::kept_plan(graph, plan_options, options); }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(options.cache_dir, none))
      found.push_back(entry.path());
    return found;
  }

  const TemporaryFolder folder;
  Options options;
  ir::PlanOptions plan_options;
};

TEST_F(KeptPlans, AreThoseThatWouldBeMade) {
  const ir::Plan made = plan(chain(64));
  ASSERT_EQ(files().size(), 1U);
  EXPECT_EQ(to_bytes(plan(chain(64))), to_bytes(made));
  EXPECT_EQ(to_bytes(ir::make_plan(chain(64), plan_options)), to_bytes(made));
  EXPECT_EQ(files().size(), 1U);
}

// What lies in the file is what the next process gets: here another name, put there by hand.
TEST_F(KeptPlans, AreReadAgain) {
  ir::Plan other = plan(chain(64));
  ASSERT_EQ(files().size(), 1U);
  const std::string text = read_text(files()[0]);
  std::string why;
  const auto entry = runtime::decode_cache_file(std::as_bytes(std::span(text)), why);
  ASSERT_TRUE(entry) << why;
  other.graph.name = "by_hand";
  const auto changed = runtime::encode_cache_file(entry->key_text, {to_bytes(other), {}});
  write_text(files()[0], std::string(reinterpret_cast<const char*>(changed.data()), changed.size()));
  EXPECT_EQ(plan(chain(64)).graph.name, "by_hand");
}

TEST_F(KeptPlans, AreMadeAgainWhereTheFileIsDamaged) {
  const ir::Plan made = plan(chain(64));
  ASSERT_EQ(files().size(), 1U);
  std::string text = read_text(files()[0]);
  text[text.size() / 2] ^= 1;
  write_text(files()[0], text);
  EXPECT_EQ(to_bytes(plan(chain(64))), to_bytes(made));
  EXPECT_EQ(files().size(), 1U);  // written anew
  EXPECT_NE(read_text(files()[0]), text);
}

TEST_F(KeptPlans, AreOfOneGraphAndOfOneChoiceOfOptions) {
  plan(chain(64));
  plan(chain(65));
  EXPECT_EQ(files().size(), 2U);
  plan_options.cost.bandwidth_gb_s /= 2;
  plan(chain(64));
  EXPECT_EQ(files().size(), 3U);
  plan_options.fuse = false;
  EXPECT_EQ(plan(chain(64)).groups.size(), ir::make_plan(chain(64), plan_options).groups.size());
  EXPECT_EQ(files().size(), 4U);
  options.disable = {"cse"};  // a pass
  plan(chain(64));
  EXPECT_EQ(files().size(), 5U);
}

TEST_F(KeptPlans, AreNotOfFewOperatorsNorWhereSwitchedOff) {
  plan(chain(8));
  EXPECT_TRUE(files().empty());
  options.disable = {"plans"};
  plan(chain(64));
  EXPECT_TRUE(files().empty());
  options.disable.clear();
  options.cache = false;
  plan(chain(64));
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace tenon::test
