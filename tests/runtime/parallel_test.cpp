// Work shared by the host's threads.
#include "runtime/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace tenon::runtime {
namespace {

TEST(ForEachInParallel, CallsEachOnce) {
  std::vector<std::atomic<int>> calls(1000);
  for_each_in_parallel(calls.size(), [&](std::size_t i) { ++calls[i]; });
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}

TEST(ForEachInParallel, PassesAnExceptionOn) {
  std::atomic<int> done{0};
  const auto work = [&](std::size_t i) {
    if (i == 3) throw std::runtime_error("three");
    ++done;
  };
  EXPECT_THROW(for_each_in_parallel(10, work), std::runtime_error);
  EXPECT_EQ(done, 9);
}

// Bytes of address space in use, from /proc: statm counts pages.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

TEST(ForEachInParallel, DoesTheWorkAloneWhereNoThreadCanBeHad) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory is no address space to limit";
#endif
  const auto starved = [] {
    const rlim_t limit = address_space() + (1 << 20);  // less than the stack of one more thread
    const rlimit limits{limit, limit};
    setrlimit(RLIMIT_AS, &limits);
    std::atomic<int> calls{0};
    for_each_in_parallel(64, [&](std::size_t) { ++calls; });
    std::_Exit(calls == 64 ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process: no stack is left over from a thread before
  EXPECT_EXIT(starved(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tenon::runtime
