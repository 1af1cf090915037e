// The kernel cache: memory before disk before the compiler. Turns a key into a binary, compiling each key once however
// many threads ask for it. Relies on the key to hold everything that decides the binary.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/cache_file.h"
#include "runtime/disk_cache.h"

namespace tenon::runtime {

struct CacheCounters {
  std::uint64_t memory_hits = 0;
  std::uint64_t shared = 0;  ///< requests that waited for another thread's compile of the same key
  std::uint64_t disk_hits = 0;
  std::uint64_t misses = 0;  ///< neither in memory nor on disk
  std::uint64_t compiles = 0;
  std::uint64_t failed_compiles = 0;
  std::uint64_t failed_writes = 0;  ///< compiled kernels that could not be kept on disk
  std::uint64_t memory_entries = 0;
  std::uint64_t memory_bytes = 0;
};

/// Thread-safe. Compiling and disk access happen outside its lock.
class KernelCache {
 public:
  using EntryPointer = std::shared_ptr<const CacheEntry>;
  using Compile = std::function<CacheEntry()>;

  /// At most `max_memory_bytes` of entries (keys included) stay in memory; `disk` may be null.
  explicit KernelCache(std::shared_ptr<DiskCache> disk, std::uint64_t max_memory_bytes = std::uint64_t{256} << 20);

  /// The entry for `key`, from memory, from disk, or made by `compile` (called at most once per key at a time) and
  /// kept. What `compile` throws reaches every caller that waited for it, and the next request compiles again.
  /// `compile` must not ask this cache for the same key.
  EntryPointer get_or_compile(const CacheKey& key, const Compile& compile);

  /// Drops what is in memory; the disk keeps its files.
  void forget();

  CacheCounters counters() const;
  const std::shared_ptr<DiskCache>& disk() const { return disk_; }

 private:
  struct Kept {
    const std::string* key = nullptr;  // into the map, whose nodes do not move
    EntryPointer entry;
    std::uint64_t bytes = 0;
  };
  using Order = std::list<Kept>;
  using Flight = std::shared_future<EntryPointer>;

  EntryPointer find_in_memory(const std::string& key_text);
  EntryPointer fetch(const std::string& key_text, const Compile& compile, bool& compiled);
  void keep(const std::string& key_text, const EntryPointer& entry);
  void land(const std::string& key_text);

  const std::shared_ptr<DiskCache> disk_;
  const std::uint64_t max_memory_bytes_;
  mutable std::mutex mutex_;  // guards everything below
  Order by_use_;              // the most recently used first
  std::unordered_map<std::string, Order::iterator> kept_;
  std::unordered_map<std::string, Flight> in_flight_;
  CacheCounters counters_;
};

}  // namespace tenon::runtime
