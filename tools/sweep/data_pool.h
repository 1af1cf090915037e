// Inputs and outputs of one graph after another in memory that is taken once: filling gigabytes anew for each would
// cost more than timing it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tools/bench_data.h"

namespace tenon::tools::sweep {

class DataPool {
 public:
  DataPool(std::shared_ptr<const runtime::Backend> backend, const Options& options)
      : backend_(std::move(backend)), fill_(backend_, options) {}

  struct Buffers {
    std::vector<Buffer> inputs, outputs;
  };
  /// Memory for a graph of constant shapes, inputs as random_data() has them; no two overlap. Until the next call.
  Buffers buffers(const ir::Graph& graph);
  /// Gives all memory back.
  void clear();

 private:
  struct Block {
    Memory memory;
    std::int64_t bytes = 0, used = 0;
  };
  /// True where the block has new memory.
  bool reserve(Block& block, std::int64_t bytes);
  static void* taken(Block& block, std::int64_t bytes);

  const std::shared_ptr<const runtime::Backend> backend_;
  RandomFill fill_;
  std::map<DType, Block> random_;
  Block indices_, outputs_;
};

}  // namespace tenon::tools::sweep
