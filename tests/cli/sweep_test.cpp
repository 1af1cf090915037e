// What `tenon sweep` draws.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/graph/build.h"
#include "ir/text/text.h"
#include "src/measure/work.h"
#include "tests/cli/cli.h"
#include "tools/sweep/distribution.h"
#include "tools/sweep/draw.h"

namespace tenon::tools::sweep {
namespace {

constexpr std::uint64_t kSeed = 7, kGraphs = 3000;

TEST(SweepDrawing, IsLegalAndReadsBack) {
  for (std::uint64_t i = 0; i < kGraphs; ++i) {
    const Drawn drawn = draw(kSeed, i, {});
    SCOPED_TRACE(ir::print(drawn.graph));
    ASSERT_NO_THROW(ir::verify(drawn.graph));
    ASSERT_EQ(ir::print(ir::parse(ir::print(drawn.graph))), ir::print(drawn.graph));
    ASSERT_EQ(drawn.bytes, src::unavoidable_bytes(drawn.graph, {}));
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
                            DType::u8, DType::i16, DType::bool_, DType::f8e4m3, DType::f8e5m2})
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

const std::string kSweep = "sweep --seed 3 --bytes 4K:64K ";

#ifdef TENON_WITH_CPU
TEST_F(Cli, SweepTimesDrawnGraphsBesideACopyAndChecksThem) {
  const Outcome outcome = tenon(kSweep + "--target cpu --count 12 --first 4 --seconds 0.001 --no-flush --check --json");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto document = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(document["seed"], 3);
  EXPECT_EQ(document["of_copy"]["all"]["graphs"], 12);
  EXPECT_LE(document["of_copy"]["all"]["worst"], document["of_copy"]["all"]["median"]);
  ASSERT_EQ(document["graphs"].size(), 12U);
  for (std::uint64_t i = 0; i < 12; ++i) {
    const auto& row = document["graphs"][i];
    const Drawn drawn = draw(3, 4 + i, {4 << 10, 64 << 10, {}});
    EXPECT_EQ(row["index"], 4 + i);
    EXPECT_EQ(row["class"], drawn.kind->name);
    EXPECT_EQ(row["text"], ir::print(drawn.graph));
    EXPECT_EQ(ir::print(ir::parse_json(row["graph"].dump())), ir::print(drawn.graph));
    EXPECT_EQ(row["bytes"], drawn.bytes);
    EXPECT_EQ(row["check"], "ok");
    EXPECT_GT(row["ms"], 0.0);
    EXPECT_GE(row["of_copy"].get<double>() * 1.0001, row["copy_ms"].get<double>() / row["ms"].get<double>());
  }
}

TEST_F(Cli, SweepListsTheSlowestAndHowToDrawThemAgain) {
  const Outcome outcome = tenon(kSweep + "--target cpu --count 4 --seconds 0.001 --no-flush --worst 1 --tune");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "tenon sweep --seed 3 --bytes 4K:64K --only ")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "first choice")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "4 of 4 graphs in ")) << outcome.text;
}

TEST_F(Cli, SweepEndsInItsBudget) {
  const Outcome outcome = tenon(kSweep + "--target cpu --count 100000 --seconds 0.001 --no-flush --budget 1");
  EXPECT_TRUE(contains(outcome.text, " of 100000 graphs in ")) << outcome.text;
}
#endif

TEST_F(Cli, SweepDrawsOneGraphAgain) {
  const Outcome outcome = tenon(kSweep + "--only 7 --save " + path("."));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const std::string text = ir::print(draw(3, 7, {4 << 10, 64 << 10, {}}).graph);
  EXPECT_TRUE(contains(outcome.text, text)) << outcome.text;
  EXPECT_EQ(ir::print(ir::read_file(path("sweep_3_7.tn"))), text);
}

TEST_F(Cli, SweepSaysHowBytesAreWritten) {
  EXPECT_EQ(tenon("sweep --only 1 --bytes 64X").text,
            "tenon: argument error: --bytes: '64X' is no number of bytes\n  help: write 4096, 64K, 16M or 2G\n");
  EXPECT_EQ(tenon("sweep --only 1 --bytes 2M:1M").text,
            "tenon: argument error: --bytes 2M:1M: the first is the larger\n"
            "  help: write the least, then the most: --bytes 64M:1G\n");
  EXPECT_EQ(tenon("sweep --only 1 --bytes 2M:1M").code, 2);
}

}  // namespace
}  // namespace tenon::tools::sweep
