// Random numbers are Tenon's own (Philox), from a graph for each dtype, compiled for the target at hand.
#include "tools/bench_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/ops/infer.h"
#include "ir/text/text.h"
#include "src/api/write_file.h"
#include "src/driver/pipeline.h"

namespace tenon::tools {
namespace {

using ir::Graph;
using ir::ValueId;

std::string random_expression(DType dtype) {
  const std::string_view name = name_of(dtype);
  if (dtype == DType::bool_) return "less(random_uniform(seed, shape=[n]), 0.5)";
  if (!is_real(dtype)) return fmt::format("cast(mul(random_uniform(seed, shape=[n]), limit), dtype={})", name);
  return fmt::format("cast(random_normal(seed, shape=[n]), dtype={})", name);
}

// Which elements of a buffer have `pattern` in every byte.
template <typename Word>
void find_pattern(const std::byte* bytes, std::size_t count, unsigned char pattern, std::size_t first,
                  std::vector<bool>& found) {
  Word wanted;
  std::memset(&wanted, pattern, sizeof wanted);
  for (std::size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof word);
    if (word == wanted) found[first + i] = true;
  }
}

// Calls `use` with a buffer's bytes, a part at a time.
void in_parts(const runtime::Backend& backend, const Buffer& buffer,
              const std::function<void(std::span<const std::byte> part, std::int64_t begin)>& use) {
  constexpr std::int64_t kPart = std::int64_t{64} << 20;
  const std::int64_t bytes = bytes_of(buffer);
  std::vector<std::byte> part(static_cast<std::size_t>(std::min(bytes, kPart)));
  for (std::int64_t begin = 0; begin < bytes; begin += kPart) {
    const auto count = static_cast<std::size_t>(std::min(kPart, bytes - begin));
    backend.copy_out(part.data(), static_cast<const std::byte*>(buffer.data) + begin, count, nullptr);
    backend.synchronize(nullptr);
    use({part.data(), count}, begin);
  }
}

std::vector<bool> holding(const runtime::Backend& backend, const Buffer& buffer, unsigned char pattern) {
  const auto size = static_cast<std::size_t>(size_of(buffer.dtype));
  std::vector<bool> found(static_cast<std::size_t>(bytes_of(buffer)) / size);
  in_parts(backend, buffer, [&](std::span<const std::byte> part, std::int64_t begin) {
    const std::size_t first = static_cast<std::size_t>(begin) / size, count = part.size() / size;
    if (size == 1) find_pattern<std::uint8_t>(part.data(), count, pattern, first, found);
    if (size == 2) find_pattern<std::uint16_t>(part.data(), count, pattern, first, found);
    if (size == 4) find_pattern<std::uint32_t>(part.data(), count, pattern, first, found);
    if (size == 8) find_pattern<std::uint64_t>(part.data(), count, pattern, first, found);
  });
  return found;
}

void write_file(const runtime::Backend& backend, const Buffer& buffer, const std::string& path) {
  FileWriter file(path);
  in_parts(backend, buffer, [&](std::span<const std::byte> part, std::int64_t) {
    file.write({reinterpret_cast<const char*>(part.data()), part.size()});
  });
  file.finish();
}

}  // namespace

std::int64_t index_limit(const Graph& graph, ValueId input, const Bindings& bindings) {
  constexpr std::int64_t kSmall = 10;
  for (const ir::Node& node : graph.nodes) {
    if (node.operands.size() < 2 || node.operands[1] != input) continue;
    const Shape& shape = graph.type(node.operands[0]).shape;
    const int rank = static_cast<int>(shape.size());
    if (node.op == ir::Op::take)
      return shape[static_cast<std::size_t>(ir::normalize_axis(node.attrs.get_or<std::int64_t>("axis", 0), rank))]
          .evaluate(bindings);
    if (node.op == ir::Op::cross_entropy) return shape.back().evaluate(bindings);
  }
  return kSmall;
}

RandomFill::RandomFill(std::shared_ptr<const runtime::Backend> backend, const Options& options)
    : backend_(std::move(backend)), options_(options), numbers_(allocate(*backend_, kLimitAt + sizeof(float))) {}

const Executable& RandomFill::kernel(DType dtype) {
  const auto known = kernels_.find(dtype);
  if (known != kernels_.end()) return known->second;
  const Graph graph = ir::parse(fmt::format(
      "graph random(seed: i64[], limit: f32[]) where n >= 0 {{\n  y = {}\n  return y\n}}\n", random_expression(dtype)));
  return kernels_
      .emplace(dtype, src::make_executable(src::plan(graph, backend_->target().kind, options_), backend_, options_))
      .first->second;
}

void RandomFill::operator()(const Buffer& to, std::int64_t limit, std::int64_t seed) {
  const std::int64_t count = bytes_of(to) / size_of(to.dtype);
  if (count == 0) return;
  auto* const at = static_cast<std::byte*>(numbers_.get());
  const auto real_limit = static_cast<float>(limit);
  backend_->copy_in(at, &seed, sizeof seed, nullptr);
  backend_->copy_in(at + kLimitAt, &real_limit, sizeof real_limit, nullptr);
  const Buffer in[] = {{at, DType::i64, {}}, {at + kLimitAt, DType::f32, {}}}, out{to.data, to.dtype, {count}};
  kernel(to.dtype).run(in, {&out, 1}, {{"n", count}});
}

std::int64_t bytes_of(const Buffer& buffer) {
  std::int64_t bytes = size_of(buffer.dtype);
  for (const std::int64_t extent : buffer.shape) bytes *= extent;
  return bytes;
}

BenchData random_data(const Graph& graph, const Bindings& bindings,
                      const std::shared_ptr<const runtime::Backend>& backend, const Options& options) {
  BenchData data;
  RandomFill fill(backend, options);
  const auto add = [&](std::vector<Buffer>& buffers, ValueId value) {
    Buffer buffer{nullptr, graph.type(value).dtype, {}};
    for (const Dim& extent : graph.type(value).shape) buffer.shape.push_back(extent.evaluate(bindings));
    data.memory.push_back(allocate(*backend, bytes_of(buffer)));
    buffer.data = data.memory.back().get();
    buffers.push_back(std::move(buffer));
  };
  for (const std::size_t output : ir::own_outputs(graph)) add(data.outputs, graph.outputs[output]);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    add(data.inputs, graph.inputs[i]);
    fill(data.inputs.back(), index_limit(graph, graph.inputs[i], bindings), static_cast<std::int64_t>(i) + 1);
  }
  return data;
}

void save_data(const runtime::Backend& backend, const BenchData& data, const std::string& folder,
               const std::string& graph) {
  for (std::size_t i = 0; i < data.inputs.size(); ++i)
    write_file(backend, data.inputs[i], fmt::format("{}/{}.in{}.bin", folder, graph, i));
  for (std::size_t i = 0; i < data.outputs.size(); ++i)
    write_file(backend, data.outputs[i], fmt::format("{}/{}.out{}.bin", folder, graph, i));
}

std::int64_t unwritten_elements(const runtime::Backend& backend, std::span<const Buffer> outputs,
                                const std::function<void()>& run) {
  const auto run_on = [&](unsigned char pattern) {
    for (const Buffer& output : outputs)
      backend.fill(output.data, pattern, static_cast<std::size_t>(bytes_of(output)), nullptr);
    run();
    backend.synchronize(nullptr);
  };
  constexpr unsigned char kNan = 0xff, kOther = 0x5a;
  run_on(kNan);
  std::vector<std::vector<bool>> suspects;
  bool any = false;
  for (const Buffer& output : outputs) {
    suspects.push_back(holding(backend, output, kNan));
    any = any || std::find(suspects.back().begin(), suspects.back().end(), true) != suspects.back().end();
  }
  if (!any) return 0;
  run_on(kOther);
  std::int64_t unwritten = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<bool> again = holding(backend, outputs[i], kOther);
    for (std::size_t element = 0; element < again.size(); ++element)
      unwritten += again[element] && suspects[i][element] ? 1 : 0;
  }
  return unwritten;
}

}  // namespace tenon::tools
