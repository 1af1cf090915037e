// That the emulation of warpgroups (hopper_on_host.h) shows what goes wrong where a wait, a fence, an arrival or a
// stride does: the generated text with one piece replaced.
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "tests/codegen/wgmma_on_host.h"
#include "tests/harness/replace_text.h"

namespace tenon::test {
namespace {

// A kernel that is right, at sizes that give each block several tiles; and copies of it with a fault.
class Sound {
 public:
  explicit Sound(const char* schedule, std::int64_t divisor = 8, bool b_transposed = false) {
    MatmulCase c = any_size(divisor, divisor);
    c.b_transposed = b_transposed;
    kernel_ = wgmma_kernel(c, schedule);
    source_ = emit_cuda(kernel_, hopper());
    right_ = run_on_host(CudaOnHost(source_), kernel_, source_, at_, 1).back();
  }

  // That `sign` is seen of the kernel with `by` in place of `what`, or with each of these changes.
  void expect(const std::string& sign, const std::string& what, const std::string& by) const {
    expect(sign, {{what, by}});
  }
  void expect(const std::string& sign, const std::vector<std::pair<std::string, std::string>>& changes) const {
    codegen::Source faulty = source_;
    for (const auto& [what, by] : changes) {
      SCOPED_TRACE("'" + what + "' -> '" + by + "'");
      ASSERT_TRUE(replace(faulty.text, what, by)) << "there is no such text";
    }
    const std::string seen = seen_of(faulty);
    EXPECT_TRUE(seen.find(sign) != std::string::npos)
        << "'" << changes[0].first << "' -> '" << changes[0].second << "' shows '" << seen << "', not '" << sign << "'";
  }

 private:
  // An error, "wrong result", or nothing.
  std::string seen_of(const codegen::Source& faulty) const {
    const CudaOnHost host(faulty);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      try {
        const Array result = run_on_host(host, kernel_, faulty, at_, seed).back();
        for (std::size_t i = 0; i < right_.values.size(); ++i)
          if (result.values[i] != right_.values[i]) return "wrong result";
      } catch (const std::runtime_error& error) {
        return error.what();
      }
    }
    return "";
  }

  Kernel kernel_;
  codegen::Source source_;
  const Bindings at_ = {{"b", 1}, {"m", 264}, {"n", 136}, {"k", 456}};
  Array right_;
};

const char* const kNotThere = "is not there: a copy is under way to it";
const char* const kEither = "a copy is under way to it";  // when the product is issued, or by the time that it runs
const char* const kChanges = "before the product has run";
const char* const kDeadlock = "all threads wait";
const char* const kWrong = "wrong result";

const Sound& boxes() {
  static const Sound sound("tile_m=128 tile_n=128 stages=3");
  return sound;
}
const Sound& threads() {
  static const Sound sound("tile_m=64 tile_n=64 consumers=1 stages=4 feed_a=threads feed_b=threads", 1);
  return sound;
}
const Sound& copies() {
  static const Sound sound("tile_m=64 tile_n=64 consumers=1 stages=4 feed_a=threads feed_b=threads", 8, true);
  return sound;
}

const char* const kWaitFull = "wait_arrival(full + at.stage, at.parity);";
const char* const kWaitEmpty = "wait_arrival(empty + at.stage, at.parity ^ 1);";
const char* const kRelease = "if (before >= 0) release(before);";

TEST(WarpgroupFaults, WaitsThatAreMissing) {
  boxes().expect(kNotThere, kWaitFull, ";");
  boxes().expect("more arrive at a barrier than it counts", kWaitEmpty, ";");
  boxes().expect(kEither, "wait_products<1>();", ";");
  boxes().expect(kEither, "wait_products<1>();", "wait_products<2>();");
  boxes().expect(kChanges, "wait_products<0>();\n      if (before", "if (before");
  boxes().expect(kEither, "commit_products();", ";");
  threads().expect("is not there: nothing was written there", kWaitFull, ";");
  threads().expect(kChanges, kWaitEmpty, ";");
  copies().expect(kNotThere, "wait_copies<lag>();", ";");
  copies().expect(kNotThere, "if (lag > 0) commit_copies();", ";");
  copies().expect("a thread ends while its copies are under way", "wait_copies<0>();\n        for", "for");
}

TEST(WarpgroupFaults, WaitsForTheWrongPhase) {
  boxes().expect(kNotThere, kWaitFull, "wait_arrival(full + at.stage, at.parity ^ 1);");
  boxes().expect(kDeadlock, kWaitEmpty, "wait_arrival(empty + at.stage, at.parity);");
  boxes().expect("more arrive at a barrier than it counts", "if (++stage == stages) stage = 0, parity ^= 1;",
                 "if (++stage == stages) stage = 0;");
}

TEST(WarpgroupFaults, ReleasesThatAreEarlyOrMissing) {
  boxes().expect(kNotThere, kRelease, "release(at.stage);");
  threads().expect(kChanges, kRelease, "release(at.stage);");
  boxes().expect(kDeadlock, kRelease, "");
}

TEST(WarpgroupFaults, FencesThatAreMissing) {
  boxes().expect("no wgmma.fence", "begin_products();", ";");
  boxes().expect("the copy engine does not know of a barrier", "publish_barriers();", ";");
  threads().expect("is not published", "publish_writes();\n        __syncwarp();", "__syncwarp();");
  copies().expect("is not published", "publish_writes();\n        __syncwarp();", "__syncwarp();");
  threads().expect("is not there", "publish_writes();\n        __syncwarp();", "publish_writes();");
  copies().expect("is not there", "publish_writes();\n        __syncwarp();", "publish_writes();");
  threads().expect(kWrong, "__syncwarp();\n      loads now", "loads now");
  threads().expect(kWrong, "__syncwarp();\n    }\n#pragma unroll", "}\n#pragma unroll");
}

TEST(WarpgroupFaults, BlocksOfTheDepthThatAreAddedTooEarly) {
  const Sound sound("tile_m=64 tile_n=64 consumers=1 stages=3 block_steps=2");
  sound.expect(kChanges, "wait_products<0>();\n          release(before);", "release(before);");
  sound.expect(kDeadlock, "wait_products<0>();\n          release(before);", "wait_products<0>();");
  sound.expect(kWrong, "add_block(sum[block], total[block]);", ";");
}

// Barriers are numbered as they lie: those of full stages, then those of empty ones.
TEST(WarpgroupFaults, DeadlocksThatSayWhereEachThreadWaits) {
  boxes().expect("all threads wait:\n  block 1, threads 0 to 255 wait for parity 1 of barrier 0\n", kRelease, "");
}

TEST(WarpgroupFaults, CountsThatAreWrong) {
  const char* const expects = "expect_bytes(full + at.stage, Tiles::boxed_bytes);";
  boxes().expect(kDeadlock, expects, "expect_bytes(full + at.stage, Tiles::boxed_bytes - 128);");
  boxes().expect(kDeadlock, expects, "expect_bytes(full + at.stage, Tiles::boxed_bytes + 128);");
  boxes().expect(kChanges, "(Tiles::turns ? 1 : consumers) * cluster", "1");
  boxes().expect(kDeadlock, "(Tiles::turns ? 1 : consumers) * cluster", "3");
  boxes().expect(kDeadlock, "(Tiles::boxes ? 1 : 0) + (Tiles::threads ? 4 : 0)", "2");
  boxes().expect("wait for registers", "consumers == 2 ? 232", "consumers == 2 ? 240");
  boxes().expect("wait for registers", "give_registers<Tiles::producer_registers>();", ";");
}

TEST(WarpgroupFaults, StridesThatAreWrong) {
  boxes().expect(kWrong, "(u64)(1024 >> 4) << 32", "(u64)(512 >> 4) << 32");
  boxes().expect(kWrong, "0 : 128 * depth", "0 : 64 * depth");
  boxes().expect("swizzle mode 2", "1ull << 62", "2ull << 62");
  boxes().expect(kWrong, "(a_along_depth ? 32 :", "(a_along_depth ? 64 :");
  boxes().expect(kWrong, "(b_along_depth ? 32 : 32 * depth)", "32");
  boxes().expect(kWrong, "stage + part * 128", "stage + part * 64");
  boxes().expect("is not there", "p, 1, 1, 0, 1;", "p, 1, 1, 0, 0;");
  boxes().expect(kWrong, "k > 0) || i > 0", "true) || i > 0");
  threads().expect(kWrong, "(column / chunk ^ line % 8)", "(column / chunk)");
  const Sound two_blocks("tile_m=128 tile_n=64 consumers=1 stages=3");
  two_blocks.expect(kWrong, "block_a = 64 * 128 / 16", "block_a = 32 * 128 / 16");
}

TEST(WarpgroupFaults, TurnsOutOfOrder) {
  const Sound turns("tile_m=64 tile_n=64 turns stages=3", 8, true);
  turns.expect(kEither, "if (Tiles::turns && number != first) wait_turn<256>(1 + group);", ";");
  turns.expect("for its turn, at barrier 2", "give_turn<256>(1 + (group + 1) % consumers);", ";");
  turns.expect(kNotThere, "if (Tiles::turns) at.advance((skipped - 1) * steps);", ";");
  turns.expect(kNotThere, "if (Tiles::turns) at.advance(group * steps);", ";");
}

TEST(WarpgroupFaults, AFollowerThatIsNotLetGo) {
  const Sound lead("tile_m=128 tile_n=64 stages=3 lead=2", 8, true);
  lead.expect("for its turn, at barrier 1", "if (follows && group == 0 && k == Tiles::lead - 1) give_turn<256>(1);",
              ";");
  lead.expect("for its turn, at barrier 1", "k == Tiles::lead - 1) give_turn", "k == steps) give_turn");
}

TEST(WarpgroupFaults, BlocksOfAClusterThatDoNotWaitForEachOther) {
  const char* const last = "if constexpr (shared_by > 1) join_cluster();";
  const Sound cluster("tile_m=64 tile_n=128 consumers=1 stages=3 cluster=2", 8, true);
  cluster.expect("a block of the cluster has ended already", last, ";");
  cluster.expect("no barrier was begun", "cluster > 1) {\n    join_cluster();", "cluster > 1) {\n    __syncthreads();");
  cluster.expect(kDeadlock, "if (threadIdx.x % 128 < cluster) arrive(empty + stage, threadIdx.x % 128);",
                 "if (threadIdx.x % 128 == 0) arrive(empty + stage);");
  cluster.expect(kDeadlock, "map1, full, 3, ", "map1, full, 1, ");
  const Sound parts("tile_m=128 tile_n=64 stages=4 parts=3", 8, true);
  parts.expect("a block of the cluster has ended already", last, ";");
  parts.expect(kDeadlock, "  join_cluster();\n#pragma unroll 1", "#pragma unroll 1");
  parts.expect(kDeadlock, "if (Tiles::parts > 1 && group >= consumers) join_cluster();", ";");
  parts.expect(kWrong, {{"  join_cluster();\n#pragma unroll 1", "#pragma unroll 1"},
                        {"if (Tiles::parts > 1 && group >= consumers) join_cluster();", ";"}});
  parts.expect(kChanges, "wait_turn<threads>(1);", ";");
}

TEST(WarpgroupFaults, BoxesThatLeaveTooEarlyOrTooLate) {
  const Sound leaves("tile_m=64 tile_n=128 consumers=1 stages=3 box_results");
  leaves.expect("is not published", "publish_writes();\n    __syncwarp();", "__syncwarp();");
  leaves.expect("a box", "publish_writes();\n    __syncwarp();", "publish_writes();");
  leaves.expect("before it has left", "wait_boxes<1>();", ";");
  leaves.expect("before it has left", "wait_boxes<1>();", "wait_boxes<2>();");
  leaves.expect("while boxes are read from it", "if (Tiles::box_results && threadIdx.x % 32 == 0) wait_boxes<0>();",
                ";");
  leaves.expect(kWrong, "(pair ^ row / 2 % 4) * 16", "pair * 16");
  const Sound odd("tile_m=128 tile_n=96 consumers=1 stages=3 box_results", 8, true);
  odd.expect("before it has left", "wait_boxes<0>();  // the last", "wait_boxes<1>();  // the last");
}

TEST(WarpgroupFaults, BlocksThatReadSumsBeforeTheyAreThere) {
  const Sound split("tile_m=128 tile_n=64 stages=4 split_k=3", 8, true);
  const char* const meets =
      "if (threadIdx.x == 0) meet_in_memory(reinterpret_cast<u32*>(split.counters + tile * 128), parts);";
  split.expect(kWrong, meets, ";");
  split.expect(kDeadlock, meets,
               "if (threadIdx.x == 0) meet_in_memory(reinterpret_cast<u32*>(split.counters), parts + 1);");
  split.expect(kWrong, std::string(meets) + "\n  wait_turn<threads>(1);", meets);
  split.expect(kWrong, std::string("wait_turn<threads>(1);  // all have stored theirs\n  ") + meets, meets);
}

TEST(WarpgroupFaults, WarpsThatReadEachOthersSumsBeforeTheyAreThere) {
  const Sound split("tile_m=64 tile_n=64 consumers=1 stages=4 split_k=8");  // all four warps of a block have one unit
  split.expect(kWrong, "wait_turn<threads>(1);  // all have added up theirs", ";");
}

}  // namespace
}  // namespace tenon::test
