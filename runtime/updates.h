// Results that update inputs: where a run leaves them.
#pragma once

#include <span>
#include <vector>

#include "ir/fusion/plan.h"
#include "runtime/executable.h"

namespace tenon::runtime {

/// Gives results that update inputs the inputs' memory, in a record whose outputs are still all of the graph's. A
/// kernel writes such a result in place where no kernel beside or behind it reads the old content, but for an
/// elementwise update (overlap.h). Elsewhere it goes to the arena, and a copy behind all kernels brings it: what a run
/// leaves is the same. From then on the record's outputs are those with memory of their own.
void place_updates(const ir::Plan& plan, LaunchRecord& record);

/// A buffer for each output of the graph: those of a caller, and memory of their own for results that update inputs.
class AllOutputs {
 public:
  /// `record` has all of the graph's outputs (Updates::apart).
  AllOutputs(const Backend& backend, const ir::Graph& graph, const LaunchRecord& record, std::span<const Buffer> own);
  ~AllOutputs();
  AllOutputs(const AllOutputs&) = delete;
  AllOutputs& operator=(const AllOutputs&) = delete;
  std::span<const Buffer> buffers() const { return buffers_; }

 private:
  const Backend& backend_;
  std::vector<Buffer> buffers_;
  std::vector<void*> memory_;  ///< of those that are no caller's
};

}  // namespace tenon::runtime
