// Kernels of equal text share a module: the layers of a model have few different ones, and to load one takes as long as
// hundreds of launches.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/cache.h"
#include "runtime/cuda/device.h"

namespace tenon::runtime::cuda {

/// Machine code in the device's memory, and the cache's entry that it came from.
struct LoadedModule {
  LoadedModule(DevicePtr device, KernelCache::EntryPointer from);
  KernelCache::EntryPointer entry;
  Module module;
};

/// The modules that some kernel holds. Threads may load at once; each module is loaded by one of them.
class LoadedModules {
 public:
  /// The module of a cache entry; the cache gives the same entry for the same text. `shared_bytes`: dynamic shared
  /// memory of the launches, of which a function is told once.
  std::shared_ptr<const LoadedModule> load(const DevicePtr& device, const KernelCache::EntryPointer& entry,
                                           int shared_bytes);

 private:
  // A module keeps its entry, so that while it lives no other entry has that address.
  struct Slot {
    std::mutex loading;
    std::weak_ptr<const LoadedModule> module;
  };
  using Key = std::pair<const CacheEntry*, int>;

  std::shared_ptr<Slot> slot_of(const Key& key);

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

}  // namespace tenon::runtime::cuda
