// Groups of which lowering makes the same kernel, and groups that only look so.
#include "codegen/lower/alike.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"

namespace tenon::codegen {
namespace {

ir::Plan unfused(const std::string& body) {
  ir::PlanOptions options;
  options.fuse = false;
  options.max_packed = 1;
  return ir::make_plan(ir::parse("graph g(x: f32[64, 32], y: f32[64, 32], z: bf16[64, 32]) {\n" + body + "}\n"),
                       options);
}

std::vector<std::size_t> first_alike_of(const std::string& body) {
  const ir::Plan plan = unfused(body);
  return first_alike(plan, ir::launched_together(plan));
}

using Firsts = std::vector<std::size_t>;

TEST(Alike, GroupsOfTheSameOperatorsOnOtherValues) {
  EXPECT_EQ(first_alike_of("  a = exp(x)\n  b = exp(y)\n  return a, b\n"), (Firsts{0, 0}));
  EXPECT_EQ(first_alike_of("  a = sum(x, axis=[1])\n  b = sum(y, axis=[1])\n  return a, b\n"), (Firsts{0, 0}));
}

TEST(Alike, NotWhereOperatorsAttributesTypesOrConstantsDiffer) {
  EXPECT_EQ(first_alike_of("  a = exp(x)\n  b = tanh(y)\n  return a, b\n"), (Firsts{0, 1}));
  EXPECT_EQ(first_alike_of("  a = sum(x, axis=[1])\n  b = sum(y, axis=[0])\n  return a, b\n"), (Firsts{0, 1}));
  EXPECT_EQ(first_alike_of("  a = exp(x)\n  b = exp(z)\n  return a, b\n"), (Firsts{0, 1}));
  EXPECT_EQ(first_alike_of("  a = add(x, 2)\n  b = add(y, 3)\n  return a, b\n"), (Firsts{0, 1}));
  EXPECT_EQ(first_alike_of("  a = mul(x, 0.0)\n  b = mul(y, -0.0)\n  return a, b\n"), (Firsts{0, 1}));
}

TEST(Alike, NotWhereOneOperandIsTakenTwice) {
  EXPECT_EQ(first_alike_of("  a = maximum(x, y)\n  b = maximum(x, x)\n  return a, b\n").back(), 1U);
  EXPECT_EQ(first_alike_of("  a = sub(x, y)\n  b = sub(y, x)\n  return a, b\n"), (Firsts{0, 0}));
}

// A kernel may begin before those ahead of it have ended, and then takes what they write for not constant.
TEST(Alike, NotWhereOneReadsAnInputAndTheOtherWhatAKernelWrote) {
  EXPECT_EQ(first_alike_of("  a = exp(x)\n  b = exp(a)\n  c = exp(b)\n  d = exp(c)\n  return d\n"),
            (Firsts{0, 1, 1, 3}));  // the last result is used by no kernel
}

// A value that is used again is not contracted into one sum.
TEST(Alike, NotWhereAValueHasAnotherUse) {
  const ir::Plan plan =
      ir::make_plan(ir::parse("graph g(x: f32[64], y: f32[64]) {\n  p = mul(x, x)\n  a = add(p, 1)\n  q = mul(y, y)\n"
                              "  b = add(q, 1)\n  return a, b, q\n}\n"));
  ASSERT_EQ(plan.groups.size(), 2U) << print(plan);
  EXPECT_EQ(first_alike(plan, {{0}, {1}}), (Firsts{0, 1}));
}

// The promise itself, for plans of many kinds: the kernels are the same in all that is printed of them.
TEST(Alike, HaveTheSameKernels) {
  int shared = 0;
  for (const char* folder : {"/bench/cases", "/bench/cases/models", "/examples", "/tests/fusion"})
    for (const auto& entry : std::filesystem::directory_iterator(std::string(TENON_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".tn") continue;
      SCOPED_TRACE(entry.path());
      for (const char* arch : {"sm_90a", "sm_80"}) {
        const Target target = cuda_target(arch);
        const ir::Plan plan = src::plan(ir::read_file(entry.path()), TargetKind::cuda, Options{});
        const auto sets = ir::launched_together(plan);
        const auto first = first_alike(plan, sets);
        const auto text_of = [&](std::size_t set) {
          std::string text;
          for (const Launch& launch : src::make_launches(plan, sets[set], unspecialized(plan), target))
            text += print(launch) + emit_cuda(launch, target).text;
          return text;
        };
        for (std::size_t i = 0; i < sets.size(); ++i)
          if (first[i] != i) {
            ++shared;
            EXPECT_EQ(text_of(i), text_of(first[i]));
          }
      }
    }
  EXPECT_GE(shared, 100);
}

}  // namespace
}  // namespace tenon::codegen
