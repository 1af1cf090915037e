// What a device's memory can do: a copy by its driver, and one by a kernel that reads and writes as much. Whichever is
// faster counts.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/memory.h"
#include "runtime/stopwatch.h"
#include "tenon/compile.h"

namespace tenon::src {

class Copy {
 public:
  /// Of up to `bytes`, half read and half written; at least one word.
  Copy(std::int64_t bytes, const std::shared_ptr<const runtime::Backend>& backend, const Options& options);

  /// By the driver, by a kernel: for a Stopwatch. This object must live longer.
  std::vector<std::function<void()>> works() const { return works(words_ * kWord * 2); }
  /// The same of fewer bytes.
  std::vector<std::function<void()>> works(std::int64_t bytes) const;

 private:
  static constexpr std::int64_t kWord = 4;
  static std::int64_t words(std::int64_t bytes);

  std::shared_ptr<const runtime::Backend> backend_;
  std::int64_t words_;
  runtime::Memory from_, to_;
  Executable kernel_;
};

/// The times of a Copy's works, in their order: whether the kernel was faster, and those of the faster.
struct CopyTimes {
  explicit CopyTimes(std::span<const Times> times)
      : by_kernel(times[1].median < times[0].median), faster(times[by_kernel ? 1 : 0]) {}
  bool by_kernel;
  Times faster;
};

}  // namespace tenon::src
