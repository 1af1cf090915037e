// Schedules of decoding: among how many blocks the keys of a head are divided.
#include <gtest/gtest.h>

#include <string>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// Of one query for each of so many sequences and heads, whose keys are `length`: a number, or a symbol.
AttendSchedule decoding(int sequences, int heads, const std::string& length, const Target& target) {
  const std::string q = "bf16[" + std::to_string(sequences) + ", " + std::to_string(heads) + ", 1, 128]";
  const std::string kv = "bf16[" + std::to_string(sequences) + ", " + std::to_string(heads) + ", " + length + ", 128]";
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(q: " + q + ", k: " + kv + ", v: " + kv + ")" +
                                                (length == "s" ? " where s in [1, 65536]" : "") +
                                                " {\n  y = attention(q, k, v)\n  return y\n}"));
  return std::get<AttendSchedule>(test::scheduled_kernel(plan, 0, unspecialized(plan), target).schedule);
}

TEST(AttendSchedules, KeysOfFewHeadsAreSplitAmongAllBlocks) {
  const Target target = cuda_target("sm_90a");
  EXPECT_EQ(decoding(1, 1, "65536", target).split_kv, 64);
  EXPECT_EQ(decoding(1, 4, "32768", target).split_kv, 33);
  EXPECT_GT(decoding(1, 1, "s", target).split_kv, 8);  // a cache that grows
}

TEST(AttendSchedules, ClustersDivideShortKeysAndThoseOfManyHeads) {
  const Target target = cuda_target("sm_90a");
  EXPECT_EQ(decoding(1, 8, "4096", target).split_kv, 1);
  EXPECT_EQ(decoding(1, 8, "4096", target).parts, 8);
  EXPECT_EQ(decoding(16, 8, "8192", target).split_kv, 1);
  EXPECT_EQ(decoding(1, 1, "2048", target).split_kv, 1);
}

TEST(AttendSchedules, NothingMeetsInMemoryWhereThatIsSwitchedOff) {
  Target target = cuda_target("sm_90a");
  target.may.split_k = false;
  EXPECT_EQ(decoding(1, 1, "65536", target).split_kv, 1);
  EXPECT_EQ(decoding(1, 1, "65536", target).parts, 8);
}

}  // namespace
}  // namespace tenon::codegen
