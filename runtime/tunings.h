// Schedules that won on a device, kept in the disk cache beside the kernels. A kernel is known by its text. Two of the
// same text may differ in what is known of their dimensions: a winner is used only where it is legal.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "codegen/kernel/kernel.h"
#include "runtime/backend.h"
#include "runtime/disk_cache.h"

namespace tenon::runtime {

/// Thread-safe.
class Tunings {
 public:
  /// `disk` may be null: then winners last as long as this object. `tenon` is Tenon's version: the winners of another
  /// one were found among other candidates. `anew`: what is on disk is not looked at, only replaced.
  Tunings(std::shared_ptr<DiskCache> disk, std::string tenon, bool anew = false)
      : disk_(std::move(disk)), tenon_(std::move(tenon)), anew_(anew) {}

  /// The schedule that won for `kernel`, which has the heuristics' choice; nothing where none was tried, or
  /// where the winner is not legal, or does what is switched off.
  std::optional<codegen::Schedule> find(const Backend& backend, const codegen::Kernel& kernel) const;

  void keep(const Backend& backend, const codegen::Kernel& kernel, const codegen::Schedule& winner);

 private:
  std::string key_of(const Backend& backend, const codegen::Kernel& kernel) const;

  const std::shared_ptr<DiskCache> disk_;
  const std::string tenon_;
  const bool anew_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> winners_;  ///< texts of schedules by key; empty: asked for and not there
};

}  // namespace tenon::runtime
