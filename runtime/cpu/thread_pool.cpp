// A task arena for a limited number of threads, the default one otherwise.
#include "runtime/cpu/thread_pool.h"

#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace tenon::runtime::cpu {

void parallel_for(std::int64_t tasks, int max_threads, const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (tasks <= 0) return;
  if (tasks == 1 || max_threads == 1) return body(0, tasks);
  const auto run = [&] {
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, tasks),
                      [&](const tbb::blocked_range<std::int64_t>& range) { body(range.begin(), range.end()); });
  };
  if (max_threads <= 0 || max_threads >= tbb::info::default_concurrency()) return run();
  tbb::task_arena arena(max_threads);
  arena.execute(run);
}

}  // namespace tenon::runtime::cpu
