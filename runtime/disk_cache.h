// The cache's files: one folder, one self-contained file per kernel, shared by any number of processes without locks.
// Relies on rename being atomic within a folder. Whatever goes wrong here is a miss or a write not done, never an
// error: it is counted, and said once to the log callback.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/cache_file.h"

namespace tenon::runtime {

struct DiskCacheOptions {
  std::string folder;                                ///< made with mode 0700 where it does not exist
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  ///< the least recently used entries beyond it are removed
  std::chrono::seconds touch_after{3600};            ///< a hit renews an entry's time only when that is older
  std::chrono::seconds abandon_after{3600};          ///< temporary files this old are left over from a crash
  std::function<void(const std::string&)> log;       ///< told what went wrong; called from any thread
};

/// Whether the folder can be used. Writing stops for good once the disk is full or the folder unwritable.
enum class DiskCacheState : std::uint8_t { usable, read_only, refused };

struct DiskCacheCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t writes = 0;
  std::uint64_t failed_writes = 0;
  std::uint64_t corrupted = 0;  ///< bad files that were met (and removed)
  std::uint64_t evicted = 0;
};

/// What `tenon cache stats` prints.
struct DiskCacheStats {
  std::string folder;
  DiskCacheState state = DiskCacheState::usable;
  std::string reason;  ///< why it is not usable; empty when it is
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t max_bytes = 0;
  std::uint64_t too_large = 0;  ///< of the entries, those larger than max_bytes: they are not read, and go first
  DiskCacheCounters counters;
};

/// What `tenon cache verify` prints.
struct DiskCacheReport {
  std::uint64_t good = 0;
  std::uint64_t removed = 0;
  std::uint64_t unreadable = 0;  ///< could not be read: left alone
  std::uint64_t too_large = 0;   ///< larger than the cache may be: not read, left to eviction
};

/// Every function may be called from any thread and none throws (but for lack of host memory).
class DiskCache {
 public:
  /// Makes the folder if need be. It is refused when another user owns it or group or others may write to it, since
  /// whoever can write there can run code in this process.
  explicit DiskCache(DiskCacheOptions options);

  /// The entry stored under exactly this key text. A corrupted file is removed and counts as a miss.
  std::optional<CacheEntry> load(std::string_view key_text);

  /// Writes the entry to a temporary file and renames it. False when it could not be published.
  bool store(std::string_view key_text, const CacheEntry& entry);

  DiskCacheStats stats() const;

  /// Reads every entry and removes those that are damaged or lie under a wrong name.
  DiskCacheReport verify();

  /// Removes every entry and every temporary file; returns how many entries. Other files are left alone.
  std::uint64_t clear();

 private:
  void prepare();
  void refuse(const std::string& why);
  void give_up_writing(const std::string& why);
  void report(const std::string& text) const;
  std::string path_of(const std::string& name) const;
  bool publish(const std::string& name, const std::vector<std::byte>& file, int& failure);
  void count_written(std::uint64_t bytes);
  void evict();
  void discard(const std::string& path, const std::string& why);
  DiskCacheState state() const { return state_.load(std::memory_order_acquire); }

  const DiskCacheOptions options_;
  std::atomic<DiskCacheState> state_{DiskCacheState::usable};
  mutable std::mutex mutex_;  // guards reason_ and the size estimate
  std::string reason_;
  bool size_known_ = false;
  std::uint64_t estimated_bytes_ = 0;
  struct {
    std::atomic<std::uint64_t> hits{0}, misses{0}, writes{0}, failed_writes{0}, corrupted{0}, evicted{0};
  } counters_;
};

}  // namespace tenon::runtime
