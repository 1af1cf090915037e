// The targets that tests run on. A test of both is written once, on the fixture OnTarget, and is skipped where the
// target is not there, unless TENON_TEST_REQUIRE names it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/backend.h"

namespace tenon::test {

/// "cpu" and "cuda", whether they are here or not.
std::vector<std::string> all_targets();

/// Why `target` cannot run here; empty when it can.
std::string why_missing(const std::string& target);

/// The target's backend, opened once a program, with kernels kept in memory only. There are more than Tenon's own:
///   cuda_on_host        cuda_on_host.h
///   hopper_on_host      that one with products by warpgroups where they can (hopper_on_host.h)
///   cpu_streaming       the CPU with results that go around the caches however small they are
///   cpu_avx2, cpu_sse   that one as on processors without AVX-512, and without AVX
///   cpu_tuned_NAME      the CPU with code as LLVM tunes it for the processor NAME, by this one's features
std::shared_ptr<const runtime::Backend> backend_of(const std::string& target);

/// Whether it is one of those more.
bool is_variant(const std::string& target);

/// Skips what cannot run here; fails instead when the environment variable TENON_TEST_REQUIRE is the target's name.
void require(const std::string& target);

/// A test for each target: TEST_P(Suite, Name), and TENON_ON_EACH_TARGET(Suite).
class OnTarget : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { require(GetParam()); }
};

#define TENON_ON_EACH_TARGET(Suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::ValuesIn(::tenon::test::all_targets()), \
                           [](const auto& each) { return each.param; })

}  // namespace tenon::test
