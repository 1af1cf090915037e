// The memory level of the kernel cache and the rule that each key is compiled by one thread at a time.
#include "runtime/cache.h"

#include <exception>
#include <utility>

namespace tenon::runtime {

KernelCache::KernelCache(std::shared_ptr<DiskCache> disk, std::uint64_t max_memory_bytes)
    : disk_(std::move(disk)), max_memory_bytes_(max_memory_bytes) {}

KernelCache::EntryPointer KernelCache::get_or_compile(const CacheKey& key, const Compile& compile) {
  const std::string key_text = key.text();
  std::promise<EntryPointer> promise;
  Flight others;
  {
    const std::lock_guard lock(mutex_);
    if (auto entry = find_in_memory(key_text)) return entry;
    const auto [flight, first] = in_flight_.try_emplace(key_text);
    if (first) {
      flight->second = promise.get_future().share();
    } else {
      ++counters_.shared;
      others = flight->second;
    }
  }
  if (others.valid()) return others.get();

  bool compiled = false;
  EntryPointer entry;
  try {
    entry = fetch(key_text, compile, compiled);
    keep(key_text, entry);
  } catch (...) {
    land(key_text);
    promise.set_exception(std::current_exception());
    throw;
  }
  promise.set_value(entry);
  // Published last, so that nobody waits for the disk; the entry serves this process whether or not that succeeds.
  if (compiled && disk_ && !disk_->store(key_text, *entry)) {
    const std::lock_guard lock(mutex_);
    ++counters_.failed_writes;
  }
  return entry;
}

KernelCache::EntryPointer KernelCache::find_in_memory(const std::string& key_text) {
  const auto found = kept_.find(key_text);
  if (found == kept_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  ++counters_.memory_hits;
  return found->second->entry;
}

KernelCache::EntryPointer KernelCache::fetch(const std::string& key_text, const Compile& compile, bool& compiled) {
  if (disk_) {
    if (auto entry = disk_->load(key_text)) {
      const std::lock_guard lock(mutex_);
      ++counters_.disk_hits;
      return std::make_shared<const CacheEntry>(std::move(*entry));
    }
  }
  {
    const std::lock_guard lock(mutex_);
    ++counters_.misses;
    ++counters_.compiles;
  }
  try {
    auto entry = std::make_shared<const CacheEntry>(compile());
    compiled = true;
    return entry;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    ++counters_.failed_compiles;
    throw;
  }
}

// Puts the entry first and ends its flight in one step, so that no request slips between the two and compiles again.
void KernelCache::keep(const std::string& key_text, const EntryPointer& entry) {
  const std::uint64_t bytes = key_text.size() + entry->metadata.size() + entry->binary.size();
  const std::lock_guard lock(mutex_);
  by_use_.push_front({nullptr, entry, bytes});
  const auto node = kept_.emplace(key_text, by_use_.begin()).first;
  by_use_.front().key = &node->first;
  counters_.memory_bytes += bytes;
  while (counters_.memory_bytes > max_memory_bytes_) {
    counters_.memory_bytes -= by_use_.back().bytes;
    kept_.erase(kept_.find(*by_use_.back().key));
    by_use_.pop_back();
  }
  in_flight_.erase(key_text);
}

void KernelCache::land(const std::string& key_text) {
  const std::lock_guard lock(mutex_);
  in_flight_.erase(key_text);
}

void KernelCache::forget() {
  const std::lock_guard lock(mutex_);
  by_use_.clear();
  kept_.clear();
  counters_.memory_bytes = 0;
}

CacheCounters KernelCache::counters() const {
  const std::lock_guard lock(mutex_);
  CacheCounters now = counters_;
  now.memory_entries = by_use_.size();
  return now;
}

}  // namespace tenon::runtime
