// Where intermediates live: offsets in one block of memory, planned by lifetime, so that values that are never needed
// at the same time share bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::runtime {

/// A value that must exist from step `first` to step `last`, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct ArenaPlan {
  std::vector<std::int64_t> offsets;  ///< one for each lifetime, multiples of kArenaAlignment
  std::int64_t bytes = 0;             ///< of the whole arena
};

inline constexpr std::int64_t kArenaAlignment = 256;

/// First fit, largest values first: within a small factor of the peak of live bytes, and deterministic.
ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes);

}  // namespace tenon::runtime
