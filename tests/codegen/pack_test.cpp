// Packs: several kernels as one launch. What the text looks like, that it compiles for every architecture, and what it
// computes on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/cuda_on_host.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// Members by a thread, a warp, a block and columns, maps with a ragged end, block sizes from 64 to 256.
const char* const kMixed =
    R"(graph mixed(a: f32[1001], b: bf16[rows, 64], c: f32[133, 7], d: f32[rows], e: f32[70, 5000], g: f32[70, 2]) {
  p = tanh(a)
  q = softmax(b)
  r = sum(c, axis=0)
  s = exp(d)
  t = argmax(e, axis=1)
  u = max(g, axis=1)
  return p, q, r, s, t, u
})";

// Of a few rows, as in a decoder's step: main loops that stream their weights.
const char* const kProducts =
    R"(graph projections(x: bf16[8, 512], wq: bf16[512, 256], wk: bf16[512, 64], wv: bf16[512, 64], y: bf16[8, 512]) {
  q = matmul(x, wq)
  k = matmul(x, wk)
  v = gelu(matmul(y, wv))
  return q, k, v
})";

// Of a vector: rows of a Reduce kernel.
const char* const kVectorProducts =
    R"(graph projections(x: f32[1, 2048], wq: f32[96, 2048], wk: f32[40, 2048], wv: f32[33, 2048]) {
  q = matmul(x, transpose(wq))
  k = matmul(x, transpose(wk))
  v = matmul(x, transpose(wv))
  return q, k, v
})";

// All groups of the plan, as if it packed them.
Launch lowered(const ir::Plan& plan, const Bindings& bindings, const Target& target) {
  Launch launch;
  for (int group = 0; group < static_cast<int>(plan.groups.size()); ++group) {
    launch.groups.push_back(group);
    launch.members.push_back(test::scheduled_kernel(plan, group, specialize(plan, bindings), target));
  }
  return launch;
}

// The plan's only pack, which all of its groups are in.
Launch packed(const ir::Plan& plan, const Bindings& bindings, const Target& target) {
  EXPECT_EQ(plan.packs.size(), 1U) << print(plan);
  EXPECT_EQ(plan.packs.front().size(), plan.groups.size()) << print(plan);
  const auto launches = deal_launches(lowered(plan, bindings, target), target);
  EXPECT_EQ(launches.size(), 1U);
  return launches.front();
}

// Runs the pack on the host on random data, and expects what the interpreter says.
void expect_right(const std::string& text, const Bindings& bindings) {
  const ir::Graph graph = ir::parse(text);
  const ir::Plan plan = ir::make_plan(graph);
  const Target target = test::cuda_target_for("sm_90a");
  const Launch launch = packed(plan, bindings, target);
  const Source source = emit_cuda(launch, target);
  std::mt19937_64 random(7);
  std::map<ir::ValueId, ir::HostArray> arrays;
  const auto array_of = [&](ir::ValueId value) {
    const ir::Type& type = plan.graph.type(value);
    std::vector<std::int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(extent.evaluate(bindings));
    return ir::make_array(type.dtype, shape);
  };
  for (ir::ValueId input : plan.graph.inputs) {
    ir::HostArray& array = arrays[input] = array_of(input);
    for (std::int64_t i = 0; i < ir::element_count(array); ++i)
      ir::set_real(array, i, std::normal_distribution<double>(0, 2)(random));
  }
  for (ir::ValueId output : plan.graph.outputs) {
    arrays[output] = array_of(output);
    for (std::byte& byte : arrays[output].bytes) byte = std::byte{0x7f};  // a missing store shows
  }
  std::vector<void*> pointers;
  for (const int number : launch.groups) {
    const ir::Group& group = plan.groups[static_cast<std::size_t>(number)];
    for (const auto* values : {&group.inputs, &group.outputs})
      for (const ir::ValueId value : *values) pointers.push_back(arrays.at(value).bytes.data());
  }
  test::run_cuda_on_host(source, pointers, bindings);
  std::vector<ir::HostArray> inputs, outputs;
  for (ir::ValueId input : plan.graph.inputs) inputs.push_back(arrays.at(input));
  for (ir::ValueId output : plan.graph.outputs) outputs.push_back(arrays.at(output));
  const auto comparisons = ir::compare_with_interpreter(graph, inputs, outputs, bindings);
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    EXPECT_TRUE(comparisons[i].equal) << "result " << i << ": " << comparisons[i].mismatches << " of "
                                      << comparisons[i].elements << ", first at " << comparisons[i].first_mismatch
                                      << "\n"
                                      << source.text;
}

TEST(Pack, DealsItsBlocksToItsMembers) {
  const ir::Plan plan = ir::make_plan(ir::parse(R"(graph two(x: f32[1000], y: f32[rows, 100]) {
    a = exp(x)
    b = sum(y, axis=1)
    return a, b
  })"));
  const Target target = test::cuda_target_for("sm_90a");
  const Launch launch = packed(plan, {{"rows", 10}}, target);
  const Source source = emit_cuda(launch, target);
  EXPECT_EQ(source.entry, "pack_of_2_map_exp");
  EXPECT_EQ(source.dims, std::vector<std::string>{"rows"});
  EXPECT_EQ(source.launch.members.size(), 2U);
  test::expect_lines(source.text,
                     {"__launch_bounds__(128) pack_of_2_map_exp(", "i64 dim0, i64 end0) {",
                      "const u32 block = blockIdx.x;", "if (block < end0) return m0_map_exp({block}, m0_in0, m0_out0);",
                      "m1_reduce_sum({block - (u32)end0}, m1_in0, m1_out0, dim0);"});
}

// Maps and rows of a warp or thread have blocks of any size; a row of a block, or columns, have not.
TEST(Pack, MembersOfSmallerBlocksSendTheOtherThreadsAway) {
  const ir::Plan plan = ir::make_plan(ir::parse(kMixed));
  const Target target = test::cuda_target_for("sm_90a");
  const Launch launch = packed(plan, {{"rows", 10}}, target);
  const Source source = emit_cuda(launch, target);
  EXPECT_EQ(source.launch.block, 256);
  EXPECT_EQ(std::get<MapSchedule>(launch.members[0].schedule).threads, 256);
  EXPECT_NE(source.text.find("__restrict__ out0) {\n  if (threadIdx.x >= 128) return;\n"), std::string::npos)
      << source.text;
}

// Vectors that are spread fill whole blocks of their own size.
TEST(Pack, SpreadVectorsAreLaunchedByThemselves) {
  const ir::Plan plan = ir::make_plan(ir::parse(R"(graph g(a: f32[1000], x: f32[4, 64, 256], b: f32[64, 256]) {
    p = tanh(a)
    q = mul(x, b)
    return p, q
  })"));
  const Target target = test::cuda_target_for("sm_90a");
  Launch together = lowered(plan, {}, target);
  ASSERT_EQ(together.members.size(), 2U);
  EXPECT_EQ(deal_launches(together, target).size(), 1U);
  for (Kernel& kernel : together.members)
    if (kernel.axes.size() > 1) kernel.schedule = MapSchedule{.threads = 256, .vector = 4, .unroll = 4, .spread = true};
  EXPECT_EQ(deal_launches(together, target).size(), 2U);
}

TEST(Pack, CompilesForEveryArchitecture) {
  const ir::Plan plan = ir::make_plan(ir::parse(kMixed));
  for (const char* arch : test::kArchitectures) {
    const Target target = test::cuda_target_for(arch);
    test::expect_compiles_for(emit_cuda(packed(plan, {{"rows", 10}}, target), target), {arch});
  }
}

TEST(Pack, ComputesWhatItsMembersWouldAlone) { expect_right(kMixed, {{"rows", 10}}); }

TEST(Pack, MembersWithoutElementsHaveNoBlocks) {
  expect_right(R"(graph empty(x: f32[n], y: f32[m, 40], z: f32[100]) {
    a = exp(x)
    b = softmax(y)
    c = sin(z)
    return a, b, c
  })",
               {{"n", 37}, {"m", 3}});
  const ir::Plan plan =
      ir::make_plan(ir::parse("graph g(x: f32[n - 5], y: f32[10]) where n >= 5 { return exp(x), exp(y) }"));
  const Target target = test::cuda_target_for("sm_90a");
  const Launch launch = packed(plan, {{"n", 5}}, target);
  const Source source = emit_cuda(launch, target);
  EXPECT_EQ(source.launch.members[0].evaluate({{"n", 5}}), 0);
  EXPECT_EQ(source.launch.grid_x.evaluate({{"n", 5}}), 1);
}

TEST(Pack, ProductsThatStreamComputeWhatTheyWouldAlone) { expect_right(kProducts, {}); }

TEST(Pack, ProductsOfVectorsComputeWhatTheyWouldAlone) { expect_right(kVectorProducts, {}); }

// So that the smaller ones have blocks of the same threads and registers, and all columns are dealt out alike.
TEST(Pack, ProductsHaveTheScheduleOfTheLargest) {
  const Target target = test::cuda_target_for("sm_90a");
  for (const char* text : {kProducts, kVectorProducts}) {
    const Launch launch = packed(ir::make_plan(ir::parse(text)), {}, target);
    ASSERT_EQ(launch.members.size(), 3U);
    for (const Kernel& member : launch.members) EXPECT_EQ(member.schedule, launch.members.front().schedule) << text;
  }
}

TEST(Pack, ProductsCompileForEveryArchitecture) {
  for (const char* text : {kProducts, kVectorProducts})
    for (const char* arch : test::kArchitectures) {
      const Target target = test::cuda_target_for(arch);
      for (const Launch& launch : deal_launches(lowered(ir::make_plan(ir::parse(text)), {}, target), target))
        test::expect_compiles_for(emit_cuda(launch, target), {arch});
    }
}

// A product's threads need more registers than a map's, and another schedule may need more than this one.
TEST(Pack, ProductsShareALaunchWithThoseOfTheSameScheduleAlone) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan = ir::make_plan(
      ir::parse(R"(graph apart(x: bf16[8, 512], w: bf16[512, 256], y: f32[8, 512], u: f32[512, 256], z: f32[100]) {
    a = matmul(x, w)
    b = matmul(y, u)
    c = matmul(x, add(w, 1))
    d = exp(z)
    return a, b, c, d
  })"));
  const std::vector<Launch> launches = deal_launches(lowered(plan, {}, target), target);
  EXPECT_LT(launches.size(), 4U);
  EXPECT_GT(launches.size(), 1U);
  for (const Launch& launch : launches)
    for (const Kernel& member : launch.members) EXPECT_EQ(member.schedule, launch.members.front().schedule);
}

// Each block has a tile of one of them, and the maps of its operands; together they fill the device, so that tiles are
// large and no depth is divided.
TEST(Pack, ProductsOfWarpgroupsHaveTheScheduleOfAll) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan = ir::make_plan(ir::parse(
      R"(graph projections(x: bf16[512, 4096], q: bf16[4096, 4096], k: bf16[4096, 1024], v: bf16[4096, 1024]) {
    return matmul(x, q), matmul(x, k), gelu(matmul(x, v))
  })"));
  const Launch launch = packed(plan, {}, target);
  ASSERT_EQ(launch.members.size(), 3U);
  const auto& schedule = std::get<ContractSchedule>(launch.members.front().schedule);
  EXPECT_EQ(print(launch.members.front().schedule),
            "contract loop=wgmma tile_m=128 tile_n=256 tile_k=64 stages=4 lead=1");
  EXPECT_FALSE(schedule.turns);
  for (const Kernel& member : launch.members) EXPECT_EQ(member.schedule, launch.members.front().schedule);
  const Source source = emit_cuda(launch, target);
  std::vector<int> pointers;
  for (const TensorMap& map : source.launch.tensor_maps) pointers.push_back(map.pointer);
  EXPECT_EQ(pointers, (std::vector<int>{0, 1, 3, 4, 6, 7}));
  test::expect_compiles_for(source, {"sm_90a"});
}

// Neighbours that are one kernel but for their operands have one function, which the block chooses operands for.
TEST(Pack, MembersThatAreAlikeAreOneFunction) {
  const Target target = test::cuda_target_for("sm_90a");
  const Source same =
      emit_cuda(packed(ir::make_plan(ir::parse(R"(graph same(x: f32[1, 2048], a: f32[64, 2048], b: f32[64, 2048]) {
    return matmul(x, transpose(a)), matmul(x, transpose(b))
  })")),
                       {}, target),
                target);
  EXPECT_EQ(same.text.find("m1_reduce_sum("), std::string::npos) << same.text;
  test::expect_lines(same.text,
                     {"m0_reduce_sum({block < end0 ? block : block - (u32)end0}, block < end0 ? m0_in0 : m1_in0, "});
}

// Parts, tiles and products of warpgroups are launched by themselves, whatever a plan says; on a CPU everything is.
TEST(Pack, LeavesOutWhatNeedsMoreThanOneFunctionOfIndependentBlocks) {
  const ir::Plan plan =
      ir::make_plan(ir::parse(R"(graph apart(x: f32[400000], y: f32[512, 512], z: f32[100], w: f32[90]) {
    a = sum(x)
    b = add(transpose(y), 1)
    c = exp(z)
    d = matmul(y, y)
    e = exp(w)
    return a, b, c, d, e
  })"));
  const auto names_of = [&](const Target& target) {
    std::vector<std::vector<std::string>> names;
    for (const Launch& launch : deal_launches(lowered(plan, {}, target), target)) {
      names.emplace_back();
      for (const Kernel& member : launch.members) names.back().push_back(member.name);
    }
    return names;
  };
  const auto cuda = names_of(test::cuda_target_for("sm_90a"));
  ASSERT_EQ(cuda.size(), 4U);
  EXPECT_EQ(cuda[0], (std::vector<std::string>{"map_exp", "map_exp"}));
  EXPECT_EQ(names_of(Target{}).size(), 5U);
}

}  // namespace
}  // namespace tenon::codegen
