// Random inputs made on the target itself, since a gigabyte of them takes a host seconds, and outputs of which it is
// known that every element was written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/memory.h"
#include "tenon/compile.h"

namespace tenon::tools {

using runtime::Memory;

/// A graph's inputs and outputs in a target's memory.
struct BenchData {
  std::vector<Memory> memory;
  std::vector<Buffer> inputs, outputs;
};

std::int64_t bytes_of(const Buffer& buffer);

/// Where the integers of an input stop: the extent of the axis that they index (of take, of cross_entropy's classes),
/// else 10.
std::int64_t index_limit(const ir::Graph& graph, ir::ValueId input, const Bindings& bindings);

/// Fills buffers by a kernel for each dtype: standard normal reals, fair bools, integers from 0 to below a limit.
class RandomFill {
 public:
  RandomFill(std::shared_ptr<const runtime::Backend> backend, const Options& options);
  /// Waits. The same numbers for the same dtype, limit and seed.
  void operator()(const Buffer& to, std::int64_t limit, std::int64_t seed);

 private:
  static constexpr std::int64_t kLimitAt = 256;  // bytes behind the seed

  const Executable& kernel(DType dtype);

  const std::shared_ptr<const runtime::Backend> backend_;
  const Options options_;
  const Memory numbers_;  // the seed, and the limit
  std::map<DType, Executable> kernels_;
};

/// Inputs: standard normal reals, fair bools, integers from 0 to below index_limit(). Outputs hold what the memory
/// held.
BenchData random_data(const ir::Graph& graph, const Bindings& bindings,
                      const std::shared_ptr<const runtime::Backend>& backend, const Options& options);

/// Writes each buffer's bytes to FOLDER/GRAPH.in0.bin, … and GRAPH.out0.bin, …, for other programs to check. Error(io).
void save_data(const runtime::Backend& backend, const BenchData& data, const std::string& folder,
               const std::string& graph);

/// How many elements of the outputs `run` leaves unwritten: those that hold the pattern they were filled with, for each
/// of two patterns. (The second is tried only where an element holds the first.)
std::int64_t unwritten_elements(const runtime::Backend& backend, std::span<const Buffer> outputs,
                                const std::function<void()>& run);

}  // namespace tenon::tools
