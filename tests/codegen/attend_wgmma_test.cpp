// Attention on warpgroups (codegen/prelude/attend_wgmma.cuh) on the host: masks, lengths, widths and turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/codegen/text_checks.h"
#include "tests/codegen/wgmma_on_host.h"
#include "tests/harness/replace_text.h"

namespace tenon::test {
namespace {

codegen::Source expect_attention(const AttentionCase& c, const std::string& schedule) {
  SCOPED_TRACE(c.name + " " + schedule);
  Kernel kernel = attention_kernel(c, hopper());
  kernel.schedule = codegen::parse_schedule("attend loop=wgmma " + schedule);
  EXPECT_EQ(verify(kernel.schedule, kernel, hopper()), "");
  const codegen::Source source = emit_cuda(kernel, hopper());
  const CudaOnHost host(source);
  std::uint64_t seed = 1;
  for (const Bindings& at : c.bindings) {
    try {
      check_attention(c, at, kernel, run_on_host(host, kernel, source, at, seed++));
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  return source;
}

TEST(WarpgroupAttention, EachRowIsTheMixOfItsValues) {
  expect_attention({.name = "one_tile", .heads = 1, .queries = 64, .keys = 64}, "tile_q=64 tile_kv=64");
  expect_attention({.name = "several", .queries = 200, .keys = 150}, "tile_q=128 tile_kv=64");
  expect_attention({.name = "bf16", .dtype = DType::bf16, .queries = 130, .keys = 300}, "tile_q=128 tile_kv=64 turns");
  expect_attention({.name = "three", .queries = 400, .keys = 100}, "tile_q=192 tile_kv=32 turns stages=3");
  expect_attention({.name = "deep", .queries = 70, .keys = 100, .depth = 128, .width = 128}, "tile_q=64 tile_kv=48");
  expect_attention({.name = "other_width", .queries = 70, .keys = 100, .depth = 96, .width = 40},
                   "tile_q=64 tile_kv=48");
}

TEST(WarpgroupAttention, MasksBoundTheKeysAndHideTheRest) {
  for (const char* schedule : {"tile_q=128 tile_kv=64 turns", "tile_q=64 tile_kv=32"}) {
    expect_attention({.name = "causal", .queries = 300, .keys = 300, .mask = Mask::causal, .lse = true}, schedule);
    expect_attention({.name = "end_aligned", .queries = 100, .keys = 300, .mask = Mask::causal}, schedule);
    expect_attention({.name = "empty_rows", .queries = 300, .keys = 100, .mask = Mask::causal, .lse = true}, schedule);
    expect_attention({.name = "nan_rows", .queries = 200, .keys = 100, .mask = Mask::causal, .by_hand = true},
                     schedule);
    expect_attention({.name = "window", .queries = 400, .keys = 400, .mask = Mask::window}, schedule);
    expect_attention({.name = "loaded", .queries = 100, .keys = 90, .mask = Mask::loaded}, schedule);
  }
}

TEST(WarpgroupAttention, LengthsOfSequencesBoundTheKeys) {
  for (const char* schedule : {"tile_q=128 tile_kv=64 turns", "tile_q=64 tile_kv=32"}) {
    expect_attention({.name = "lengths", .heads = 6, .queries = 70, .keys = 300, .mask = Mask::lengths}, schedule);
  }
}

// Tiles of keys that documents or prefixes hide are skipped, or not.
TEST(WarpgroupAttention, LoadedMasksHideTiles) {
  for (const char* schedule :
       {"tile_q=128 tile_kv=64 turns", "tile_q=128 tile_kv=64 turns block_mask", "tile_q=64 tile_kv=32 block_mask",
        "tile_q=128 tile_kv=32 block_mask stages=3", "tile_q=64 tile_kv=32 parts=2 stages=3 block_mask"}) {
    expect_attention({.name = "documents", .queries = 700, .keys = 700, .mask = Mask::documents, .lse = true},
                     schedule);
    expect_attention({.name = "prefixes", .queries = 300, .keys = 400, .mask = Mask::prefixes, .lse = true}, schedule);
  }
}

TEST(WarpgroupAttention, ScoresAndWeightsAreAnyFunctionOfPositions) {
  const char* const schedule = "tile_q=128 tile_kv=64 turns";
  expect_attention({.name = "alibi", .queries = 150, .keys = 200, .mask = Mask::causal, .alibi = true}, schedule);
  expect_attention({.name = "softcap", .queries = 100, .keys = 100, .softcap = true}, schedule);
  expect_attention({.name = "dropout", .queries = 100, .keys = 90, .dropout = true}, schedule);
  expect_attention({.name = "by_hand", .queries = 100, .keys = 90, .by_hand = true, .alibi = true}, schedule);
}

// Neighbouring keys share blocks of Philox where rows begin with one.
TEST(WarpgroupAttention, FourRandomNumbersAreDrawnAtOnce) {
  const auto expect = [](AttentionCase c, const char* schedule, const std::vector<std::string>& pieces) {
    c.dropout = true;
    expect_lines(expect_attention(c, schedule).text, pieces);
  };
  const char* const schedule = "tile_q=128 tile_kv=48 turns";
  const std::vector<std::string> fours{"score = by_fours(", "const auto factor = by_fours(", "(u32)("};
  expect({.name = "fours", .queries = 130, .keys = 92, .draws_from = 0}, schedule, fours);
  expect({.name = "causal", .queries = 130, .keys = 140, .mask = Mask::causal, .draws_from = 0},
         "tile_q=128 tile_kv=64 turns", fours);
  expect({.name = "in_parts", .queries = 70, .keys = 300, .draws_from = 8}, "tile_q=64 tile_kv=32 parts=2 stages=3",
         fours);
  expect({.name = "many", .queries = 70, .keys = 100, .draws_from = std::int64_t{1} << 33}, schedule,
         {"philox(keys", "(u32)(", "(i64)i"});
  expect({.name = "more", .queries = 70, .keys = 100, .draws_from = (std::int64_t{1} << 36) + 4}, schedule,
         {"philox(keys", "(u64)(", "(i64)i"});
  expect({.name = "odd_rows", .queries = 70, .keys = 90, .draws_from = 0}, schedule,
         {"score = [&](", "random_element<u32>(", "const auto factor = [&](", "random_element<u32>("});
  expect({.name = "odd_start", .queries = 70, .keys = 100, .draws_from = 2}, schedule, {"random_element<u32>("});
  const auto lengths = [](std::int64_t divisor) {
    return AttentionCase{.name = "lengths",
                         .queries = 70,
                         .keys = Dim::symbol("sk"),
                         .draws_from = 0,
                         .symbols = {{"sk", {0, 1 << 20, divisor}}},
                         .bindings = {{{"sk", 0}}, {{"sk", 8}}, {{"sk", 100}}}};
  };
  expect(lengths(4), schedule, fours);
  expect(lengths(2), schedule, {"random_element<u32>("});
}

// In pairs ahead of the scores where rows have an even number of keys, else one by one.
TEST(WarpgroupAttention, BiasesAreReadAheadOfScores) {
  for (const char* schedule :
       {"tile_q=128 tile_kv=64 turns", "tile_q=64 tile_kv=48", "tile_q=64 tile_kv=32 parts=2 stages=3"}) {
    expect_attention({.name = "pairs", .queries = 130, .keys = 202, .lse = true, .bias = true}, schedule);
    expect_attention({.name = "bf16", .dtype = DType::bf16, .queries = 70, .keys = 64, .bias = true}, schedule);
    expect_attention({.name = "causal", .queries = 200, .keys = 200, .mask = Mask::causal, .bias = true}, schedule);
    expect_attention({.name = "window", .queries = 200, .keys = 200, .mask = Mask::window, .bias = true}, schedule);
    expect_attention({.name = "odd", .queries = 70, .keys = 91, .bias = true}, schedule);
  }
}

TEST(WarpgroupAttention, BoxesBringWhatScoresRead) {
  const auto expect = [](AttentionCase c, const std::string& schedule) {
    c.bias = true;
    expect_lines(expect_attention(c, schedule + " score_boxes").text, {"const auto open_score = by_boxes("});
  };
  for (const char* schedule :
       {"tile_q=128 tile_kv=64 turns", "tile_q=64 tile_kv=48", "tile_q=64 tile_kv=32 parts=2 stages=3"}) {
    expect({.name = "rows", .queries = 130, .keys = 200, .lse = true}, schedule);
    expect({.name = "bf16", .dtype = DType::bf16, .queries = 70, .keys = 64}, schedule);
    expect({.name = "causal", .queries = 200, .keys = 200, .mask = Mask::causal}, schedule);
    expect({.name = "window", .queries = 200, .keys = 200, .mask = Mask::window}, schedule);
    expect({.name = "f32", .queries = 130, .keys = 204, .bias_dtype = DType::f32}, schedule);
    expect({.name = "bytes", .queries = 130, .keys = 208, .bias_dtype = DType::i8}, schedule);
  }
}

TEST(WarpgroupAttention, FaultsOfWhatBoxesBringShow) {
  const AttentionCase c{
      .name = "sound", .heads = 4, .queries = 130, .keys = 200, .depth = 16, .width = 32, .bias = true};
  Kernel kernel = attention_kernel(c, hopper());
  kernel.schedule = codegen::parse_schedule("attend loop=wgmma tile_q=128 tile_kv=32 turns score_boxes");
  const codegen::Source source = emit_cuda(kernel, hopper());
  const Array right = run_on_host(CudaOnHost(source), kernel, source, {}, 1).back();
  for (const std::string what :
       {"wait_arrival(full_s + place, at_s.parity);", "wait_arrival(empty_s + place, at_s.parity ^ 1);",
        "if (threadIdx.x % 32 == 0) arrive(empty_s + group * stages_s + at_s.stage);"}) {
    codegen::Source faulty = source;
    ASSERT_TRUE(replace(faulty.text, what, ";")) << what;
    const CudaOnHost host(faulty);
    bool shows = false;
    for (std::uint64_t seed = 1; seed <= 40 && !shows; ++seed) {
      try {
        shows = run_on_host(host, kernel, faulty, {}, seed).back().values != right.values;
      } catch (const std::runtime_error&) {
        shows = true;
      }
    }
    EXPECT_TRUE(shows) << what;
  }
}

// The row of one query has no stride.
TEST(WarpgroupAttention, OneQueryHasABox) {
  expect_attention({.name = "one_query", .queries = 1, .keys = 200}, "tile_q=64 tile_kv=64");
  expect_attention({.name = "one_query_in_parts", .queries = 1, .keys = 300}, "tile_q=64 tile_kv=32 parts=2 stages=3");
}

TEST(WarpgroupAttention, BlocksOfAClusterDivideTheKeys) {
  for (const char* schedule :
       {"tile_q=64 tile_kv=32 parts=4 stages=3", "tile_q=128 tile_kv=48 turns parts=3 stages=4"}) {
    expect_attention({.name = "few", .queries = 4, .keys = 500, .lse = true}, schedule);
    expect_attention({.name = "causal", .queries = 150, .keys = 200, .mask = Mask::causal, .lse = true}, schedule);
    expect_attention({.name = "no_share", .queries = 70, .keys = 40, .mask = Mask::causal, .lse = true}, schedule);
    expect_attention({.name = "nan_rows", .queries = 90, .keys = 60, .mask = Mask::causal, .by_hand = true}, schedule);
  }
}

// Units of 16 queries by 32 columns: several for a warp, one for each, one for all warps of a block.
TEST(WarpgroupAttention, BlocksThatMeetInMemoryDivideTheKeys) {
  for (const char* schedule :
       {"tile_q=64 tile_kv=32 split_kv=2 stages=3", "tile_q=64 tile_kv=32 split_kv=9 stages=3",
        "tile_q=64 tile_kv=16 split_kv=22 stages=3 resident=2", "tile_q=128 tile_kv=48 turns split_kv=3 stages=4"}) {
    expect_attention({.name = "few", .queries = 4, .keys = 500, .lse = true}, schedule);
    expect_attention({.name = "one", .queries = 1, .keys = 300}, schedule);
    expect_attention({.name = "causal", .queries = 150, .keys = 200, .mask = Mask::causal, .lse = true}, schedule);
    expect_attention({.name = "no_share", .queries = 70, .keys = 40, .mask = Mask::causal, .lse = true}, schedule);
    expect_attention({.name = "nan_rows", .queries = 90, .keys = 60, .mask = Mask::causal, .by_hand = true}, schedule);
  }
}

// What the emulation shows where a wait, a fence or a release is wrong.
TEST(WarpgroupAttention, FaultsShow) {
  const AttentionCase c{.name = "sound", .heads = 4, .queries = 130, .keys = 200};
  Kernel kernel = attention_kernel(c, hopper());
  kernel.schedule = codegen::parse_schedule("attend loop=wgmma tile_q=128 tile_kv=32 turns");
  const codegen::Source source = emit_cuda(kernel, hopper());
  const auto expect = [&](const std::string& sign, const std::string& what, const std::string& by) {
    codegen::Source faulty = source;
    ASSERT_TRUE(replace(faulty.text, what, by)) << what;
    std::string seen = "nothing";
    const CudaOnHost host(faulty);
    for (std::uint64_t seed = 1; seed <= 6 && seen == "nothing"; ++seed) {
      try {
        run_on_host(host, kernel, faulty, {}, seed);
      } catch (const std::runtime_error& error) {
        seen = error.what();
      }
    }
    EXPECT_NE(seen.find(sign), std::string::npos) << "'" << what << "' -> '" << by << "' shows '" << seen << "'";
  };
  expect("a copy is under way to it", "wait_arrival(full_v + at_v.stage, at_v.parity);", ";");
  expect("all threads wait", "release(empty_k + at_k.stage);", ";");
  expect("all threads wait", "release(empty_q + at_q.stage);", ";");
  expect("changes before the product has run",
         "wait_products<0>();\n          settle(sum);\n          finish_values();", "finish_values();");
  expect("more arrive at a barrier than it counts", "wait_arrival(empty + at.stage, at.parity ^ 1);", ";");
  expect("no wgmma.fence", "begin_products();", ";");
  expect("for its turn", "give_turn<256>(1 + (group + 1) % consumers);", ";");
}

// Of blocks that meet in memory: all warps of a block have one unit, or each has its own.
TEST(WarpgroupAttention, SumsThatAreReadTooEarlyShow) {
  const AttentionCase c{.name = "sound", .heads = 2, .queries = 20, .keys = 300};
  Kernel kernel = attention_kernel(c, hopper());
  kernel.schedule = codegen::parse_schedule("attend loop=wgmma tile_q=64 tile_kv=32 split_kv=8 stages=3");
  const codegen::Source source = emit_cuda(kernel, hopper());
  const Array right = run_on_host(CudaOnHost(source), kernel, source, {}, 1).back();
  for (const std::string what :
       {"if (threadIdx.x == 0) meet_in_memory(reinterpret_cast<u32*>(split.counters + tile * 128), parts);",
        "wait_turn<threads>(4);  // all have stored theirs", "wait_turn<threads>(4);  // all have added up theirs"}) {
    codegen::Source faulty = source;
    ASSERT_TRUE(replace(faulty.text, what, ";")) << what;
    const CudaOnHost host(faulty);
    bool shows = false;
    for (std::uint64_t seed = 1; seed <= 6 && !shows; ++seed)
      shows = run_on_host(host, kernel, faulty, {}, seed).back().values != right.values;
    EXPECT_TRUE(shows) << what;
  }
}

TEST(WarpgroupAttention, LengthsAreSymbols) {
  const std::vector<AttentionCase> cases = attention_cases();
  const auto lengths = std::find_if(cases.begin(), cases.end(), [](const auto& c) { return c.name == "f16_lengths"; });
  ASSERT_NE(lengths, cases.end());
  expect_attention(*lengths, "tile_q=128 tile_kv=64 turns");
}

}  // namespace
}  // namespace tenon::test
