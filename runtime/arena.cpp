// First-fit placement by decreasing size (the offset calculation of Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020, "greedy by size").
#include "runtime/arena.h"

#include <algorithm>
#include <numeric>

#include "tenon/error.h"

namespace tenon::runtime {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

std::int64_t aligned(std::int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// Each value's bytes are a number (ir/graph/bind.cpp), their sum need not be.
std::int64_t end_of(std::int64_t offset, std::int64_t bytes) {
  std::int64_t end = 0;
  if (__builtin_add_overflow(offset, aligned(bytes), &end))
    throw Error(ErrorKind::out_of_memory, "the intermediates of a run need more than 2^63 bytes", {},
                "run at smaller sizes");
  return end;
}

}  // namespace

ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  ArenaPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (std::size_t value : order) {
    std::int64_t offset = 0;
    for (std::size_t other : placed) {
      if (!overlap(lifetimes[value], lifetimes[other])) continue;
      if (end_of(offset, lifetimes[value].bytes) <= plan.offsets[other]) break;
      offset = std::max(offset, end_of(plan.offsets[other], lifetimes[other].bytes));
    }
    plan.offsets[value] = offset;
    plan.bytes = std::max(plan.bytes, end_of(offset, lifetimes[value].bytes));
    const auto after =
        std::find_if(placed.begin(), placed.end(), [&](std::size_t other) { return plan.offsets[other] > offset; });
    placed.insert(after, value);
  }
  return plan;
}

}  // namespace tenon::runtime
