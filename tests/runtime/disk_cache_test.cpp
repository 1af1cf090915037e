// The cache's files: what is stored comes back, damage is a miss, many processes share a folder, nothing else is
// touched.
#include "runtime/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/runtime/temporary_folder.h"

namespace tenon::runtime {
namespace {

namespace fs = std::filesystem;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

std::vector<std::byte> bytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

CacheEntry entry(const std::string& metadata, const std::string& binary) { return {metadata, bytes(binary)}; }

class DiskCacheTest : public testing::Test {
 protected:
  DiskCacheOptions options(std::uint64_t max_bytes = 1 << 20) {
    DiskCacheOptions options;
    options.folder = (folder_.path() / "cache").string();
    options.max_bytes = max_bytes;
    options.log = [this](const std::string& text) { log_ += text + "\n"; };
    return options;
  }
  fs::path cache_path() const { return folder_.path() / "cache"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator(cache_path())) found.push_back(file.path());
    return found;
  }
  fs::path only_file() const {
    const auto found = files();
    EXPECT_EQ(found.size(), 1u);
    return found.at(0);
  }

  TemporaryFolder folder_;
  std::string log_;
};

TEST_F(DiskCacheTest, WhatIsStoredComesBackInAnotherProcessesCache) {
  const auto stored = entry("grid 1", std::string("\0cubin\xff", 7));
  ASSERT_TRUE(DiskCache(options()).store("key a", stored));
  DiskCache later(options());
  EXPECT_EQ(later.load("key a"), stored);
  EXPECT_EQ(later.load("key b"), std::nullopt);
  EXPECT_EQ(later.stats().counters.hits, 1u);
  EXPECT_EQ(later.stats().counters.misses, 1u);
  EXPECT_EQ(log_, "");
}

TEST_F(DiskCacheTest, EmptyEntriesAndLaterVersionsOfAnEntryAreKept) {
  DiskCache cache(options());
  ASSERT_TRUE(cache.store("", entry("", "")));
  EXPECT_EQ(cache.load(""), entry("", ""));
  ASSERT_TRUE(cache.store("", entry("m", "b")));
  EXPECT_EQ(cache.load(""), entry("m", "b"));
  EXPECT_EQ(cache.stats().entries, 1u);
}

TEST_F(DiskCacheTest, AnEntryIsOneFileNamedByTheDigestOfItsKeyAndOnlyItsOwnerMayReadIt) {
  ASSERT_TRUE(DiskCache(options()).store("key", entry("m", "b")));
  EXPECT_EQ(only_file().filename(), digest_hex("key") + ".kernel");
  struct stat status{};
  ASSERT_EQ(::stat(only_file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
  ASSERT_EQ(::stat(cache_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0700u);
}

TEST_F(DiskCacheTest, EveryFlippedByteIsAMissAndTheFileGoes) {
  DiskCache cache(options());
  ASSERT_TRUE(cache.store("some key", entry("metadata", "binary")));
  const auto path = only_file();
  const std::string good = read_text(path);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write_text(path, bad);
    ASSERT_EQ(cache.load("some key"), std::nullopt) << "byte " << i;
    ASSERT_FALSE(fs::exists(path)) << "byte " << i;
  }
  EXPECT_EQ(cache.stats().counters.corrupted, good.size());
  EXPECT_NE(log_.find("its checksum does not match"), std::string::npos);
  EXPECT_NE(log_.find("not a Tenon cache entry"), std::string::npos);
  EXPECT_NE(log_.find("another format version"), std::string::npos);
}

TEST_F(DiskCacheTest, EveryTruncationAndAnAppendedByteIsAMiss) {
  DiskCache cache(options());
  ASSERT_TRUE(cache.store("some key", entry("metadata", "binary")));
  const auto path = only_file();
  const std::string good = read_text(path);
  for (std::size_t size = 0; size < good.size(); ++size) {
    write_text(path, good.substr(0, size));
    ASSERT_EQ(cache.load("some key"), std::nullopt) << size << " bytes";
  }
  write_text(path, good + "x");
  EXPECT_EQ(cache.load("some key"), std::nullopt);
  write_text(path, good);
  EXPECT_EQ(cache.load("some key"), entry("metadata", "binary"));
}

TEST_F(DiskCacheTest, AnEntryOfAnotherKeyUnderOurNameIsAMissAndStays) {
  DiskCache cache(options());
  ASSERT_TRUE(cache.store("theirs", entry("m", "b")));
  const auto ours = cache_path() / (digest_hex("ours") + ".kernel");
  fs::rename(only_file(), ours);
  EXPECT_EQ(cache.load("ours"), std::nullopt);
  EXPECT_TRUE(fs::exists(ours));
  EXPECT_EQ(cache.stats().counters.corrupted, 0u);
}

TEST_F(DiskCacheTest, KeysWithTheSameJoinedFieldsDiffer) {
  CacheKey a{"t", "c", "ar", "ch", "s"};
  CacheKey b{"t", "c", "a", "rch", "s"};
  EXPECT_NE(a.text(), b.text());
  b = a;
  b.source += " ";
  EXPECT_NE(a.text(), b.text());
  b = a;
  EXPECT_EQ(a.text(), b.text());
}

TEST_F(DiskCacheTest, AFolderThatOthersMayWriteToIsRefused) {
  fs::create_directory(cache_path());
  for (const ::mode_t mode : {0770u, 0702u, 0777u}) {
    ASSERT_EQ(::chmod(cache_path().c_str(), mode), 0);
    DiskCache cache(options());
    EXPECT_EQ(cache.stats().state, DiskCacheState::refused);
    EXPECT_FALSE(cache.store("key", entry("m", "b")));
    EXPECT_EQ(cache.load("key"), std::nullopt);
    EXPECT_TRUE(files().empty());
  }
  EXPECT_NE(log_.find("others may write to it (mode 0770); chmod 700 it"), std::string::npos) << log_;
}

TEST_F(DiskCacheTest, AFolderOfAnotherUserIsRefused) {
  fs::create_directory(cache_path());
  ASSERT_EQ(::chmod(cache_path().c_str(), 0700), 0);
  if (::chown(cache_path().c_str(), 12345, static_cast<::gid_t>(-1)) != 0) GTEST_SKIP() << "needs root to give it away";
  EXPECT_EQ(DiskCache(options()).stats().reason, "user 12345 owns it");
}

TEST_F(DiskCacheTest, AFolderThatCannotBeMadeIsRefused) {
  write_text(cache_path(), "a file in the way");
  DiskCache cache(options());
  EXPECT_EQ(cache.stats().state, DiskCacheState::refused);
  EXPECT_EQ(cache.stats().reason, "it is not a folder");
  EXPECT_FALSE(cache.store("key", entry("m", "b")));
  auto below = options();
  below.folder = (cache_path() / "deeper/still").string();
  EXPECT_EQ(DiskCache(below).stats().reason, "it cannot be made: Not a directory");
}

TEST_F(DiskCacheTest, AFolderRemovedUnderUsIsMadeAgain) {
  DiskCache cache(options());
  ASSERT_TRUE(cache.store("a", entry("m", "b")));
  fs::remove_all(cache_path());
  EXPECT_EQ(cache.load("a"), std::nullopt);
  EXPECT_TRUE(cache.store("a", entry("m", "b")));
  EXPECT_EQ(cache.load("a"), entry("m", "b"));
}

TEST_F(DiskCacheTest, ALinkInPlaceOfAnEntryIsNotFollowed) {
  DiskCache cache(options());
  ASSERT_TRUE(cache.store("key", entry("m", "b")));
  const auto moved = folder_.path() / "elsewhere";
  fs::rename(only_file(), moved);
  fs::create_symlink(moved, cache_path() / (digest_hex("key") + ".kernel"));
  EXPECT_EQ(cache.load("key"), std::nullopt);
  EXPECT_TRUE(fs::exists(moved));
}

TEST_F(DiskCacheTest, TheLeastRecentlyUsedEntriesGoWhenTheFolderIsFull) {
  const std::string kilobyte(1000, 'x');
  DiskCache cache(options(10 * 1200));
  for (int i = 0; i < 9; ++i) {
    const std::string key = "key " + std::to_string(i);
    ASSERT_TRUE(cache.store(key, entry("", kilobyte)));
    const auto path = cache_path() / (digest_hex(key) + ".kernel");
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(20 - i));
  }
  ASSERT_TRUE(cache.load("key 0"));  // older than touch_after: renewed
  for (int i = 9; i < 13; ++i) ASSERT_TRUE(cache.store("key " + std::to_string(i), entry("", kilobyte)));
  const auto stats = cache.stats();
  EXPECT_LE(stats.bytes, stats.max_bytes);
  EXPECT_GT(stats.counters.evicted, 0u);
  EXPECT_TRUE(cache.load("key 0"));
  EXPECT_TRUE(cache.load("key 12"));
  EXPECT_FALSE(cache.load("key 1"));
}

// A clock that stood at tomorrow and was set back: what was written then looks used for as long as tomorrow lasts.
TEST_F(DiskCacheTest, EntriesDatedInTheFutureGoFirstUnlessTheyAreUsed) {
  const std::string kilobyte(1000, 'x');
  DiskCache cache(options(10 * 1200));
  for (int i = 0; i < 9; ++i) {
    const std::string key = "key " + std::to_string(i);
    ASSERT_TRUE(cache.store(key, entry("", kilobyte)));
    const auto path = cache_path() / (digest_hex(key) + ".kernel");
    fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::hours(24));
  }
  ASSERT_TRUE(cache.load("key 0"));  // used: dated now
  for (int i = 9; i < 13; ++i) ASSERT_TRUE(cache.store("key " + std::to_string(i), entry("", kilobyte)));
  EXPECT_TRUE(cache.load("key 0"));
  for (int i = 9; i < 13; ++i) EXPECT_TRUE(cache.load("key " + std::to_string(i))) << i;
  EXPECT_FALSE(cache.load("key 1"));
}

// Its size is that of the file, whatever wrote it: memory for it need not be there.
TEST_F(DiskCacheTest, AnEntryThatHasBecomeLargerThanTheCacheIsAMissAndGoesFirst) {
  DiskCache cache(options());
  ASSERT_TRUE(cache.store("key", entry("m", "b")));
  const fs::path large = only_file();
  fs::resize_file(large, std::uintmax_t{1} << 43);
  EXPECT_EQ(cache.load("key"), std::nullopt);
  EXPECT_NE(log_.find("larger than the cache may be"), std::string::npos);
  EXPECT_EQ(cache.verify().too_large, 1u);
  EXPECT_EQ(cache.stats().too_large, 1u);
  ASSERT_TRUE(DiskCache(options()).store("other", entry("m", "b")));
  EXPECT_FALSE(fs::exists(large));
  EXPECT_TRUE(cache.load("other"));
}

TEST_F(DiskCacheTest, AnEntryLargerThanTheWholeCacheIsNotWritten) {
  DiskCache cache(options(1000));
  EXPECT_FALSE(cache.store("key", entry("", std::string(2000, 'x'))));
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(cache.stats().counters.failed_writes, 1u);
  EXPECT_EQ(cache.stats().state, DiskCacheState::usable);
}

TEST_F(DiskCacheTest, VerifyRemovesDamagedAndMisnamedEntriesAndNothingElse) {
  DiskCache cache(options());
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(cache.store(key, entry("m", key)));
  write_text(cache_path() / "README", "not ours");
  write_text(cache_path() / (digest_hex("a") + ".kernel"), "rubbish");
  fs::copy_file(cache_path() / (digest_hex("b") + ".kernel"), cache_path() / (digest_hex("z") + ".kernel"));
  const auto report = cache.verify();
  EXPECT_EQ(report.good, 2u);
  EXPECT_EQ(report.removed, 2u);
  EXPECT_EQ(files().size(), 3u);
  EXPECT_NE(log_.find("it lies under another key's name"), std::string::npos);
}

TEST_F(DiskCacheTest, ClearRemovesEntriesAndLeftoversButNoOtherFile) {
  DiskCache cache(options());
  for (const char* key : {"a", "b"}) ASSERT_TRUE(cache.store(key, entry("m", key)));
  write_text(cache_path() / ".tmp-host-1-0", "left over");
  write_text(cache_path() / "README", "not ours");
  EXPECT_EQ(cache.clear(), 2u);
  EXPECT_EQ(only_file().filename(), "README");
  EXPECT_EQ(cache.stats().entries, 0u);
}

TEST_F(DiskCacheTest, TemporaryFilesOfACrashGoAfterAWhile) {
  fs::create_directories(cache_path());
  ASSERT_EQ(::chmod(cache_path().c_str(), 0700), 0);
  write_text(cache_path() / ".tmp-host-1-0", "old");
  write_text(cache_path() / ".tmp-host-2-0", "being written");
  fs::last_write_time(cache_path() / ".tmp-host-1-0", fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(DiskCache(options()).store("key", entry("m", "b")));
  EXPECT_FALSE(fs::exists(cache_path() / ".tmp-host-1-0"));
  EXPECT_TRUE(fs::exists(cache_path() / ".tmp-host-2-0"));
}

// Runs `body` in a child process; its result is the child's exit status.
template <typename Body>
int in_child(Body body) {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

TEST_F(DiskCacheTest, AFullDiskStopsWritingForGoodButNotReading) {
  ASSERT_TRUE(DiskCache(options()).store("small", entry("m", "b")));
  const int failed_step = in_child([this] {
    std::signal(SIGXFSZ, SIG_IGN);
    const ::rlimit limit{512, 512};  // stands in for a full disk
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    DiskCache cache(options());
    if (cache.store("large", entry("m", std::string(4096, 'x')))) return 2;
    if (cache.stats().state != DiskCacheState::read_only || cache.stats().reason != "File too large") return 3;
    if (cache.store("tiny", entry("", ""))) return 4;
    if (cache.load("small") != entry("m", "b")) return 5;
    if (cache.stats().counters.failed_writes != 1) return 6;
    return 0;
  });
  EXPECT_EQ(failed_step, 0);
  EXPECT_EQ(files().size(), 1u) << "the half-written file stayed";
}

TEST_F(DiskCacheTest, AnUnwritableFolderIsReadOnly) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ASSERT_TRUE(DiskCache(options()).store("key", entry("m", "b")));
  ASSERT_EQ(::chmod(cache_path().c_str(), 0500), 0);
  DiskCache cache(options());
  EXPECT_EQ(cache.stats().state, DiskCacheState::read_only);
  EXPECT_TRUE(cache.load("key"));
  EXPECT_FALSE(cache.store("other", entry("m", "b")));
  ASSERT_EQ(::chmod(cache_path().c_str(), 0700), 0);
}

// What any process may find under key i: large enough to be torn if writes were not atomic.
CacheEntry content(int key, int writer) {
  return entry("writer " + std::to_string(writer), std::string(20000, static_cast<char>('a' + key)));
}

int write_and_read(const DiskCacheOptions& options, int self) {
  DiskCache cache(options);
  for (int round = 0; round < 30; ++round) {
    const int key = (round * 7 + self) % 8;
    const std::string name = "key " + std::to_string(key);
    if (const auto found = cache.load(name)) {
      if (found->binary != content(key, 0).binary || !found->metadata.starts_with("writer ")) return 2;
    }
    if (!cache.store(name, content(key, self))) return 3;
    if (round % 10 == 9) cache.verify();
    if (self == 0 && round == 15) cache.clear();
  }
  return cache.stats().counters.corrupted == 0 ? 0 : 4;
}

TEST_F(DiskCacheTest, ManyProcessesShareAFolderWithoutEverSeeingHalfAnEntry) {
  std::vector<::pid_t> children;
  for (int self = 0; self < 6; ++self) {
    const ::pid_t child = ::fork();
    if (child == 0) {
      auto shared = options(6 * 20200);  // too small for all keys: evictions happen too
      ::_exit(write_and_read(shared, self));
    }
    children.push_back(child);
  }
  for (const ::pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  DiskCache cache(options());
  const auto report = cache.verify();
  EXPECT_GT(report.good, 0u);
  EXPECT_EQ(report.removed, 0u);
  EXPECT_EQ(files().size(), report.good) << "temporary files stayed";
}

}  // namespace
}  // namespace tenon::runtime
