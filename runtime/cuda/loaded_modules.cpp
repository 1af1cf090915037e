// See loaded_modules.h.
#include "runtime/cuda/loaded_modules.h"

namespace tenon::runtime::cuda {

LoadedModule::LoadedModule(DevicePtr device, KernelCache::EntryPointer from)
    : entry(std::move(from)), module(std::move(device), entry->binary) {}

std::shared_ptr<const LoadedModule> LoadedModules::load(const DevicePtr& device, const KernelCache::EntryPointer& entry,
                                                        int shared_bytes) {
  const std::shared_ptr<Slot> slot = slot_of({entry.get(), shared_bytes});
  const std::lock_guard lock(slot->loading);
  std::shared_ptr<const LoadedModule> module = slot->module.lock();
  if (!module) slot->module = module = std::make_shared<const LoadedModule>(device, entry);
  return module;
}

std::shared_ptr<LoadedModules::Slot> LoadedModules::slot_of(const Key& key) {
  constexpr std::size_t kMany = 1024;  // from then on those of modules that are gone go too
  const std::lock_guard lock(mutex_);
  if (slots_.size() >= kMany)
    std::erase_if(slots_,
                  [](const auto& each) { return each.second.use_count() == 1 && each.second->module.expired(); });
  std::shared_ptr<Slot>& slot = slots_[key];
  if (!slot) slot = std::make_shared<Slot>();
  return slot;
}

}  // namespace tenon::runtime::cuda
