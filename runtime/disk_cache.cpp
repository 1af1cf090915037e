// Loading, publishing, checking and evicting cache files. Correct without locks: a reader sees a whole file or none,
// and whatever another process removes in between is a miss.
#include "runtime/disk_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/posix_file.h"

namespace tenon::runtime {
namespace {

constexpr std::string_view ending = ".kernel";
constexpr std::string_view temporary_prefix = ".tmp-";
constexpr std::size_t digest_digits = 32;

std::string describe(int error) { return std::generic_category().message(error); }

std::string name_for(std::string_view key_text) { return digest_hex(key_text).append(ending); }

// Only files that the cache itself named are ever removed.
bool is_entry(const std::string& name) {
  if (name.size() != digest_digits + ending.size() || !name.ends_with(ending)) return false;
  return name.find_first_not_of("0123456789abcdef") == digest_digits;
}

bool is_temporary(const std::string& name) { return name.starts_with(temporary_prefix); }

// Failures that say something about this moment rather than about the folder.
bool is_passing(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == EEXIST; }

std::vector<FileInfo> entries_in(const std::string& folder) {
  auto files = list_files(folder);
  std::erase_if(files, [](const FileInfo& file) { return !is_entry(file.name); });
  return files;
}

std::uint64_t bytes_of(const std::vector<FileInfo>& files) {
  std::uint64_t sum = 0;
  for (const auto& file : files) sum += file.bytes;
  return sum;
}

CacheEntry copy_of(const CacheFileView& view) {
  return {std::string(view.metadata), std::vector<std::byte>(view.binary.begin(), view.binary.end())};
}

}  // namespace

DiskCache::DiskCache(DiskCacheOptions options) : options_(std::move(options)) { prepare(); }

void DiskCache::prepare() {
  if (options_.folder.empty()) return refuse("no folder was given");
  const int failure = make_private_folder(options_.folder);
  if (failure != 0) return refuse(fmt::format("it cannot be made: {}", describe(failure)));
  const auto distrust = distrust_folder(options_.folder);
  if (!distrust.empty()) return refuse(distrust);
  if (::access(options_.folder.c_str(), W_OK) != 0) give_up_writing(describe(errno));
}

void DiskCache::refuse(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    state_.store(DiskCacheState::refused, std::memory_order_release);
    reason_ = why;
  }
  report(fmt::format("cache folder {} is not used: {}", options_.folder, why));
}

void DiskCache::give_up_writing(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (state() != DiskCacheState::usable) return;
    state_.store(DiskCacheState::read_only, std::memory_order_release);
    reason_ = why;
  }
  report(fmt::format("cache folder {} is only read from now on: {}", options_.folder, why));
}

void DiskCache::report(const std::string& text) const {
  if (options_.log) options_.log(text);
}

std::string DiskCache::path_of(const std::string& name) const { return options_.folder + "/" + name; }

std::optional<CacheEntry> DiskCache::load(std::string_view key_text) {
  if (state() == DiskCacheState::refused) return std::nullopt;
  const std::string path = path_of(name_for(key_text));
  std::vector<std::byte> file;
  const int failure = read_file(path, file, options_.max_bytes, options_.touch_after.count());
  if (failure != 0) {
    // A failing disk or network is no reason to remove anything.
    if (failure == EFBIG)
      report(fmt::format("cache entry {} is not read: it is larger than the cache may be", path));
    else if (failure != ENOENT)
      report(fmt::format("cache entry {} cannot be read: {}", path, describe(failure)));
    ++counters_.misses;
    return std::nullopt;
  }
  std::string why;
  const auto view = decode_cache_file(file, why);
  if (!view) {
    discard(path, why);
    ++counters_.misses;
    return std::nullopt;
  }
  if (view->key_text != key_text) {  // another key with the same digest: a sound entry, but not ours
    ++counters_.misses;
    return std::nullopt;
  }
  ++counters_.hits;
  return copy_of(*view);
}

void DiskCache::discard(const std::string& path, const std::string& why) {
  ++counters_.corrupted;
  ::unlink(path.c_str());
  report(fmt::format("cache entry {} is damaged and was removed: {}", path, why));
}

bool DiskCache::store(std::string_view key_text, const CacheEntry& entry) {
  if (state() != DiskCacheState::usable) return false;
  const auto file = encode_cache_file(key_text, entry);
  if (file.size() > options_.max_bytes) {
    ++counters_.failed_writes;
    return false;
  }
  const std::string name = name_for(key_text);
  int failure = 0;
  bool published = publish(name, file, failure);
  if (!published && failure == ENOENT) {  // the folder was removed under us
    prepare();
    published = state() == DiskCacheState::usable && publish(name, file, failure);
  }
  if (!published) {
    ++counters_.failed_writes;
    if (!is_passing(failure)) give_up_writing(describe(failure));
    return false;
  }
  ++counters_.writes;
  count_written(file.size());
  return true;
}

bool DiskCache::publish(const std::string& name, const std::vector<std::byte>& file, int& failure) {
  const std::string temporary = path_of(temporary_name());
  failure = write_new_file(temporary, file);
  if (failure != 0) return false;
  if (std::rename(temporary.c_str(), path_of(name).c_str()) == 0) return true;
  failure = errno;
  ::unlink(temporary.c_str());
  return false;
}

// The folder is listed at the first write and whenever this process believes it to be full; other processes' writes
// are noticed then.
void DiskCache::count_written(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    estimated_bytes_ += bytes;
    if (size_known_ && estimated_bytes_ <= options_.max_bytes) return;
  }
  evict();
}

void DiskCache::evict() {
  const std::time_t now = std::time(nullptr);
  std::vector<FileInfo> entries;
  for (auto& file : list_files(options_.folder)) {
    if (is_entry(file.name)) {
      entries.push_back(std::move(file));
    } else if (is_temporary(file.name) && std::abs(now - file.modified) > options_.abandon_after.count()) {
      ::unlink(path_of(file.name).c_str());
    }
  }
  std::uint64_t total = bytes_of(entries);
  if (total > options_.max_bytes) {
    // Times well in the future are from before the clock was set back: nobody has used the entry since, or it would
    // have been renewed. What lies a little ahead is the clock of another host.
    const auto last_use = [&](const FileInfo& file) {
      return file.modified - now > options_.touch_after.count() ? 0 : file.modified;
    };
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const FileInfo& a, const FileInfo& b) { return last_use(a) < last_use(b); });
    const std::uint64_t target = options_.max_bytes / 10 * 9;  // some room, so that not every write lists the folder
    for (std::size_t i = 0; i < entries.size() && total > target; ++i) {
      if (::unlink(path_of(entries[i].name).c_str()) == 0) ++counters_.evicted;
      total -= entries[i].bytes;
    }
  }
  const std::lock_guard lock(mutex_);
  size_known_ = true;
  estimated_bytes_ = total;
}

DiskCacheStats DiskCache::stats() const {
  DiskCacheStats stats;
  stats.folder = options_.folder;
  stats.state = state();
  stats.max_bytes = options_.max_bytes;
  stats.counters = {counters_.hits,          counters_.misses,    counters_.writes,
                    counters_.failed_writes, counters_.corrupted, counters_.evicted};
  if (stats.state != DiskCacheState::refused) {
    const auto entries = entries_in(options_.folder);
    stats.entries = entries.size();
    stats.bytes = bytes_of(entries);
    stats.too_large = static_cast<std::uint64_t>(std::count_if(
        entries.begin(), entries.end(), [&](const FileInfo& file) { return file.bytes > options_.max_bytes; }));
  }
  const std::lock_guard lock(mutex_);
  stats.reason = reason_;
  return stats;
}

DiskCacheReport DiskCache::verify() {
  DiskCacheReport result;
  if (state() == DiskCacheState::refused) return result;
  for (const auto& entry : entries_in(options_.folder)) {
    const std::string path = path_of(entry.name);
    std::vector<std::byte> file;
    const int failure = read_file(path, file, options_.max_bytes);
    if (failure != 0) {
      if (failure == EFBIG)
        ++result.too_large;
      else if (failure != ENOENT)
        ++result.unreadable;
      continue;
    }
    std::string why;
    const auto view = decode_cache_file(file, why);
    if (view && name_for(view->key_text) == entry.name) {
      ++result.good;
      continue;
    }
    discard(path, view ? "it lies under another key's name" : why);
    ++result.removed;
  }
  return result;
}

std::uint64_t DiskCache::clear() {
  std::uint64_t removed = 0;
  if (state() == DiskCacheState::refused) return removed;
  for (const auto& file : list_files(options_.folder)) {
    if (!is_entry(file.name) && !is_temporary(file.name)) continue;
    if (::unlink(path_of(file.name).c_str()) == 0 && is_entry(file.name)) ++removed;
  }
  const std::lock_guard lock(mutex_);
  size_known_ = false;
  estimated_bytes_ = 0;
  return removed;
}

}  // namespace tenon::runtime
