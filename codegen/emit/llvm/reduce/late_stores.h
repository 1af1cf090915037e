// A row's elements are stored while the row behind it is worked on: in turns with its sweeps, as are the requests for
// the row behind that. Memory would otherwise be read for a while, then idle, then written.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "codegen/analysis/rounds.h"
#include "codegen/emit/llvm/reduce/kept.h"
#include "codegen/emit/llvm/reduce/rows.h"
#include "codegen/emit/llvm/stream.h"

namespace tenon::codegen::simd {

/// The stores of one row, those of the last sweep, beside the sweeps over the next row. Only what goes around the
/// caches is late.
class LateStores {
 public:
  /// `row` has its results, and `kept` its dear values, which the sweeps over the next row overwrite. Nothing is stored
  /// where not `any`.
  LateStores(Unit& unit, const RowPlan& plan, const Rounds& rounds, Scope& row, Value* any,
             const std::vector<KeptValue>& kept);

  /// The stores that are not late.
  void begin();
  /// for_lanes over the next row with `body`, which is sweep `number`, and its share of the stores.
  void beside(Scope& scope, std::size_t number, const Lanes& lanes,
              const std::function<void(std::vector<Scope>&)>& body, const LongSums* sums);
  /// Those for which the sweeps were too short.
  void end();

 private:
  Value* share_of(std::size_t number, Value* elements);
  void store_up_to(Value* count);
  void store(std::vector<Scope>& vectors, bool streaming);
  void prefetch(Scope& scope, std::size_t number, const std::vector<Scope>& turn);

  Unit& unit_;
  const RowPlan& plan_;
  const Rounds& rounds_;
  Scope& row_;
  const std::vector<KeptValue>& kept_;
  std::vector<int> quarters_;  // sweep s has those from quarters_[s] to quarters_[s + 1] of a row's stores
  Lanes lanes_;
  std::optional<Streamed> streamed_;
  llvm::AllocaInst* done_ = nullptr;  // of the elements from start to stop, so many are stored
};

}  // namespace tenon::codegen::simd
