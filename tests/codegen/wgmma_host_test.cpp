// The main loop of warpgroups (contract_wgmma.cuh) on the host (hopper_on_host.h): what it computes by every way that
// operands come and sums leave, at sizes that are no multiples of anything; and that the emulation shows what goes
// wrong where a wait, a fence, an arrival or a stride does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/codegen/tensor_reference.h"
#include "tests/harness/cuda_on_host.h"
#include "tests/harness/replace_text.h"

namespace tenon::test {
namespace {

using codegen::parse_schedule;

const codegen::Target& target() {
  static const codegen::Target hopper = codegen::cuda_target("sm_90a");
  return hopper;
}

// Dimensions of the product, "n" and "k" multiples of `divisor`, or of 1.
MatmulCase any_size(std::int64_t divisor_n, std::int64_t divisor_k) {
  MatmulCase c;
  c.a = c.b = c.out = DType::bf16;
  c.batch = Dim::symbol("b"), c.m = Dim::symbol("m"), c.n = Dim::symbol("n"), c.k = Dim::symbol("k");
  c.symbols = {{"b", {0, 16, 1}},
               {"m", {0, 4096, std::max(divisor_n, divisor_k)}},
               {"n", {0, 4096, divisor_n}},
               {"k", {0, 4096, divisor_k}}};
  return c;
}

std::vector<Array> run_here(const CudaOnHost& host, const Kernel& kernel, const codegen::Source& source,
                            const Bindings& at, std::uint64_t seed) {
  return run(kernel, source, at, [&](const auto&, std::vector<Bytes>& operands, const Bindings& bindings) {
    std::vector<void*> pointers;
    for (Bytes& operand : operands) pointers.push_back(operand.data());
    host.run(pointers, bindings, seed);
  });
}

void expect_product(const MatmulCase& c, const std::string& schedule) {
  SCOPED_TRACE(c.name + ": " + schedule);
  Kernel kernel = matmul_kernel(c, target());
  kernel.schedule = parse_schedule("contract loop=wgmma tile_k=64 " + schedule);
  ASSERT_EQ(verify(kernel.schedule, kernel, target()), "");
  const codegen::Source source = emit_cuda(kernel, target());
  const CudaOnHost host(source);
  std::uint64_t seed = 1;
  for (const Bindings& at : c.bindings) {
    std::string sizes;
    for (const auto& [name, size] : at) sizes += fmt::format(" {} = {}", name, size);
    SCOPED_TRACE(sizes);
    try {
      check_matmul(c, at, run_here(host, kernel, source, at, seed++));
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// Both operands along the depth and across it. Symbols that must be multiples of eight for boxes are.
TEST(Warpgroups, MultiplyWhicheverWayOperandsLie) {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      MatmulCase c = any_size(8, 8);
      c.name = fmt::format("{}{}", a_transposed ? "T" : "N", b_transposed ? "T" : "N");
      c.a_transposed = a_transposed, c.b_transposed = b_transposed;
      c.bindings = {{{"b", 1}, {"m", 136}, {"n", 200}, {"k", 216}}, {{"b", 3}, {"m", 64}, {"n", 8}, {"k", 8}}};
      expect_product(c, "tile_m=128 tile_n=128 stages=3");
    }
}

TEST(Warpgroups, MultiplyInF16) {
  MatmulCase c = any_size(8, 8);
  c.name = "f16", c.a = c.b = c.out = DType::f16, c.b_transposed = true;
  c.bindings = {{{"b", 2}, {"m", 104}, {"n", 72}, {"k", 136}}};
  expect_product(c, "tile_m=64 tile_n=96 consumers=1 stages=2");
}

TEST(Warpgroups, WriteZerosWhereThereIsNoDepth) {
  MatmulCase c = any_size(8, 8);
  c.name = "no_depth", c.epilogue = true;
  c.bindings = {{{"b", 2}, {"m", 80}, {"n", 40}, {"k", 0}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=2");
  expect_product(c, "tile_m=64 tile_n=64 turns stages=2");
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 parts=2 stages=4");
}

// More tiles than blocks, so that each has several: a phase of a barrier follows another through all of them.
TEST(Warpgroups, TakeTurns) {
  MatmulCase c = any_size(8, 8);
  c.name = "turns", c.epilogue = true;
  c.bindings = {{{"b", 1}, {"m", 320}, {"n", 200}, {"k", 72}},
                {{"b", 2}, {"m", 128}, {"n", 72}, {"k", 328}},
                {{"b", 1}, {"m", 8}, {"n", 8}, {"k", 64}}};
  expect_product(c, "tile_m=64 tile_n=64 turns stages=3");
  expect_product(c, "tile_m=64 tile_n=64 turns consumers=3 stages=2");
  c.b_transposed = true;
  expect_product(c, "tile_m=128 tile_n=32 turns stages=4");
}

TEST(Warpgroups, ShareATileInThrees) {
  MatmulCase c = any_size(8, 8);
  c.name = "threes";
  c.bindings = {{{"b", 1}, {"m", 200}, {"n", 72}, {"k", 136}}};
  expect_product(c, "tile_m=192 tile_n=64 consumers=3 stages=2");
}

TEST(Warpgroups, ShareWhatIsReadInAClusterOfTwo) {
  for (const bool b_transposed : {false, true}) {
    MatmulCase c = any_size(8, 8);
    c.name = b_transposed ? "cluster_nt" : "cluster_nn", c.b_transposed = b_transposed;
    c.bindings = {{{"b", 1}, {"m", 264}, {"n", 136}, {"k", 200}}, {{"b", 3}, {"m", 64}, {"n", 264}, {"k", 72}}};
    expect_product(c, "tile_m=64 tile_n=128 consumers=1 stages=3 cluster=2");
    expect_product(c, "tile_m=64 tile_n=128 turns stages=3 cluster=2");
  }
}

TEST(Warpgroups, DivideATilesDepthInAClusterOfUpToEight) {
  MatmulCase c = any_size(8, 8);
  c.name = "parts", c.epilogue = true;
  c.bindings = {{{"b", 1}, {"m", 104}, {"n", 72}, {"k", 712}}, {{"b", 2}, {"m", 64}, {"n", 64}, {"k", 64}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 parts=2");
  expect_product(c, "tile_m=128 tile_n=64 stages=4 parts=3");
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 parts=8");
}

TEST(Warpgroups, AddBlocksOfTheDepthToTotals) {
  MatmulCase c = any_size(8, 8);
  c.name = "blocks", c.out = DType::f32;
  c.bindings = {{{"b", 1}, {"m", 136}, {"n", 72}, {"k", 520}}, {{"b", 1}, {"m", 64}, {"n", 64}, {"k", 256}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=3 block_steps=2");
  expect_product(c, "tile_m=64 tile_n=64 turns stages=3 block_steps=3");
  expect_product(c, "tile_m=128 tile_n=64 stages=4 parts=2 block_steps=1");
}

// Odd rows are no boxes: threads bring them, one element at a time or by copies of four bytes and more.
TEST(Warpgroups, TakeWhatThreadsBring) {
  MatmulCase odd = any_size(1, 1);
  odd.name = "odd", odd.epilogue = true;
  odd.bindings = {{{"b", 2}, {"m", 77}, {"n", 65}, {"k", 201}}, {{"b", 1}, {"m", 130}, {"n", 7}, {"k", 3}}};
  expect_product(odd, "tile_m=64 tile_n=64 consumers=1 stages=4 feed_a=threads feed_b=threads");
  expect_product(odd, "tile_m=64 tile_n=64 turns stages=4 feed_a=threads feed_b=threads producers=2");
  odd.a_transposed = odd.b_transposed = true;
  expect_product(odd, "tile_m=128 tile_n=64 stages=4 feed_a=threads feed_b=threads producers=2");
  for (const std::int64_t divisor : {2, 8}) {  // asynchronous copies
    MatmulCase c = any_size(divisor, divisor);
    c.name = fmt::format("copies of {}", divisor), c.epilogue = true;
    c.bindings = {{{"b", 1}, {"m", 136}, {"n", 72}, {"k", 328}}, {{"b", 2}, {"m", 80}, {"n", 48}, {"k", 8}}};
    expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 feed_a=threads feed_b=threads");
    expect_product(c, "tile_m=128 tile_n=64 stages=5 feed_a=threads feed_b=threads producers=2");
  }
}

TEST(Warpgroups, TakeOneOperandInBoxesAndTheOtherFromThreads) {
  MatmulCase c = any_size(8, 8);
  c.name = "prologue", c.prologue = true;
  c.bindings = {{{"b", 2}, {"m", 136}, {"n", 72}, {"k", 200}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 feed_a=threads");
  expect_product(c, "tile_m=128 tile_n=64 stages=4 feed_a=threads producers=2 parts=2");
  c.prologue = false, c.b_transposed = true;
  expect_product(c, "tile_m=64 tile_n=64 turns stages=4 feed_b=threads producers=2");
}

// Random sizes of the same kernels, in random orders of what happens.
TEST(Warpgroups, MultiplyAtRandomSizes) {
  std::mt19937_64 random(20260101);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  const char* const schedules[] = {"tile_m=64 tile_n=64 turns stages=3",
                                   "tile_m=64 tile_n=128 consumers=1 stages=2 cluster=2",
                                   "tile_m=64 tile_n=64 consumers=1 stages=4 parts=3",
                                   "tile_m=64 tile_n=64 turns stages=4 feed_a=threads producers=2",
                                   "tile_m=128 tile_n=64 stages=4 feed_a=threads feed_b=threads"};
  for (const char* schedule : schedules) {
    MatmulCase c = any_size(8, 8);
    c.name = "random", c.epilogue = true;
    c.a_transposed = below(2) == 1, c.b_transposed = below(2) == 1;
    c.bindings.clear();
    for (int i = 0; i < 8; ++i)
      c.bindings.push_back(
          {{"b", below(3) + 1}, {"m", below(30) * 8 + 8}, {"n", below(25) * 8 + 8}, {"k", below(50) * 8}});
    expect_product(c, schedule);
  }
}

// A kernel that is right, at sizes that give each block several tiles; and copies of it with a fault.
class Sound {
 public:
  explicit Sound(const char* schedule, std::int64_t divisor = 8, bool b_transposed = false) {
    MatmulCase c = any_size(divisor, divisor);
    c.b_transposed = b_transposed;
    kernel_ = matmul_kernel(c, target());
    kernel_.schedule = parse_schedule(std::string("contract loop=wgmma tile_k=64 ") + schedule);
    source_ = emit_cuda(kernel_, target());
    right_ = run_here(CudaOnHost(source_), kernel_, source_, at_, 1).back();
  }

  // That `sign` is seen of the kernel with `by` in place of `what`.
  void expect(const std::string& sign, const std::string& what, const std::string& by) const {
    const std::string seen = with(what, by);
    EXPECT_TRUE(seen.find(sign) != std::string::npos) << "seen of '" << what << "' -> '" << by << "': " << seen;
  }

 private:
  // An error, "wrong result", or nothing.
  std::string with(const std::string& what, const std::string& by) const {
    codegen::Source faulty = source_;
    if (!replace(faulty.text, what, by)) return "no such text";
    const CudaOnHost host(faulty);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      try {
        const Array result = run_here(host, kernel_, faulty, at_, seed).back();
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
  boxes().expect("waits for parity 0 of the barrier", kWaitEmpty, "wait_arrival(empty + at.stage, at.parity);");
  boxes().expect(kDeadlock, "if (++stage == stages) stage = 0, parity ^= 1;", "if (++stage == stages) stage = 0;");
}

TEST(WarpgroupFaults, ReleasesThatAreEarlyOrMissing) {
  boxes().expect(kNotThere, kRelease, "release(at.stage);");
  threads().expect(kChanges, kRelease, "release(at.stage);");
  boxes().expect(kDeadlock, kRelease, "");
}

TEST(WarpgroupFaults, FencesThatAreMissing) {
  boxes().expect("no wgmma.fence", "begin_products();", ";");
  boxes().expect("the copy engine does not know of a barrier", "publish_barriers();", ";");
  threads().expect("is not published", "publish_writes();", ";");
  copies().expect("is not published", "publish_writes();", ";");
  threads().expect("is not there", "publish_writes();\n      __syncwarp();", "publish_writes();");
  copies().expect("is not there", "publish_writes();\n      __syncwarp();", "publish_writes();");
  threads().expect(kWrong, "__syncwarp();\n#pragma unroll 4", "\n#pragma unroll 4");
}

TEST(WarpgroupFaults, CountsThatAreWrong) {
  const char* const expects = "expect_bytes(full + at.stage, Tiles::boxed_bytes);";
  boxes().expect(kDeadlock, expects, "expect_bytes(full + at.stage, Tiles::boxed_bytes - 128);");
  boxes().expect(kDeadlock, expects, "expect_bytes(full + at.stage, Tiles::boxed_bytes + 128);");
  boxes().expect(kChanges, "(Tiles::turns ? 1 : consumers) * cluster", "1");
  boxes().expect(kDeadlock, "(Tiles::turns ? 1 : consumers) * cluster", "3");
  boxes().expect(kDeadlock, "(Tiles::boxes ? 1 : 0) + (Tiles::threads ? 4 : 0)", "2");
  boxes().expect("fewer registers", "consumers == 2 ? 232", "consumers == 2 ? 240");
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
  turns.expect("waits for its turn", "give_turn<256>(1 + (group + 1) % consumers);", ";");
  turns.expect(kNotThere, "if (Tiles::turns) at.advance((skipped - 1) * steps);", ";");
  turns.expect(kNotThere, "if (Tiles::turns) at.advance(group * steps);", ";");
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
  parts.expect(kChanges, "wait_turn<threads>(1);", ";");
}

}  // namespace
}  // namespace tenon::test
