// What `tenon sweep` draws.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "ir/graph/build.h"
#include "ir/text/text.h"
#include "tests/cli/cli.h"
#include "tools/sweep/distribution.h"
#include "tools/sweep/draw.h"
#include "tools/work.h"

namespace tenon::tools::sweep {
namespace {

constexpr std::uint64_t kSeed = 7, kGraphs = 3000;

TEST(SweepDrawing, IsLegalAndReadsBack) {
  for (std::uint64_t i = 0; i < kGraphs; ++i) {
    const Drawn drawn = draw(kSeed, i, {});
    SCOPED_TRACE(ir::print(drawn.graph));
    ASSERT_NO_THROW(ir::verify(drawn.graph));
    ASSERT_EQ(ir::print(ir::parse(ir::print(drawn.graph))), ir::print(drawn.graph));
    ASSERT_EQ(drawn.bytes, unavoidable_bytes(drawn.graph, {}));
    const auto users = ir::users_of(drawn.graph);
    for (const ir::ValueId input : drawn.graph.inputs)
      EXPECT_FALSE(users[static_cast<std::size_t>(input)].empty()) << "an input that nothing reads";
    for (const ir::Value& value : drawn.graph.values)
      for (const Dim& extent : value.type.shape) ASSERT_GT(extent.constant(), 0);
    for (const ir::ValueId output : drawn.graph.outputs)
      EXPECT_NE(drawn.graph.producer(output).op, ir::Op::input) << "nothing to compute";
  }
}

TEST(SweepDrawing, IsTheSameOfTheSameSeed) {
  std::set<std::string> texts;
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(ir::print(draw(kSeed, i, {}).graph), ir::print(draw(kSeed, i, {}).graph));
    texts.insert(ir::print(draw(kSeed, i, {}).graph));
    texts.insert(ir::print(draw(kSeed + 1, i, {}).graph));
  }
  EXPECT_EQ(texts.size(), 100U);
}

TEST(SweepDrawing, HoldsEveryClassDTypeAndRank) {
  std::map<std::string, int> classes;
  std::set<DType> dtypes;
  std::set<std::size_t> ranks;
  std::int64_t longest = 0;
  for (std::uint64_t i = 0; i < kGraphs; ++i) {
    const Drawn drawn = draw(kSeed, i, {});
    ++classes[drawn.kind->name];
    for (const ir::Value& value : drawn.graph.values) {
      dtypes.insert(value.type.dtype);
      ranks.insert(value.type.shape.size());
      for (const Dim& extent : value.type.shape) longest = std::max(longest, extent.constant());
    }
  }
  for (const Class& kind : all_classes()) EXPECT_GE(classes[kind.name], 20) << kind.name;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::i8,
                            DType::u8, DType::i16, DType::bool_})
    EXPECT_TRUE(dtypes.contains(dtype)) << name_of(dtype);
  for (std::size_t rank = 0; rank <= 6; ++rank) EXPECT_TRUE(ranks.contains(rank)) << rank;
  EXPECT_GT(longest, 1 << 28);
}

TEST(SweepDrawing, HasTheBytesThatWereAskedFor) {
  const DrawSettings settings{1 << 20, 1 << 30, {}};
  std::vector<double> sizes;
  for (std::uint64_t i = 0; i < kGraphs; ++i) {
    sizes.push_back(std::log2(static_cast<double>(draw(kSeed, i, settings).bytes)));
    EXPECT_GE(sizes.back(), 20 - 0.5);
    EXPECT_LE(sizes.back(), 30 + 0.5);
  }
  EXPECT_NEAR(distribution(sizes).median, 25, 1);  // log-uniform
}

TEST(SweepDrawing, IsRedrawnSmallerOfTheSameClass) {
  const DrawSettings settings{1 << 24, 1 << 30, {}};
  int alike = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Drawn large = draw(kSeed, i, settings), small = redraw(large, 1 << 16);
    EXPECT_EQ(small.kind, large.kind);
    EXPECT_LT(small.bytes, large.bytes / 8) << ir::print(small.graph);
    alike += small.graph.nodes.size() == large.graph.nodes.size() ? 1 : 0;
  }
  EXPECT_GE(alike, 90);
}

TEST(SweepDrawing, OfOneClassOrNamesThoseThereAre) {
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_STREQ(draw(kSeed, i, {1 << 20, 1 << 24, {"loss"}}).kind->name, "loss");
  try {
    draw(kSeed, 0, {1 << 20, 1 << 24, {"losses"}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "'losses' is no class of graphs");
  }
}

TEST(Distribution, IsOfSortedShares) {
  std::vector<double> shares;
  for (int i = 100; i >= 0; --i) shares.push_back(i / 100.0);
  const Distribution d = distribution(shares);
  EXPECT_EQ(d.count, 101U);
  EXPECT_EQ(d.median, 0.5);
  EXPECT_EQ(d.p5, 0.05);
  EXPECT_EQ(d.worst, 0.0);
  EXPECT_EQ(distribution({}).count, 0U);
}

}  // namespace
}  // namespace tenon::tools::sweep
