// The schedules and the text of kernels whose blocks walk over the rows: gradients of norms, as the pipeline lowers
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"
#include "codegen/schedule/schedule.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/kernel_builder.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

Kernel norm_backward(int columns, const Target& target, const std::string& rows = "16384") {
  const std::string tensor = "bf16[" + rows + ", " + std::to_string(columns) + "]";
  ir::PlanOptions options;
  options.mixed_order = true;
  const ir::Plan plan =
      ir::make_plan(ir::parse("graph g(dy: " + tensor + ", x: " + tensor + ", w: bf16[" + std::to_string(columns) +
                              "], mean: f32[" + rows + ", 1], rstd: f32[" + rows + R"(, 1]) {
  g = cast(dy, dtype=f32)
  normal = mul(sub(cast(x, dtype=f32), mean), rstd)
  scaled = mul(g, cast(w, dtype=f32))
  along = mean(scaled, axis=1, keepdims=true)
  across = mean(mul(scaled, normal), axis=1, keepdims=true)
  dx = cast(mul(rstd, sub(sub(scaled, along), mul(normal, across))), dtype=bf16)
  dw = sum(mul(g, normal), axis=0)
  db = sum(g, axis=0)
  return dx, dw, db
})"),
                    options);
  EXPECT_EQ(plan.groups.size(), 1U) << ir::print(plan);
  return test::scheduled_kernel(plan, 0, unspecialized(plan), target);
}

// One reduction over the rows, beside one along them.
Kernel rms_norm_backward(const Target& target, const std::string& columns = "4096") {
  const std::string tensor = "bf16[16384, " + columns + "]";
  ir::PlanOptions options;
  options.mixed_order = true;
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(dy: " + tensor + ", x: " + tensor + R"(, rstd: f32[16384, 1]) {
  g = cast(dy, dtype=f32)
  normal = mul(cast(x, dtype=f32), rstd)
  dx = cast(mul(rstd, sub(g, mul(normal, mean(mul(g, normal), axis=1, keepdims=true)))), dtype=bf16)
  dw = sum(mul(g, normal), axis=0)
  return dx, dw
})"),
                                      options);
  EXPECT_EQ(plan.groups.size(), 1U) << ir::print(plan);
  return test::scheduled_kernel(plan, 0, unspecialized(plan), target);
}

const Target kTarget = test::cuda_target_for("sm_90a");

TEST(CudaOuter, AThreadHoldsMoreElementsBeforeThereAreMoreThreads) {
  const auto schedule_of = [](int columns) { return print(norm_backward(columns, kTarget).schedule); };
  EXPECT_EQ(schedule_of(1024),
            "reduce team=block threads=128 vector=8 keep=registers elements=8 cut=persistent_blocks blocks=1056 "
            "stages=2 least_blocks=8");
  EXPECT_EQ(schedule_of(4096),
            "reduce team=block threads=256 vector=8 keep=registers elements=16 cut=persistent_blocks blocks=264 "
            "stages=2 streaming least_blocks=2");
}

// Short rows: as many lanes as leave each some elements, or a whole warp, in one block on a multiprocessor of as many
// threads as have registers for them.
TEST(CudaOuter, WarpsHaveShortRows) {
  const auto schedule_of = [](int columns, const std::string& rows = "16384") {
    return print(norm_backward(columns, kTarget, rows).schedule);
  };
  EXPECT_EQ(schedule_of(64),
            "reduce team=warp threads=768 lanes=8 vector=8 keep=registers elements=8 cut=persistent_blocks blocks=132 "
            "stages=1 least_blocks=1");
  EXPECT_EQ(schedule_of(100),
            "reduce team=warp threads=768 lanes=16 vector=4 keep=registers elements=8 cut=persistent_blocks blocks=132 "
            "stages=1 least_blocks=1");
  EXPECT_EQ(schedule_of(33),
            "reduce team=warp threads=1024 lanes=8 vector=1 keep=registers elements=5 cut=persistent_blocks blocks=128 "
            "stages=1 least_blocks=1");
  EXPECT_EQ(schedule_of(768),
            "reduce team=warp threads=384 vector=8 keep=registers elements=24 cut=persistent_blocks blocks=132 "
            "stages=1 least_blocks=1");
  EXPECT_EQ(schedule_of(3, "500000"),  // a lane has a row
            "reduce team=warp threads=1024 lanes=1 vector=1 keep=registers elements=3 cut=persistent_blocks blocks=132 "
            "stages=1 least_blocks=1");
  EXPECT_EQ(schedule_of(64, "1000"),  // few of them: smaller blocks
            "reduce team=warp threads=64 lanes=8 vector=8 keep=registers elements=8 cut=persistent_blocks blocks=125 "
            "stages=1 least_blocks=1");
}

TEST(CudaOuter, WarpsCombineTheirOuterReductionsInSharedMemory) {
  const Source source = emit_cuda(norm_backward(64, kTarget), kTarget);
  test::expect_lines(source.text,
                     {"const int member = threadIdx.x % 8;", "const u32 first = blockIdx.x * 96 + threadIdx.x / 8;",
                      "for (u32 row = first; row < 16384; row += 12672) {", "reduce_lanes<8>(",
                      "leave_outer<8, 768>((float*)scratch + blockIdx.x * 64 + c * 64, 64 - c * 64, a", "_finish(",
                      "combine_at_once<132, 8>("});
  EXPECT_EQ(source.launch.shared_bytes, 768 / 32 * 64 * 4);
}

// Of two reductions over the rows one block on a multiprocessor does not keep up, and there are no bulk copies before
// sm_90: then each thread brings its own vectors.
TEST(CudaOuter, OneBlockWhereRowsComeWhole) {
  const auto schedule_of = [](const Target& target) { return print(rms_norm_backward(target).schedule); };
  EXPECT_EQ(schedule_of(kTarget),
            "reduce team=block threads=512 vector=8 keep=registers elements=8 cut=persistent_blocks blocks=132 "
            "stages=2 bulk streaming keep_reads least_blocks=1");
  Target without = kTarget;
  without.may.bulk_copies = false;
  EXPECT_EQ(schedule_of(without),
            "reduce team=block threads=128 vector=8 keep=registers elements=32 cut=persistent_blocks blocks=264 "
            "stages=2 streaming least_blocks=2");
  EXPECT_EQ(schedule_of(test::cuda_target_for("sm_80")),
            "reduce team=block threads=128 vector=8 keep=registers elements=32 cut=persistent_blocks blocks=216 "
            "stages=2 streaming least_blocks=2");
}

// Of 32 threads, fewer blocks than threads would allow: the compiler warns of more.
TEST(CudaOuter, NoMoreBlocksThanAMultiprocessorHolds) {
  for (const auto& [arch, most] : {std::pair("sm_75", 16), std::pair("sm_90a", 32), std::pair("sm_120", 24)}) {
    const Target target = test::cuda_target_for(arch);
    const Kernel kernel = norm_backward(64, target);
    EXPECT_LE(persistent_blocks(std::get<ReduceSchedule>(kernel.schedule))->blocks, most * target.multiprocessors)
        << arch;
    test::expect_compiles_for(emit_cuda(kernel, target), {arch});
  }
}

// A row's two sums share a barrier, behind which others may still read the parts of the row before.
TEST(CudaOuter, OneBarrierARow) {
  const std::string text = test::kernel_part(emit_cuda(norm_backward(4096, kTarget), kTarget).text);
  const std::string row = text.substr(text.find("for (u32 row"), text.find("turn ^= 1;") - text.find("for (u32 row"));
  const std::size_t barrier = row.find("__syncthreads();");
  ASSERT_NE(barrier, std::string::npos) << row;
  EXPECT_EQ(row.find("__syncthreads();", barrier + 1), std::string::npos) << row;
}

// What was loaded is not touched before its row: taking its words apart would wait for them.
TEST(CudaOuter, TheNextRowWaitsInTheWordsOfItsLoads) {
  Kernel kernel = norm_backward(4096, kTarget);
  std::get<PersistentBlocks>(std::get<ReduceSchedule>(kernel.schedule).cut).stages = 1;
  const std::string text = emit_cuda(kernel, kTarget).text;
  test::expect_lines(text, {"under_way<bf16, 8, 8> next", "for (u32 row = blockIdx.x; row < 16384; row += 264) {",
                            "= arrived(next", "const u32 ahead = min(row + 264, (u32)16384 - 1);", "= load_now<8, 8>(",
                            "leave_warps(", "__syncthreads();"});
}

// Rows that lie across memory have no words: their elements wait one by one.
TEST(CudaOuter, ElementsThatLieApartWaitOneByOne) {
  test::KernelBuilder build(ir::KernelClass::reduce, {{"i0", 5}, {"r0", 5000, true}});
  const int in = build.input(DType::f32, {5000, 5}), out = build.output(DType::f32, {5, 5000}),
            sums = build.output(DType::f32, {5000});
  const Index i = Index::axis(0), r = Index::axis(1);
  const InstrId x = build.load(in, i + r * 5);
  const InstrId scaled = build.map(ir::Op::div, {x, build.reduce_along(1, ir::Op::sum, x)});
  build.store(out, i * 5000 + r, scaled);
  build.store(sums, r, build.reduce_along(0, ir::Op::sum, scaled));
  Kernel kernel = build.kernel;
  kernel.schedule = choose_schedule(kernel, kTarget);
  const Source source = emit_cuda(kernel, kTarget);
  test::expect_lines(source.text, {"pack<float, 4> next0[", "for (u32 row = blockIdx.x;", "x0[c] = next0[c];"});
  test::expect_compiles_everywhere(source);
}

TEST(CudaOuter, MoreRowsLieInSharedMemory) {
  const Source source = emit_cuda(norm_backward(4096, kTarget), kTarget);
  test::expect_lines(
      source.text,
      {"(bf16*)(shared) + threadIdx.x * 8;", "for (int slot = 0; slot < 2; ++slot) {",
       "const u32 ahead = blockIdx.x + slot * 264;", "copy_async<16>(", "commit_copies();",
       "for (u32 row = blockIdx.x;", "const int before = slot == 0 ? 2 : slot - 1;", "const u32 ahead = row + 528;",
       "if (ahead < 16384) {", " + before * 4096 + c * 2048, ", "commit_copies();", "wait_copies<2>();",
       " + slot * 4096 + c * 2048);", "__syncthreads();", "slot = slot == 2 ? 0 : slot + 1;"});
  EXPECT_EQ(source.launch.shared_bytes, 2 * 3 * 4096 * 2);
}

// One thread asks for a row once all have read the one before it in its slot, which is behind the row's barrier.
TEST(CudaOuter, RowsComeWhole) {
  const Source source = emit_cuda(rms_norm_backward(kTarget), kTarget);
  test::expect_lines(
      source.text,
      {"__shared__ arrival there[3];", "begin_arrivals<3>(there);", "for (int slot = 0; slot < 3; ++slot) {",
       "if (threadIdx.x == 0) {", "const u32 ahead = blockIdx.x + slot * 132;", "expect_bytes(there + slot, 16384);",
       "copy_bulk_kept(s", " + slot * 4096, in", " + 4096 * i0, 8192, there + slot);", "for (u32 row = blockIdx.x;",
       "wait_arrival(there + slot, parity);", "__syncthreads();", "if (threadIdx.x == 0) {",
       "const u32 ahead = row + 396;", "copy_bulk_kept(", "parity ^= slot == 2;", "slot = slot == 2 ? 0 : slot + 1;"});
  EXPECT_EQ(source.launch.shared_bytes, 2 * 3 * 4096 * 2);
  test::expect_compiles_for(source, {"sm_90a", "sm_100a", "sm_120"});
}

// All of a column's parts are under way at once, where they are few enough for registers.
TEST(CudaOuter, PartsOfBlocksAreCombinedByAFewThreads) {
  const Source long_rows = emit_cuda(norm_backward(4096, kTarget), kTarget);
  test::expect_lines(long_rows.text,
                     {"store<8, 4>((float*)scratch + blockIdx.x * 4096 + r0, a", "_finish(", "combine_at_once<264, 8>(",
                      "combine_at_once<264, 8>(", "reduce_columns<32, 256>("});
  EXPECT_EQ(long_rows.finish.block, 256);
  const Source short_rows = emit_cuda(norm_backward(1024, kTarget), kTarget);
  test::expect_lines(short_rows.text, {"combine_at_once<1056, 32>(", "reduce_columns<32, 1024>("});
}

TEST(CudaOuter, ShortRowsAreTriedWithOtherLanesAndOneRowABlock) {
  const auto nvrtc = test::installed_nvrtc();
  Kernel kernel = norm_backward(64, kTarget);
  const std::vector<Schedule> candidates = candidate_schedules(kernel, kTarget);
  int most_stages = 0;
  std::set<int> lanes;
  bool blocks = false;
  for (const Schedule& candidate : candidates) {
    const auto& schedule = std::get<ReduceSchedule>(candidate);
    most_stages = std::max(most_stages, persistent_blocks(schedule)->stages);
    if (schedule.team.mapping == RowMapping::warp) lanes.insert(schedule.team.lanes);
    blocks = blocks || schedule.team.mapping == RowMapping::block;
    kernel.schedule = candidate;
    const Source source = emit_cuda(kernel, kTarget);
    if (!nvrtc) continue;
    const auto compiled = runtime::cuda::compile(*nvrtc, source.text, source.entry, "sm_90a");
    EXPECT_TRUE(compiled.warnings.empty()) << print(candidate);
  }
  EXPECT_EQ(most_stages, 3);
  EXPECT_EQ(lanes, (std::set<int>{4, 8, 16}));
  EXPECT_TRUE(blocks);
  EXPECT_LE(candidates.size(), 60U);
}

TEST(CudaOuter, EveryCandidateCompiles) {
  const auto nvrtc = test::installed_nvrtc();
  for (const char* arch : {"sm_75", "sm_90a"}) {
    const Target target = test::cuda_target_for(arch);
    Kernel kernel = norm_backward(2048, target);
    const std::vector<Schedule> candidates = candidate_schedules(kernel, target);
    const auto shared = std::count_if(candidates.begin(), candidates.end(), [](const Schedule& schedule) {
      return persistent_blocks(std::get<ReduceSchedule>(schedule))->stages > 1;
    });
    EXPECT_EQ(shared > 0, target.sm >= 80);  // asynchronous copies
    const auto whole = std::count_if(candidates.begin(), candidates.end(), [](const Schedule& schedule) {
      return persistent_blocks(std::get<ReduceSchedule>(schedule))->bulk;
    });
    EXPECT_EQ(whole > 0, target.sm >= 90);
    for (const Schedule& schedule : candidates) {
      kernel.schedule = schedule;
      const Source source = emit_cuda(kernel, target);
      if (!nvrtc) continue;
      const auto compiled = runtime::cuda::compile(*nvrtc, source.text, source.entry, arch);
      EXPECT_TRUE(compiled.warnings.empty()) << print(schedule) << "\n" << compiled.warnings.front();
    }
  }
  if (!nvrtc) GTEST_SKIP() << "no NVRTC to compile with";
}

}  // namespace
}  // namespace tenon::codegen
