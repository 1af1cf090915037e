// What is known of the devices that stand for their architectures, and that schedules follow it.
#include "codegen/target/target.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon::codegen {
namespace {

TEST(Target, ArchitecturesHoldTheThreadsAndBlocksThatTheirMultiprocessorsHave) {
  const std::map<std::string, std::pair<int, int>> expected{
      {"sm_75", {1024, 16}},  {"sm_80", {2048, 32}},   {"sm_86", {1536, 16}},  {"sm_89", {1536, 24}},
      {"sm_90a", {2048, 32}}, {"sm_100a", {2048, 32}}, {"sm_120", {1536, 24}},
  };
  for (const auto& [arch, numbers] : expected) {
    const Target target = cuda_target(arch);
    EXPECT_EQ(target.threads_per_multiprocessor, numbers.first) << arch;
    EXPECT_EQ(target.blocks_per_multiprocessor, numbers.second) << arch;
  }
}

TEST(Target, EveryArchitectureHasADeviceOfItsOwn) {
  for (const std::string& arch : cuda_architectures()) {
    const Target target = cuda_target(arch);
    EXPECT_EQ(target.arch, arch);
    EXPECT_TRUE(arch.starts_with("sm_" + std::to_string(target.sm))) << arch;
    EXPECT_FALSE(target.device.empty()) << arch;
    EXPECT_LE(target.shared_memory_per_block + target.reserved_shared_memory_per_block,
              target.shared_memory_per_multiprocessor)
        << arch;
  }
}

TEST(Target, DevicesOfOneArchitectureAreToldApartByTheirNames) {
  const Target h100 = cuda_target("sm_90a"), h200 = cuda_target("sm_90a", "NVIDIA H200");
  EXPECT_EQ(h100, cuda_target("sm_90a", "NVIDIA H100 80GB HBM3"));
  EXPECT_EQ(h100, cuda_target("sm_90a", "a device that no table has"));
  EXPECT_EQ(h100.multiprocessors, h200.multiprocessors);
  EXPECT_LT(h100.bandwidth_gb_s, h200.bandwidth_gb_s);
}

}  // namespace
}  // namespace tenon::codegen
