// Runs as recordings: the launches of one launch record on one set of pointers become one call.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/backend.h"

namespace tenon::runtime {

/// The recordings of one launch record. A few sets of pointers have each their own, so that buffers that take turns
/// cost nothing; a further set replaces the one unused for longest, in place. Thread-safe.
class Replays {
 public:
  /// Does `work` on `stream` by its recording for `pointers` (all that the work depends on besides its sizes). Does it
  /// directly where the backend cannot record.
  void run(const Backend& backend, std::vector<void*> pointers, const std::function<void(void* stream)>& work,
           void* stream);

 private:
  struct Entry {
    std::vector<void*> pointers;
    std::unique_ptr<Recording> recording;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  ///< most recent first
};

}  // namespace tenon::runtime
