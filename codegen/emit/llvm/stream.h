// Loops along an axis whose stores go around the caches: what exceeds them would be gone before it is read, and a line
// that is written whole need not be read first.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "codegen/emit/llvm/scope.h"

namespace tenon::codegen::simd {

class LongSums;

constexpr int kLineBytes = 64;

/// Vectors of `lanes` elements of `axis` in [begin, end), `unroll` of them in one turn.
struct Lanes {
  int axis = -1;
  int lanes = 1, unroll = 1;
  Value* begin = nullptr;
  Value* end = nullptr;
};

/// The values of `stores` (numbers in kernel.stores) in each of `scopes`, then the stores; around the caches where
/// `streaming` says so and they are contiguous.
void emit_stores(Unit& unit, std::vector<Scope>& scopes, const std::vector<int>& stores, bool streaming);

/// Whether contiguous vectors of `stores` can go around the caches from the point where `corner` stands, along its
/// lanes and in every row along axis `across`: the operands exceed the last-level cache, and the vectors are aligned.
Value* may_stream_from(Unit& unit, Scope& corner, const std::vector<int>& stores, int across);

/// How many elements of `axis` lie in a line ahead of `at`, in which the first of `stores` writes that can go around
/// the caches; 0 when none can.
Value* past_line(Unit& unit, Scope& scope, const std::vector<int>& stores, int axis, Value* at);

/// How lanes are stored around the caches: vectors of [begin, start) and [stop, end) are masked, those of
/// [start, stop), whole turns of `unroll`, go around the caches.
struct Streamed {
  Lanes lanes;
  Value* start = nullptr;
  Value* stop = nullptr;
};

/// Where the kernel's operands exceed the last-level cache and those of `stores` that are contiguous align with each
/// other; elsewhere start and stop are begin. Nothing when none is contiguous.
std::optional<Streamed> streamed_lanes(Unit& unit, Scope& scope, const std::vector<int>& stores, const Lanes& lanes);
/// The vectors that are masked, one by one.
void for_edges(Unit& unit, Scope& scope, const Streamed& streamed, const std::function<void(std::vector<Scope>&)>& body,
               const LongSums* sums = nullptr);

/// Gives `body` vectors as for_lanes does, those that streamed_lanes finds to stream.
void for_streamed_lanes(Unit& unit, Scope& scope, const std::vector<int>& stores, const Lanes& lanes,
                        const std::function<void(std::vector<Scope>&, bool streaming)>& body,
                        const LongSums* sums = nullptr);

}  // namespace tenon::codegen::simd
