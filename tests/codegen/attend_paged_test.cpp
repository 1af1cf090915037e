// Attention of warpgroups over caches of pages that a table names (codegen/analysis/page.h), on the host: what no key
// reads is NaN.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/paged_attention.h"
#include "tests/codegen/text_checks.h"
#include "tests/codegen/wgmma_on_host.h"
#include "tests/harness/differential.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using codegen::Kernel;

// That the attention with this schedule is what the interpreter says.
void expect_same(const RandomCase& c, const std::string& schedule) {
  Options options = default_options();
  options.cache = false;
  int attentions = 0;
  const Verdict verdict =
      check_with_schedules(c, "hopper_on_host", options, [&](const Kernel& kernel) -> std::optional<codegen::Schedule> {
        if (kernel.kernel_class != ir::KernelClass::attend) return std::nullopt;
        ++attentions;
        const codegen::Schedule given = codegen::parse_schedule("attend loop=wgmma " + schedule);
        EXPECT_EQ(verify(given, kernel, hopper()), "");
        return given;
      });
  EXPECT_TRUE(verdict.same) << verdict.difference;
  EXPECT_EQ(verdict.undecided, 0);
  EXPECT_EQ(attentions, 1);
}

void expect_paged(const PagedCase& c, const std::string& schedule) {
  SCOPED_TRACE(paged_text(c));
  expect_same(paged_case(c, 7), schedule);
}

// The only kernel of the graph, with what is chosen for it.
Kernel kernel_of(const std::string& text, const Bindings& bindings = {}) {
  const ir::Plan plan = src::plan(ir::parse(text), *backend_of("hopper_on_host"), default_options());
  EXPECT_EQ(plan.groups.size(), 1U);
  return scheduled_kernel(plan, 0, codegen::specialize(plan, bindings), hopper());
}

TEST(PagedAttention, ATileIsSeveralPages) {
  expect_paged({.name = "halves", .rows = 32}, "tile_kv=64 stages=3");
  expect_paged({.name = "eighths", .dtype = DType::bf16, .index = DType::i32, .rows = 16, .pages = 9}, "tile_kv=128");
}

TEST(PagedAttention, ATileIsAPage) { expect_paged({.name = "page", .rows = 64}, "tile_kv=64"); }

TEST(PagedAttention, ATileIsAShareOfAPage) {
  expect_paged({.name = "quarters", .dtype = DType::bf16, .rows = 128, .pages = 2}, "tile_kv=32 stages=4");
}

TEST(PagedAttention, TheLastKeyMayBeAnywhere) {
  for (const std::int64_t keys : {3, 31, 64, 70}) {
    expect_paged({.name = "in_a_short_page", .rows = 16, .pages = 7, .keys = keys}, "tile_kv=64");
    expect_paged({.name = "in_a_long_page", .rows = 64, .pages = 2, .keys = keys}, "tile_kv=32");
  }
}

TEST(PagedAttention, HeadsThatShareKeysAreQueriesOfOne) {
  expect_paged({.name = "groups", .dtype = DType::bf16, .group = 4, .keys = 130, .depth = 128}, "tile_kv=64");
  expect_paged({.name = "groups_of_steps", .group = 3, .queries = 5, .rows = 64, .pages = 2}, "tile_kv=32");
}

TEST(PagedAttention, BlocksOfAClusterDivideThePages) {
  for (const std::int64_t rows : {16, 32, 128})
    expect_paged({.name = "in_parts", .rows = rows, .pages = 256 / rows, .keys = 200}, "tile_kv=32 parts=2 stages=3");
}

TEST(PagedAttention, PagesMayHaveAnyLayoutAndTwoTables) {
  expect_paged({.name = "heads_first", .heads_first = true}, "tile_kv=64");
  expect_paged({.name = "two_tables", .two_tables = true}, "tile_kv=64");
}

TEST(PagedAttention, ManyQueriesSeeWhatTheirMaskLeaves) {
  expect_paged({.name = "prefill", .sequences = 1, .queries = 150, .rows = 16, .pages = 10, .causal = true},
               "tile_q=128 tile_kv=64 turns");
  expect_paged({.name = "chunk", .sequences = 1, .queries = 70, .rows = 64, .pages = 3, .keys = 150, .causal = true},
               "tile_q=64 tile_kv=32");
}

TEST(PagedAttention, SizesAreSymbols) {
  expect_paged({.name = "pages", .symbols = true}, "tile_kv=64");
  for (const std::int64_t keys : {96, 70})
    expect_paged({.name = "keys", .rows = 16, .pages = 7, .keys = keys, .symbols = true}, "tile_kv=64");
}

// As a server has them: sequences of different lengths, which a mask hides behind their ends.
TEST(PagedAttention, SequencesHaveLengths) {
  const ir::Graph graph = ir::parse(
      R"(graph served(q: bf16[3, 8, 1, 64], k: bf16[20, 16, 2, 64], v: bf16[20, 16, 2, 64], t: i32[3, 6], n: i32[3]) {
        keys = transpose(reshape(take(k, t), shape=[3, 96, 2, 64]), perm=[0, 2, 1, 3])
        values = transpose(reshape(take(v, t), shape=[3, 96, 2, 64]), perm=[0, 2, 1, 3])
        valid = less(iota(shape=[96], dtype=i32), reshape(n, shape=[3, 1, 1, 1]))
        y = attention(q, keys, values, where(valid, full(shape=[], value=0, dtype=f32), -inf))
        return y
      })");
  RandomCase c{graph, {}, random_inputs(graph, {}, 7), {}};
  for (std::int64_t sequence = 0; sequence < 3; ++sequence)
    ir::set_integer(c.inputs[4], sequence, std::array{70, 1, 96}[static_cast<std::size_t>(sequence)]);
  for (std::int64_t at = 0; at < 18; ++at) ir::set_integer(c.inputs[3], at, at * 7 % 20);
  expect_same(c, "tile_kv=32 parts=2 stages=3");
  expect_same(c, "tile_kv=64");
}

// Tiles that a mask hides are asked for by nobody, and the pages of others are found as before.
TEST(PagedAttention, TilesThatNobodySeesAreSkipped) {
  const ir::Graph graph = ir::parse(
      R"(graph documents(q: f16[2, 40, 64], k: f16[20, 16, 64], v: f16[20, 16, 64], t: i64[14], of: i32[40], in: i32[220]) {
        keys = slice(reshape(take(k, t), shape=[1, 224, 64]), axis=[1], start=[0], stop=[220])
        values = slice(reshape(take(v, t), shape=[1, 224, 64]), axis=[1], start=[0], stop=[220])
        same = equal(reshape(of, shape=[40, 1]), in)
        y = attention(q, broadcast_to(keys, shape=[2, 220, 64]), broadcast_to(values, shape=[2, 220, 64]),
                      where(same, full(shape=[], value=0, dtype=f32), -inf))
        return y
      })");
  RandomCase c{graph, {}, random_inputs(graph, {}, 7), {}};
  for (std::int64_t at = 0; at < 14; ++at) ir::set_integer(c.inputs[3], at, at * 7 % 20);
  for (std::int64_t at = 0; at < 40; ++at) ir::set_integer(c.inputs[4], at, 1 + at / 39);
  for (std::int64_t at = 0; at < 220; ++at) ir::set_integer(c.inputs[5], at, at / 70);
  expect_same(c, "tile_kv=32 block_mask");
  expect_same(c, "tile_kv=64 block_mask parts=2 stages=3");
}

// A sequence may have one page of any length, and queries may be gathered alike.
TEST(PagedAttention, ASlotOfACacheIsAPage) {
  const std::string text = R"(graph slots(q: f16[2, 3, 64], k: f16[5, 100, 64], v: f16[5, 100, 64], slot: i64[2]) {
    y = attention(q, take(k, slot), take(v, slot))
    return y
  })";
  RandomCase c{ir::parse(text), {}, random_inputs(ir::parse(text), {}, 7), {}};
  expect_same(c, "tile_kv=64");
}

std::string why_not(const PagedCase& c, const std::string& schedule) {
  return verify(codegen::parse_schedule("attend loop=wgmma " + schedule), kernel_of(paged_text(c)), hopper());
}

TEST(PagedAttention, ATileFitsItsPages) {
  EXPECT_EQ(why_not({.name = "longer", .rows = 96}, "tile_kv=64"), "a tile is whole pages, or a whole share of one");
  EXPECT_EQ(why_not({.name = "shorter", .rows = 48}, "tile_kv=64"), "a tile is whole pages, or a whole share of one");
  EXPECT_EQ(why_not({.name = "shares", .rows = 96}, "tile_kv=48"), "");
  EXPECT_EQ(why_not({.name = "few", .rows = 4, .pages = 16}, "tile_kv=64"), "pages have eight rows, or a multiple");
  EXPECT_EQ(why_not({.name = "single", .rows = 1, .pages = 64}, "tile_kv=64"), "pages have eight rows, or a multiple");
}
// Keys that begin within a page lie across boxes.
TEST(PagedAttention, WhatNoBoxHasIsReadByThreads) {
  const Kernel kernel = kernel_of(R"(graph later(q: f16[2, 1, 64], k: f16[9, 32, 64], v: f16[9, 32, 64], t: i64[2, 4]) {
    keys = slice(reshape(take(k, t), shape=[2, 128, 64]), axis=[1], start=[10], stop=[128])
    values = slice(reshape(take(v, t), shape=[2, 128, 64]), axis=[1], start=[10], stop=[128])
    y = attention(q, keys, values)
    return y
  })");
  EXPECT_EQ(verify(codegen::parse_schedule("attend loop=wgmma tile_kv=32"), kernel, hopper()),
            "an operand's rows are no plain function of the loops");
  EXPECT_EQ(std::get<codegen::AttendSchedule>(kernel.schedule).loop, codegen::MainLoop::mma_sync);
}

TEST(PagedAttention, TheProducerReadsTheTable) {
  const std::string text =
      emit_cuda(kernel_of(paged_text({.name = "text", .rows = 16, .pages = 8, .keys = 100})), hopper()).text;
  const std::string box = "(to + panel * 16384 + at * 2048, ", place = ", full, panel * 64, 0, (int)b1, pages[at]);";
  expect_lines(text, {"int pages[4];", "const int s = first + at * 16;", "pages[at] = -1;", "if (s < 100) {",
                      "copy_box" + box + "map1" + place, "if (first + at * 16 < 96) {",
                      "copy_box" + box + "map2" + place, "} else {", "copy_box" + box + "map3" + place});
}

TEST(PagedAttention, CompilesWithoutSpillsOrWarnings) {
  for (const PagedCase& c :
       {PagedCase{.name = "short_pages", .queries = 2000, .rows = 8, .pages = 255, .keys = 2035, .causal = true},
        PagedCase{.name = "long_pages", .queries = 2000, .rows = 128, .pages = 20, .depth = 128},
        PagedCase{.name = "symbols", .queries = 2000, .rows = 16, .pages = 99, .keys = 1501, .symbols = true},
        PagedCase{.name = "far", .sequences = 500, .queries = 2000, .rows = 16, .pages = 3001, .depth = 128}}) {
    Kernel kernel = kernel_of(paged_text(c), c.bindings());
    for (const char* tile : {"tile_q=192 turns", "tile_q=128 turns", "tile_q=64 stages=3"})
      for (const int keys : {128, 112, 96, 80, 64, 48, 32}) {
        kernel.schedule = codegen::parse_schedule(fmt::format("attend loop=wgmma tile_kv={} {}", keys, tile));
        if (!verify(kernel.schedule, kernel, hopper()).empty()) continue;
        SCOPED_TRACE(fmt::format("{}: {}", c.name, print(kernel.schedule)));
        expect_compiles_for(emit_cuda(kernel, hopper()), {hopper().arch});
        break;
      }
  }
}

// As many blocks as without pages, and tiles as long where they fit.
TEST(PagedAttention, IsChosenForDecoding) {
  const auto chosen = [](std::int64_t rows, std::int64_t sequences) {
    return print(kernel_of(paged_text({.name = "decode",
                                       .dtype = DType::bf16,
                                       .sequences = sequences,
                                       .heads = 8,
                                       .group = 4,
                                       .rows = rows,
                                       .pages = 8192 / rows,
                                       .depth = 128}))
                     .schedule);
  };
  for (const std::int64_t rows : {16, 32, 64, 128, 256}) {
    EXPECT_EQ(chosen(rows, 16), "attend loop=wgmma tile_kv=128 vector=1 stages=3");
    EXPECT_EQ(chosen(rows, 2), "attend loop=wgmma tile_kv=128 vector=1 stages=3 parts=6");
  }
  EXPECT_EQ(chosen(1, 16), "attend loop=mma_sync vector=8");
}
}  // namespace
}  // namespace tenon::test
