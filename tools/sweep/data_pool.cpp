// A block for each dtype has its random numbers; indices, which fit one graph, are made for it.
#include "tools/sweep/data_pool.h"

namespace tenon::tools::sweep {
namespace {

std::int64_t rounded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

Buffer buffer_of(const ir::Graph& graph, ir::ValueId value) {
  Buffer buffer{nullptr, graph.type(value).dtype, {}};
  for (const Dim& extent : graph.type(value).shape) buffer.shape.push_back(extent.constant());
  return buffer;
}

bool is_index(const ir::Graph& graph, ir::ValueId input) {
  for (const ir::Node& node : graph.nodes)
    if ((node.op == ir::Op::take || node.op == ir::Op::cross_entropy) && node.operands[1] == input) return true;
  return false;
}

}  // namespace

bool DataPool::reserve(Block& block, std::int64_t bytes) {
  block.used = 0;
  if (bytes <= block.bytes) return false;
  block.memory.reset();  // before the new one is taken
  block.bytes = 0;
  block.memory = allocate(*backend_, bytes);
  block.bytes = bytes;
  return true;
}

void* DataPool::taken(Block& block, std::int64_t bytes) {
  void* const at = static_cast<std::byte*>(block.memory.get()) + block.used;
  block.used += rounded(bytes);
  return at;
}

void DataPool::clear() {
  random_.clear();
  indices_ = outputs_ = {};
}

DataPool::Buffers DataPool::buffers(const ir::Graph& graph) {
  Buffers buffers;
  std::map<DType, std::int64_t> wanted;
  std::int64_t of_indices = 0, of_outputs = 0;
  for (const ir::ValueId input : graph.inputs) {
    buffers.inputs.push_back(buffer_of(graph, input));
    (is_index(graph, input) ? of_indices : wanted[graph.type(input).dtype]) += rounded(bytes_of(buffers.inputs.back()));
  }
  for (const ir::ValueId output : graph.outputs) {
    buffers.outputs.push_back(buffer_of(graph, output));
    of_outputs += rounded(bytes_of(buffers.outputs.back()));
  }
  for (const auto& [dtype, bytes] : wanted) {
    Block& block = random_[dtype];
    if (!reserve(block, bytes)) continue;
    fill_({block.memory.get(), dtype, {bytes / size_of(dtype)}}, 10, static_cast<std::int64_t>(dtype));
  }
  reserve(indices_, of_indices);
  reserve(outputs_, of_outputs);
  for (Buffer& output : buffers.outputs) output.data = taken(outputs_, bytes_of(output));
  for (std::size_t i = 0; i < buffers.inputs.size(); ++i) {
    Buffer& input = buffers.inputs[i];
    const bool index = is_index(graph, graph.inputs[i]);
    input.data = taken(index ? indices_ : random_[input.dtype], bytes_of(input));
    if (index) fill_(input, index_limit(graph, graph.inputs[i], {}), static_cast<std::int64_t>(i) + 1);
  }
  return buffers;
}

}  // namespace tenon::tools::sweep
