// See late_stores.h.
#include "codegen/emit/llvm/reduce/late_stores.h"

#include <algorithm>

#include "codegen/analysis/vectorize.h"
#include "codegen/emit/llvm/classes.h"
#include "ir/graph/check.h"

namespace tenon::codegen::simd {
namespace {

constexpr int kShares = 4;

// Bounds of the shares of the sweeps ahead of the last, by the time that they take.
std::vector<int> shares_of(const Kernel& kernel, const Rounds& rounds) {
  constexpr int kMemory = 8;  // issue slots in the time in which an element comes and goes
  std::vector<int> costs{0};
  for (std::size_t s = 0; s + 1 < rounds.sweeps.size(); ++s)
    costs.push_back(costs.back() + kMemory + element_cost(kernel, rounds.sweeps[s]));
  const int all = costs.back();
  for (int& cost : costs) cost = (2 * kShares * cost + all) / (2 * all);
  return costs;
}

// How many rows ahead memory is asked for one: two pages, and a whole row.
std::int64_t rows_ahead(const Kernel& kernel, const Access& access, int axis) {
  constexpr std::int64_t kAhead = 8192;
  const std::int64_t longest = std::clamp<std::int64_t>(extent_of(kernel, axis).bounds(kernel.symbols).max, 1, kAhead);
  return kAhead / std::min(kAhead, longest * element_bytes(kernel, access));
}

}  // namespace

LateStores::LateStores(Unit& unit, const RowPlan& plan, const Rounds& rounds, Scope& row, Value* any,
                       const std::vector<KeptValue>& kept)
    : unit_(unit),
      plan_(plan),
      rounds_(rounds),
      row_(row),
      kept_(kept),
      quarters_(shares_of(unit.kernel, rounds)),
      done_(variable(unit, unit.b.getInt64Ty(), "done")) {
  auto& b = unit.b;
  const int axis = plan.reduced.back();
  Value* elements = b.CreateSelect(any, emit_dim(unit, extent_of(unit.kernel, axis)), constant(unit, 0));
  lanes_ = {axis, plan.lanes, plan.vectors, constant(unit, 0), elements};
  streamed_ = streamed_lanes(unit, row, rounds.sweeps.back().stores, lanes_);
  b.CreateStore(constant(unit, 0), done_);
}

void LateStores::store(std::vector<Scope>& vectors, bool streaming) {
  bind_kept(unit_, rounds_.sweeps.size() - 1, kept_, vectors);
  emit_stores(unit_, vectors, rounds_.sweeps.back().stores, streaming);
}

void LateStores::begin() {
  const auto body = [&](std::vector<Scope>& vectors) { store(vectors, false); };
  if (streamed_) return for_edges(unit_, row_, *streamed_, body);
  for_lanes(unit_, row_, lanes_.axis, lanes_.begin, lanes_.end, lanes_.lanes, lanes_.unroll, body);
}

// What the sweep should have stored, of the row before, when it has come to its element number `elements`.
Value* LateStores::share_of(std::size_t number, Value* elements) {
  auto& b = unit_.b;
  const std::int64_t step = std::int64_t{lanes_.lanes} * lanes_.unroll;
  Value* weighted = b.CreateMul(elements, constant(unit_, quarters_[number + 1] - quarters_[number]));
  return b.CreateMul(b.CreateUDiv(weighted, constant(unit_, kShares * step)), constant(unit_, step));
}

void LateStores::store_up_to(Value* count) {
  auto& b = unit_.b;
  Value* from = b.CreateLoad(b.getInt64Ty(), done_);
  Value* to = minimum_of(unit_, count, b.CreateSub(streamed_->stop, streamed_->start));
  emit_loop(unit_, from, to, constant(unit_, std::int64_t{lanes_.lanes} * lanes_.unroll), "late", [&](Value* done) {
    Value* at = b.CreateAdd(streamed_->start, done);
    std::vector<Scope> vectors = vectors_from(unit_, row_, lanes_.axis, at, lanes_.lanes, lanes_.unroll);
    store(vectors, true);
  });
  b.CreateStore(to, done_);
}

// The share of a turn in what is asked for of a row ahead.
void LateStores::prefetch(Scope& scope, std::size_t number, const std::vector<Scope>& turn) {
  auto& b = unit_.b;
  const int share = quarters_[number + 1] - quarters_[number];
  const int vectors = static_cast<int>(turn.size()) * share / kShares;
  const std::int64_t step = std::int64_t{lanes_.lanes} * static_cast<std::int64_t>(turn.size());
  Value* turns = b.CreateUDiv(emit_dim(unit_, extent_of(unit_.kernel, lanes_.axis)), constant(unit_, step));
  Value* number_of_turn = b.CreateUDiv(turn[0].axes[static_cast<std::size_t>(lanes_.axis)], constant(unit_, step));
  Value* shares = b.CreateAdd(b.CreateMul(turns, constant(unit_, quarters_[number])),
                              b.CreateMul(number_of_turn, constant(unit_, share)));
  Value* at = b.CreateMul(shares, constant(unit_, step / kShares));
  std::vector<Scope> ahead = vectors_from(unit_, scope, lanes_.axis, at, lanes_.lanes, vectors);
  for (const InstrId id : rounds_.sweeps[0].instrs) {
    if (unit_.kernel.instr(id).kind != InstrKind::load) continue;
    const Access& access = unit_.kernel.instr(id).access;
    const auto pitch = access.offset.coefficient(plan_.kept.back());
    if (!pitch || pitch->is(0)) continue;
    const Dim distance = *pitch * Dim(rows_ahead(unit_.kernel, access, lanes_.axis));
    for (Scope& vector : ahead) emit_prefetch(unit_, vector, access, distance, CacheLevel::first);
  }
}

void LateStores::beside(Scope& scope, std::size_t number, const Lanes& lanes,
                        const std::function<void(std::vector<Scope>&)>& body, const LongSums* sums) {
  auto& b = unit_.b;
  const std::int64_t step = std::int64_t{lanes.lanes} * lanes.unroll;
  const bool keeps =
      std::any_of(kept_.begin(), kept_.end(), [&](const KeptValue& kept) { return kept.what.sweep == number; });
  TENON_CHECK(!keeps || lanes.unroll == lanes_.unroll, "a sweep overwrites kept values faster than they are stored");
  Value* before = b.CreateLoad(b.getInt64Ty(), done_);
  for_lanes(
      unit_, scope, lanes.axis, lanes.begin, lanes.end, lanes.lanes, lanes.unroll,
      [&](std::vector<Scope>& vectors) {
        if (streamed_ && static_cast<int>(vectors.size()) == lanes.unroll) {
          Value* at = vectors[0].axes[static_cast<std::size_t>(lanes.axis)];
          Value* due = b.CreateAdd(before, share_of(number, b.CreateAdd(at, constant(unit_, step))));
          // What this turn overwrites. Behind the last whole one there is nothing late.
          if (keeps) due = maximum_of(unit_, due, b.CreateAdd(at, constant(unit_, step)));
          store_up_to(due);
          for (Scope& vector : vectors) vector.home = b.GetInsertBlock();
          prefetch(scope, number, vectors);
        }
        body(vectors);
      },
      sums);
}

void LateStores::end() {
  if (streamed_) store_up_to(lanes_.end);
}

}  // namespace tenon::codegen::simd
