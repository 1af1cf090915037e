// The CUDA text of Reduce kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "codegen/emit/source.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/kernel_builder.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

using ir::Op;
using test::KernelBuilder;

const Dim rows = Dim::symbol("rows");

Source emitted(Kernel& kernel) {
  const Target target = test::cuda_target_for("sm_90a");
  kernel.schedule = choose_schedule(kernel, target);
  const Source source = emit_cuda(kernel, target);
  if (source.launch.shared_bytes > 0)
    test::expect_compiles_for(source, {"sm_90a", "sm_100a"});
  else
    test::expect_compiles_everywhere(source);
  return source;
}

void with_rows(Kernel& kernel) {
  kernel.dims = {"rows"};
  kernel.symbols["rows"] = {1, 1 << 16, 1};
}

// y = exp(x - max) / sum over the last axis of [rows, columns].
Kernel softmax(DType dtype, const Dim& columns) {
  KernelBuilder b(ir::KernelClass::reduce, {{"i0", rows}, {"r1", columns, true}});
  const int x = b.input(dtype, {rows, columns}), y = b.output(dtype, {rows, columns});
  const Index at = Index::axis(0) * columns + Index::axis(1);
  const InstrId value = b.load(x, at);
  const InstrId largest = b.reduce(Op::max, value, dtype);
  const InstrId exp = b.map(Op::exp, {b.map(Op::sub, {value, largest})});
  b.store(y, at, b.map(Op::div, {exp, b.reduce(Op::sum, exp, DType::f32)}));
  with_rows(b.kernel);
  return b.kernel;
}

// One reduction of [rows, columns] along its last axis.
Kernel one_reduction(Op op, DType from, DType to, const Dim& columns) {
  KernelBuilder b(ir::KernelClass::reduce, {{"i0", rows}, {"r1", columns, true}});
  const int x = b.input(from, {rows, columns}), y = b.output(to, {rows});
  b.store(y, Index::axis(0), b.reduce(op, b.load(x, Index::axis(0) * columns + Index::axis(1)), to));
  with_rows(b.kernel);
  return b.kernel;
}

TEST(CudaReduce, ReadsAsIfWritten) {
  Kernel kernel = softmax(DType::bf16, 1024);
  const Source source = emitted(kernel);
  EXPECT_EQ(print(kernel.schedule), "reduce team=warp threads=128 vector=8 keep=registers elements=32");
  EXPECT_EQ(
      test::kernel_part(source.text),
      R"(extern "C" __global__ void __launch_bounds__(128) reduce(const bf16* __restrict__ in0, bf16* __restrict__ out0, i64 dim0) {
  const int n0 = (int)dim0;
  join_stream();
  const u32 own_row = blockIdx.x * 4 + threadIdx.x / 32;
  const bool inside = own_row < n0;
  const u32 row = inside ? own_row : n0 - 1;
  const int i0 = (int)row;
  const int member = threadIdx.x % 32;
  pack<bf16, 8> x0[4];
  #pragma unroll
  for (int c = 0; c < 4; ++c) {
    const int r1 = member * 8 + c * 256;
    x0[c] = load<8, 8>(in0 + 1024 * i0 + r1);
  }
  float a1 = -inf_f32();
  #pragma unroll
  for (int c = 0; c < 4; ++c) {
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float v0 = bf16_to_f32(x0[c][j]);
      a1 = maximum(a1, v0);
    }
  }
  const float v1 = reduce_lanes<32>(a1, [](float a, float b) -> float { return maximum(a, b); });  // max
  float a4 = 0.0f;
  #pragma unroll
  for (int c = 0; c < 4; ++c) {
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float v0 = bf16_to_f32(x0[c][j]);
      const float v2 = v0 - v1;  // sub
      const float v3 = exp(v2);  // exp
      a4 = a4 + v3;
    }
  }
  const float v4 = reduce_lanes<32>(a4, [](float a, float b) -> float { return a + b; });  // sum
  #pragma unroll
  for (int c = 0; c < 4; ++c) {
    const int r1 = member * 8 + c * 256;
    pack<bf16, 8> y0;
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float v0 = bf16_to_f32(x0[c][j]);
      const float v2 = v0 - v1;  // sub
      const float v3 = exp(v2);  // exp
      const float v5 = divide_by_shared(v3, v4);  // div
      y0[j] = f32_to_bf16(v5);
    }
    if (inside) store<8, 8>(out0 + 1024 * i0 + r1, y0);
  }
}
)");
}

TEST(CudaReduce, LongRowsAreReadAgainWhereNoCopyIsAsynchronous) {
  Kernel kernel = softmax(DType::bf16, 50304);
  const Target target = test::cuda_target_for("sm_75");
  kernel.schedule = choose_schedule(kernel, target);
  EXPECT_EQ(print(kernel.schedule), "reduce team=block threads=1024 vector=8 online unroll=4");
  const Source source = emit_cuda(kernel, target);
  test::expect_compiles_for(source, {"sm_75"});
  test::expect_lines(source.text, {"for (int tile = member * 8; tile < 50304; tile += 32768) {", "pack<bf16, 8> x0[4];",
                                   "const int r1 = tile + c * 8192;", "if (r1 < 50304) {", "= load<8, 8>(",
                                   "const float v1 = shift_of(a1);", "reduce_block<1024>(a1",
                                   "around_maximum(reduce_block<1024>(a4", "= load<8, 8>(", "store<8, 8>(out0"});
  EXPECT_EQ(source.launch.grid_x.evaluate({{"rows", 77}}), 77);
}

TEST(CudaReduce, AClusterMayHoldRowsThatNoBlockHolds) {
  Kernel kernel = softmax(DType::bf16, 65536);
  const auto clusters_of = [&](const Target& target) {
    std::vector<Schedule> candidates = candidate_schedules(kernel, target);
    std::erase_if(candidates, [](const Schedule& each) { return std::get<ReduceSchedule>(each).team.cluster == 1; });
    return candidates;
  };
  EXPECT_TRUE(clusters_of(test::cuda_target_for("sm_80")).empty());
  const Target target = test::cuda_target_for("sm_90a");
  kernel.schedule = clusters_of(target).at(0);
  EXPECT_EQ(print(kernel.schedule), "reduce team=block threads=512 cluster=4 vector=8 keep=registers elements=32");
  const Source source = emit_cuda(kernel, target);
  test::expect_compiles_for(source, {"sm_90a", "sm_100a", "sm_120"});
  test::expect_lines(
      source.text,
      {"__launch_bounds__(512) __cluster_dims__(4, 1, 1)", "const u32 row = blockIdx.x / 4;",
       "const int member = blockIdx.x % 4 * 512 + threadIdx.x;", "= reduce_cluster<4, 512>(a1, ", "meet_cluster();"});
  EXPECT_EQ(source.launch.grid_x.evaluate({{"rows", 77}}), 4 * 77);
}

TEST(CudaReduce, BlocksOfTheGridMeetInMemory) {
  Kernel kernel = softmax(DType::bf16, 1 << 20);
  const Target target = test::cuda_target_for("sm_90a");
  kernel.schedule = parse_schedule(
      "reduce team=block threads=320 grid=27 vector=8 keep=shared elements=128 shared=112 least_blocks=3");
  EXPECT_EQ(verify(kernel.schedule, kernel, target), "");
  const Source source = emit_cuda(kernel, target);
  test::expect_compiles_for(source, {"sm_80", "sm_90a", "sm_120"});
  test::expect_lines(source.text, {"__launch_bounds__(320, 3)", "u8* zeroed", "teams = min(gridDim.x / 27, 14u)",
                                   "if (team >= teams) return;", "row_meeting<27, 320> meeting{",
                                   "for (u32 row = team; row < n0; row += teams) {",
                                   "const int member = blockIdx.x % 27 * 320 + threadIdx.x;", "wait_copies<3>();",
                                   "wait_copies<0>();", "= meeting.reduce(a1, ", "meeting.leave();"});
  EXPECT_EQ(source.launch.together, 27);
  EXPECT_TRUE(source.launch.resident);
  EXPECT_FALSE(source.launch.dependent);
  EXPECT_EQ(source.launch.grid_x.evaluate({{"rows", 77}}), 27 * 77);
  EXPECT_TRUE(source.zeroed_bytes.is(3 * 132 / 27 * (128 + 27 * 64))) << "however many rows there are";
  const auto why_not = [&](const std::string& text) { return verify(parse_schedule(text), kernel, target); };
  EXPECT_EQ(why_not("reduce team=block threads=320 grid=397 vector=8 keep=shared elements=16 shared=8 least_blocks=3"),
            "the blocks of a row run at once");
  EXPECT_EQ(why_not("reduce team=block threads=512 grid=64 vector=8 keep=registers elements=32 least_blocks=1"),
            "blocks of a grid have their row in shared memory");
  EXPECT_EQ(why_not("reduce team=block threads=320 cluster=2 grid=9 vector=8 keep=shared elements=184 shared=112"),
            "blocks of a grid share a row, or those of a cluster");
}

TEST(CudaReduce, RowsOfF64ThatTheGridHoldsLeaveRegistersToComputeWith) {
  for (const char* text : {"graph g(x: f64[8, 1499999]) { y = log_softmax(x, axis=1)\nreturn y }",
                           "graph g(x: f64[40, 300000]) { y = softmax(tanh(x), axis=1)\nreturn y }"}) {
    const ir::Plan plan = ir::make_plan(ir::parse(text), {});
    ASSERT_EQ(plan.groups.size(), 1U) << text;
    for (const char* arch : {"sm_80", "sm_90a", "sm_120"}) {
      const Target target = test::cuda_target_for(arch);
      const Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), target);
      const bool by_grid = std::get<ReduceSchedule>(kernel.schedule).team.grid > 1;
      EXPECT_TRUE(by_grid || arch != std::string("sm_90a")) << text;
      test::expect_compiles_for(emit_cuda(kernel, target), {arch});
    }
  }
}

TEST(CudaReduce, OneRowIsReadByTheWholeDevice) {
  KernelBuilder b(ir::KernelClass::reduce, {{"r0", 1 << 28, true}});
  const int x = b.input(DType::f32, {1 << 28}), y = b.output(DType::f32, {});
  b.store(y, Index(0), b.reduce(Op::sum, b.load(x, Index::axis(0)), DType::f32));
  const Source source = emitted(b.kernel);
  EXPECT_EQ(print(b.kernel.schedule),
            "reduce team=block threads=512 vector=4 unroll=8 cut=splits parts=264 finish=block");
  test::expect_lines(
      source.text,
      {"const int part = blockIdx.x % 264;", "for (int block = begin + member * 4; block < end;",
       "for (int tile = block; tile < stop;", "if (member == 0) {", "((float*)scratch)[part] = p1;", "reduce_finish(",
       "combine_parts<264, 256>((float*)scratch, 1, member, float(0.0f),", "if (member == 0) out0[0] = v1;"});
  EXPECT_EQ(source.launch.grid_x.evaluate({}), 264);
  EXPECT_EQ(source.finish.grid_x.evaluate({}), 1);
  EXPECT_EQ(source.scratch_bytes.evaluate({}), 264 * 16);
}

TEST(CudaReduce, TeamsFitTheRow) {
  const auto schedule_of = [](const Dim& columns) {
    Kernel kernel = softmax(DType::bf16, columns);
    emitted(kernel);
    return print(kernel.schedule);
  };
  EXPECT_EQ(schedule_of(8), "reduce team=thread threads=128 vector=8 keep=registers elements=8");
  EXPECT_EQ(schedule_of(64), "reduce team=warp threads=128 lanes=4 vector=8 keep=registers elements=16");
  EXPECT_EQ(schedule_of(100), "reduce team=thread threads=64 vector=4 staged");
  EXPECT_EQ(schedule_of(4096), "reduce team=block threads=128 vector=8 keep=registers elements=32");
  EXPECT_EQ(schedule_of(4097),
            "reduce team=block threads=128 vector=8 peeled keep=registers elements=32 least_blocks=1");
  EXPECT_EQ(schedule_of(50257),
            "reduce team=block threads=512 vector=8 peeled keep=shared elements=104 shared=104 least_blocks=2");
  EXPECT_EQ(schedule_of(rows), "reduce team=block threads=512 vector=8 peeled online unroll=4 least_blocks=1");
}

// The kernel of a graph with the first of its candidates that `wanted` takes.
Source with_candidate(const std::string& text, const std::function<bool(const ReduceSchedule&)>& wanted) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan = ir::make_plan(ir::parse(text), {});
  Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), target);
  const std::vector<Schedule> candidates = candidate_schedules(kernel, target);
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Schedule& schedule) { return wanted(std::get<ReduceSchedule>(schedule)); });
  EXPECT_NE(found, candidates.end());
  if (found == candidates.end()) return {};
  kernel.schedule = *found;
  const Source source = emit_cuda(kernel, target);
  test::expect_compiles_for(source, {"sm_90a"});
  return source;
}

TEST(CudaReduce, LongRowsMayLieInSharedMemory) {
  const auto shared = [](int threads, int cluster) {
    return [=](const ReduceSchedule& s) {
      return shared_elements(s) > 0 && s.team.threads == threads && s.team.cluster == cluster &&
             shared_elements(s) < held_elements(s);
    };
  };
  const Source one = with_candidate("graph g(x: bf16[64, 65536]) { y = softmax(x)\nreturn y }", shared(512, 1));
  test::expect_lines(
      one.text,
      {"__launch_bounds__(512, 2)", "bf16* s0 = (bf16*)(shared) + threadIdx.x * 8;", "for (int c = 0; c < 3; ++c) {",
       "copy_async<16>(s0 + c * 4096, in0 + ", "commit_copies();", "for (int c = 3; c < 7; ++c) {",
       "pack<bf16, 8> x0[2];", "const int r0 = member * 8 + (c + 14) * 4096;", "wait_copies<3>();",
       "const pack<bf16, 8> x0 = load<8, 8>(s0 + c * 4096);", "wait_copies<0>();", "for (int c = 0; c < 14; ++c) {"});
  EXPECT_EQ(one.launch.shared_bytes, 14 * 512 * 16);
  const Source two = with_candidate("graph g(x: bf16[64, 131072]) { y = softmax(x)\nreturn y }", shared(512, 2));
  test::expect_lines(two.text, {"__launch_bounds__(512, 2) __cluster_dims__(2, 1, 1)", "copy_async<16>("});
}

TEST(CudaReduce, SharedMemoryHoldsWhatSeveralSweepsLoad) {
  const Target target = test::cuda_target_for("sm_90a");
  const auto has_shared = [&](const std::string& text) {
    const ir::Plan plan = ir::make_plan(ir::parse(text), {});
    const std::vector<Schedule> candidates =
        candidate_schedules(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target);
    return std::any_of(candidates.begin(), candidates.end(), [](const Schedule& schedule) {
      return shared_elements(std::get<ReduceSchedule>(schedule)) > 0;
    });
  };
  EXPECT_TRUE(has_shared("graph g(x: bf16[64, 65536]) { y = softmax(x)\nreturn y }"));
  EXPECT_TRUE(has_shared("graph g(x: f32[64, 65536], r: f32[64, 65536]) { y = softmax(add(x, r))\nreturn y }"))
      << "the loads, from which the sum is computed again";
  EXPECT_FALSE(has_shared("graph g(x: bf16[64, 65536]) { y = sum(x, axis=1)\nreturn y }"));  // there is one sweep
}

TEST(CudaReduce, ASoftmaxDividesByTheReciprocalOfItsSum) {
  const auto divides = [](const std::string& text) {
    const ir::Plan plan = ir::make_plan(ir::parse(text), {});
    Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a"));
    return emitted(kernel).text.find("= share_of(") == std::string::npos;
  };
  EXPECT_FALSE(divides("graph g(x: f32[64, 512]) { y = softmax(x)\nreturn y }"));
  EXPECT_TRUE(divides("graph g(x: f64[64, 512]) { y = softmax(x)\nreturn y }"));
  EXPECT_TRUE(
      divides("graph g(x: f32[64, 512]) {\n"
              "  e = exp(x)\n  y = div(e, sum(e, axis=1, keepdims=true))\n  return y\n}"));
  EXPECT_TRUE(divides("graph g(x: f32[64, 512]) {\n  y = div(x, sum(x, axis=1, keepdims=true))\n  return y\n}"));
}

TEST(CudaReduce, ColumnsOfOddRowsMayBeTakenInVectors) {
  const Source source =
      with_candidate("graph g(x: bf16[16384, 4097]) { y = sum(x, axis=0)\nreturn y }",
                     [](const ReduceSchedule& s) { return s.team.mapping == RowMapping::column && s.peeled; });
  test::expect_lines(source.text,
                     {"const int phase = part % 8;", "const int head = (int)(-(u32)(",
                      "const bool inside = i0 < 4097 && (place >= 8 || place < head);",
                      "const bool inside = i0 + 8 <= 4097;", "const int r0 = step * 8 + phase;",
                      "= load_streaming<8, 8>(in0 + i0 + 4097 * r0);", "reduce_columns<", "reduce_sum_finish("});
}

// As many blocks as fit without a spill: fewer where a thread has more elements, and any number of bytes.
TEST(CudaReduce, ShortColumnsThatAThreadHoldsDoNotSpill) {
  const Target target = test::cuda_target_for("sm_90a");
  for (const auto& [shape, least] : {std::pair{"bf16[60000, 3, 16]", 8},
                                     {"bf16[60000, 5, 16]", 5},
                                     {"f32[60000, 4, 8]", 8},
                                     {"i8[70000, 6, 16]", 0}}) {
    const bool bytes = least == 0;
    const ir::Plan plan = ir::make_plan(
        ir::parse(fmt::format("graph g(x: {}) {{ y = {}\nreturn y }}", shape,
                              bytes ? "sub(x, max(x, axis=1, keepdims=true))" : "log_softmax(mul(x, 300.0), axis=1)")));
    const Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), target);
    const ReduceSchedule& schedule = std::get<ReduceSchedule>(kernel.schedule);
    EXPECT_EQ(schedule.team.columns, schedule.team.threads) << shape;
    EXPECT_EQ(schedule.occupancy.least, least) << shape;
    test::expect_compiles_for(emit_cuda(kernel, target), {"sm_90a"});
  }
}

// They ask for more blocks than the compiler, left to itself, leaves room for.
TEST(CudaReduce, PeeledRowsOfFewElementsALaneDoNotSpill) {
  for (const char* arch : {"sm_75", "sm_80", "sm_90a", "sm_120"}) {
    const Target target = test::cuda_target_for(arch);
    const ir::Plan plan =
        ir::make_plan(ir::parse("graph g(x: bf16[60000, 351], r: bf16[60000, 351], w: bf16[351], b: bf16[351]) "
                                "{ y = layer_norm(add(x, r), w, b)\nreturn y }"));
    const Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), target);
    const ReduceSchedule& schedule = std::get<ReduceSchedule>(kernel.schedule);
    EXPECT_TRUE(schedule.peeled);
    EXPECT_GT(schedule.occupancy.least, 0);
    test::expect_compiles_for(emit_cuda(kernel, target), {arch});
  }
}

// The compiler would keep registers for a second turn, whose bounds it does not know.
TEST(CudaReduce, RowsOfOneTurnAreNoLoop) {
  const auto text_of = [](int columns) {
    const Target target = test::cuda_target_for("sm_90a");
    const ir::Plan plan = ir::make_plan(
        ir::parse(fmt::format("graph g(x: bf16[16384, {}]) {{ y = sum(x, axis=1)\nreturn y }}", columns)));
    Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), target);
    ReduceSchedule& schedule = std::get<ReduceSchedule>(kernel.schedule);
    schedule.team.threads = 512;
    schedule.keep = Reread{};
    const Source source = emit_cuda(kernel, target);
    test::expect_compiles_for(source, {"sm_90a"});
    return source.text;
  };
  test::expect_lines(text_of(4103), {"if (const int r0 = head + member * 8; r0 < tail) {"});
  test::expect_lines(text_of(4105), {"for (int r0 = head + member * 8; r0 < tail; r0 += 4096) {"});
}

TEST(CudaReduce, OneThreadStoresTheRowsResult) {
  Kernel kernel = one_reduction(Op::sum, DType::f32, DType::f32, 50304);
  test::expect_lines(emitted(kernel).text, {"float a1 = 0.0f;", "a1 = a1 + v0;", "if (member == 0) out0[i0] = v1;"});
}

TEST(CudaReduce, ArgmaxCarriesItsPosition) {
  Kernel kernel = one_reduction(Op::argmax, DType::f32, DType::i64, 50304);
  test::expect_lines(emitted(kernel).text, {"arg<float, int> a1 = {-inf_f32(), 0};", "a1 = then_max(a1, v0, r1 + j);",
                                            "const i64 v1 = reduce_block<512>(a1, ", ".index;  // argmax"});
}

// Threads come to their elements in order, but for those at the ends of a peeled row.
TEST(CudaReduce, ArgminOfOddRowsLooksAtPositionsAtTheEnds) {
  Kernel kernel = one_reduction(Op::argmin, DType::f32, DType::i64, 4095);
  test::expect_lines(emitted(kernel).text, {"a1 = then_min(a1, v0, r1 + j);", "if (edge < 4095) {",
                                            "a1 = first_min(a1, arg<float, int>{v0, r1});"});
}

TEST(CudaReduce, ColumnsAreReadAlongTheKeptAxis) {
  KernelBuilder b(ir::KernelClass::reduce, {{"i1", rows}, {"r0", 1000, true}});
  const int x = b.input(DType::f32, {1000, rows}), y = b.output(DType::f32, {rows});
  b.store(y, Index::axis(0), b.reduce(Op::sum, b.load(x, Index::axis(1) * rows + Index::axis(0)), DType::f32));
  with_rows(b.kernel);
  test::expect_lines(emitted(b.kernel).text,
                     {"blockIdx.x * 32 + threadIdx.x % 32", "const int member = threadIdx.x / 32;",
                      "for (int r0 = member; r0 < 1000; r0 += 8) {", "reduce_columns<32, 256>(a1, "});
}

void expect_every_candidate_compiles(Kernel kernel, std::size_t least = 3) {
  const Target target = test::cuda_target_for("sm_90a");
  const std::vector<Schedule> candidates = candidate_schedules(kernel, target);
  EXPECT_EQ(print(candidates.at(0)), print(choose_schedule(kernel, target)));
  EXPECT_GE(candidates.size(), least);
  for (const Schedule& schedule : candidates) {
    SCOPED_TRACE(print(schedule));
    kernel.schedule = schedule;
    test::expect_compiles_for(emit_cuda(kernel, target), {"sm_90a"});
  }
}

TEST(CudaReduce, EveryCandidateCompiles) {
  for (const std::int64_t columns : {2048, 4097, 65536}) expect_every_candidate_compiles(softmax(DType::bf16, columns));
}

TEST(CudaReduce, EveryCandidateForEmptyRowsCompiles) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(x: f32[5, 0]) { y = logsumexp(x, axis=1); return y }"));
  expect_every_candidate_compiles(test::scheduled_kernel(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a")),
                                  1);
}

// Elements are stored by threads of which some lie beyond the last column; where a thread has one alone, it has
// returned.
TEST(CudaReduce, EveryCandidateForColumnsWithElementsCompiles) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(x: f16[7, 65]) { y = softmax(x, axis=-2); return y }"));
  expect_every_candidate_compiles(
      test::scheduled_kernel(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a")));
}

TEST(CudaReduce, TheSourceHoldsOnlyThePiecesItNeeds) {
  Kernel kernel = one_reduction(Op::sum, DType::f32, DType::f32, 64);
  const std::string text = emitted(kernel).text;
  for (const char* absent : {"bf16", "philox", "first_max", "floor_div", "__shared__", "//@"})
    EXPECT_EQ(text.find(absent), std::string::npos) << absent;
}

}  // namespace
}  // namespace tenon::codegen
