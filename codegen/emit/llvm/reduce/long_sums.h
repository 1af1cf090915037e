// Sums of many reals: an accumulator takes the terms of a block one after the other, and blocks are added in double. So
// the error does not grow with the number of terms (docs/numerics.md), and what a term costs stays one addition.
#pragma once

#include <utility>
#include <vector>

#include "codegen/emit/llvm/reduce/accumulate.h"

namespace tenon::codegen::simd {

/// Turns of a loop, each an addition to an accumulator, of one block.
constexpr std::int64_t kBlockTurns = 64;

/// The sums that one nest of loops accumulates, and their blocks so far.
class LongSums {
 public:
  /// For sums of at most `turns` additions to an accumulator, in several runs of the innermost loop where `nested`.
  LongSums(Unit& unit, std::int64_t turns, bool nested) : unit_(unit), turns_(turns), nested_(nested) {}

  /// `reduce`, when it adds reals and there may be several blocks of them; `accumulators` are parts of one result.
  /// Returns the blocks' sum, in double and in each lane, or null. It lies in memory: registers are for the terms.
  llvm::AllocaInst* add(const Instr& reduce, const std::vector<Accumulator>& accumulators);
  bool empty() const { return sums_.empty(); }

  /// Adds the accumulators to the blocks' sums, and starts them anew.
  void end_block() const;
  /// Behind a run of the innermost loop of `turns` (i64): ends the block when it has been long enough.
  void after_run(Value* turns);

  /// The result of `accumulators` with their blocks: in double, where there are any.
  Partial collect(const Instr& reduce, const std::vector<Accumulator>& accumulators) const;

  /// for (i = begin; i < end; i += step) body(i) in blocks, but for the end of the last one.
  void loop(Value* begin, Value* end, std::int64_t step, const std::string& name,
            const std::function<void(Value*)>& body) const;

 private:
  struct Sum {
    const Instr* reduce;
    std::vector<Accumulator> accumulators;
    llvm::AllocaInst* blocks;
  };

  Unit& unit_;
  std::int64_t turns_;
  bool nested_;
  std::vector<Sum> sums_;
  llvm::AllocaInst* pending_ = nullptr;  // turns since the last block ended, where runs are many
};

/// The sum so far times `factor`, a vector of reals.
void scale_blocks(Unit& unit, llvm::AllocaInst* blocks, Value* factor);

/// In the reduction's own type again, when all is added.
Partial narrowed(Unit& unit, const Instr& reduce, const Partial& sum);

}  // namespace tenon::codegen::simd
