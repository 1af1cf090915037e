// The kernel cache in one process: one compile per key, memory before disk, failures that do not stick.
#include "runtime/cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/temporary_folder.h"

namespace tenon::runtime {
namespace {

CacheKey key(const std::string& source) { return {"0.1 abc", "nvrtc 13.0 build 00", "sm_90a", "--std=c++17", source}; }

CacheEntry entry(const std::string& text) {
  CacheEntry made{"meta " + text, {}};
  for (const char c : text) made.binary.push_back(static_cast<std::byte>(c));
  return made;
}

CacheEntry must_not_compile() { throw std::logic_error("compiled although it was cached"); }

std::shared_ptr<DiskCache> disk_in(const std::filesystem::path& folder) {
  DiskCacheOptions options;
  options.folder = folder.string();
  return std::make_shared<DiskCache>(options);
}

TEST(KernelCache, CompilesOnceThenServesFromMemory) {
  KernelCache cache(nullptr);
  const auto first = cache.get_or_compile(key("a"), [] { return entry("a"); });
  const auto second = cache.get_or_compile(key("a"), must_not_compile);
  EXPECT_EQ(first, second);
  EXPECT_EQ(*first, entry("a"));
  EXPECT_EQ(cache.counters().memory_hits, 1u);
  EXPECT_EQ(cache.counters().compiles, 1u);
}

TEST(KernelCache, EveryFieldOfTheKeyTellsKernelsApart) {
  KernelCache cache(nullptr);
  CacheKey base = key("a");
  std::vector<CacheKey> keys(6, base);
  keys[1].tenon = "0.2";
  keys[2].compiler = "nvrtc 13.0 build 01";
  keys[3].arch = "sm_90";
  keys[4].flags += "\n--fmad=false";
  keys[5].source += " ";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto made = cache.get_or_compile(keys[i], [i] { return entry(std::to_string(i)); });
    EXPECT_EQ(*made, entry(std::to_string(i)));
  }
  EXPECT_EQ(cache.counters().compiles, 6u);
}

TEST(KernelCache, AnotherProcessFindsTheKernelOnDisk) {
  const test::TemporaryFolder folder;
  KernelCache(disk_in(folder.path() / "c")).get_or_compile(key("a"), [] { return entry("a"); });
  KernelCache later(disk_in(folder.path() / "c"));
  EXPECT_EQ(*later.get_or_compile(key("a"), must_not_compile), entry("a"));
  later.get_or_compile(key("a"), must_not_compile);
  EXPECT_EQ(later.counters().disk_hits, 1u);
  EXPECT_EQ(later.counters().memory_hits, 1u);
  EXPECT_EQ(later.counters().compiles, 0u);
}

TEST(KernelCache, ADamagedFileIsCompiledAgainAndReplaced) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "c";
  KernelCache(disk_in(path)).get_or_compile(key("a"), [] { return entry("a"); });
  for (const auto& file : std::filesystem::directory_iterator(path)) test::write_text(file.path(), "rubbish");
  KernelCache later(disk_in(path));
  EXPECT_EQ(*later.get_or_compile(key("a"), [] { return entry("a"); }), entry("a"));
  EXPECT_EQ(later.counters().compiles, 1u);
  EXPECT_EQ(*KernelCache(disk_in(path)).get_or_compile(key("a"), must_not_compile), entry("a"));
}

TEST(KernelCache, AKernelThatCannotBeKeptOnDiskIsServedAllTheSame) {
  const test::TemporaryFolder folder;
  test::write_text(folder.path() / "c", "a file in the way");
  KernelCache cache(disk_in(folder.path() / "c"));
  EXPECT_EQ(*cache.get_or_compile(key("a"), [] { return entry("a"); }), entry("a"));
  EXPECT_EQ(cache.counters().failed_writes, 1u);
}

TEST(KernelCache, ThreadsThatAskAtTheSameTimeShareOneCompile) {
  KernelCache cache(nullptr);
  constexpr int count = 8;
  std::atomic<int> compiles{0};
  std::latch all_asked(count);
  std::vector<KernelCache::EntryPointer> results(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      all_asked.arrive_and_wait();
      results[static_cast<std::size_t>(i)] = cache.get_or_compile(key("a"), [&] {
        ++compiles;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return entry("a");
      });
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(compiles, 1);
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  const auto counters = cache.counters();
  EXPECT_EQ(counters.shared + counters.memory_hits, static_cast<std::uint64_t>(count - 1));
}

TEST(KernelCache, DifferentKeysCompileAtTheSameTime) {
  KernelCache cache(nullptr);
  std::latch both_compiling(2);
  const auto compile = [&both_compiling](const std::string& text) {
    both_compiling.arrive_and_wait();  // never returns if one waits for the other to finish
    return entry(text);
  };
  std::thread other([&] { cache.get_or_compile(key("b"), [&] { return compile("b"); }); });
  cache.get_or_compile(key("a"), [&] { return compile("a"); });
  other.join();
  EXPECT_EQ(cache.counters().compiles, 2u);
}

TEST(KernelCache, AFailedCompileReachesEveryWaiterAndIsTriedAgain) {
  KernelCache cache(nullptr);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        cache.get_or_compile(key("a"), []() -> CacheEntry {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          throw std::runtime_error("refused");
        });
      } catch (const std::runtime_error& error) {
        if (std::string(error.what()) == "refused") ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 4);
  EXPECT_EQ(cache.counters().failed_compiles, cache.counters().compiles);
  EXPECT_EQ(*cache.get_or_compile(key("a"), [] { return entry("a"); }), entry("a"));
}

TEST(KernelCache, MemoryIsBoundedAndKeepsWhatWasUsedLast) {
  const std::uint64_t one = key("0").text().size() + std::string("meta 0").size() + 1;
  KernelCache cache(nullptr, 3 * one);
  for (const char* name : {"0", "1", "2"}) cache.get_or_compile(key(name), [&] { return entry(name); });
  cache.get_or_compile(key("0"), must_not_compile);  // now the most recent
  cache.get_or_compile(key("3"), [] { return entry("3"); });
  EXPECT_EQ(cache.counters().memory_entries, 3u);
  EXPECT_EQ(cache.counters().memory_bytes, 3 * one);
  cache.get_or_compile(key("0"), must_not_compile);
  EXPECT_THROW(cache.get_or_compile(key("1"), must_not_compile), std::logic_error);
}

TEST(KernelCache, ForgettingKeepsTheDisk) {
  const test::TemporaryFolder folder;
  KernelCache cache(disk_in(folder.path() / "c"));
  cache.get_or_compile(key("a"), [] { return entry("a"); });
  cache.forget();
  EXPECT_EQ(cache.counters().memory_entries, 0u);
  EXPECT_EQ(cache.counters().memory_bytes, 0u);
  cache.get_or_compile(key("a"), must_not_compile);
  EXPECT_EQ(cache.counters().disk_hits, 1u);
}

}  // namespace
}  // namespace tenon::runtime
