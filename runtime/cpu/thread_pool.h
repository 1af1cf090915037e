// Tasks of a kernel spread over threads by oneTBB.
#pragma once

#include <cstdint>
#include <functional>

namespace tenon::runtime::cpu {

/// Calls body(begin, end) on disjoint ranges that cover [0, tasks), on at most `max_threads` threads (0: as many as
/// the machine has), and returns when all have. Ranges are never split below one task. May be called by many threads.
void parallel_for(std::int64_t tasks, int max_threads, const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace tenon::runtime::cpu
