// What may share a buffer is a fact of the kernels, found once for each launch record; where buffers lie is looked at
// in each run.
#include "runtime/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "runtime/small_array.h"

namespace tenon::runtime {
namespace {

// The last launch that reads each input, and how many operands of its members do.
struct Reads {
  std::size_t launch = 0;
  int operands = 0;
};

std::map<int, Reads> last_reads(const LaunchRecord& record) {
  std::map<int, Reads> reads;
  const auto add = [&](const PointerSource& source, std::size_t launch) {
    if (source.kind != PointerSource::Kind::input) return;
    Reads& known = reads[static_cast<int>(source.at)];
    if (known.launch != launch) known = {launch, 0};
    ++known.operands;
  };
  for (std::size_t i = 0; i < record.launches.size(); ++i) {
    std::size_t pointer = 0;
    for (const codegen::Kernel& member : record.launches[i].built->launch.members)
      for (const codegen::Operand& operand : member.operands) {
        const PointerSource& source = record.launches[i].pointers[pointer++];
        if (!operand.written) add(source, i);
      }
  }
  for (const PreparedCopy& copy : record.copies) add(copy.from, record.launches.size());
  return reads;
}

// Whether `value` is computed from the load `from`.
bool depends_on(const codegen::Kernel& kernel, codegen::InstrId value, codegen::InstrId from) {
  std::vector<bool> needed(kernel.body.size());
  needed[static_cast<std::size_t>(value)] = true;
  for (codegen::InstrId id = value; id >= from; --id)
    if (needed[static_cast<std::size_t>(id)])
      for (const codegen::InstrId arg : kernel.instr(id).args) needed[static_cast<std::size_t>(arg)] = true;
  return needed[static_cast<std::size_t>(from)];
}

// Whether each point reads operand `read` only at the element of `written` that it writes, which it computes from it:
// then the element is read before it is written, whatever else the compiler moves. Tiles are read by other threads.
bool updates(const codegen::Kernel& kernel, int read, int written) {
  const auto* schedule = std::get_if<codegen::MapSchedule>(&kernel.schedule);
  if (schedule == nullptr || schedule->tile) return false;
  const auto writes = [&](const codegen::Store& store) { return store.access.operand == written; };
  if (std::count_if(kernel.stores.begin(), kernel.stores.end(), writes) != 1) return false;
  const codegen::Store& store = *std::find_if(kernel.stores.begin(), kernel.stores.end(), writes);
  if (!store.access.guards.empty()) return false;
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const codegen::Instr& load = kernel.body[i];
    if (load.kind != codegen::InstrKind::load || load.access.operand != read) continue;
    if (!load.access.guards.empty() || !(load.access.offset == store.access.offset) ||
        !depends_on(kernel, store.value, static_cast<codegen::InstrId>(i)))
      return false;
  }
  return true;
}

}  // namespace

std::vector<std::vector<int>> in_place_inputs(const ir::Plan& plan, const LaunchRecord& record) {
  const ir::Graph& graph = plan.graph;
  std::vector<std::vector<int>> inputs(graph.outputs.size());
  const std::map<int, Reads> reads = last_reads(record);
  const auto same_type = [&](int input, int output) {
    return graph.type(graph.inputs[static_cast<std::size_t>(input)]).dtype ==
               graph.type(graph.outputs[static_cast<std::size_t>(output)]).dtype &&
           record.input_shapes[static_cast<std::size_t>(input)] ==
               record.output_shapes[static_cast<std::size_t>(output)];
  };
  for (std::size_t i = 0; i < record.launches.size(); ++i) {
    const PreparedLaunch& launch = record.launches[i];
    std::size_t first = 0;  // pointer of the member
    for (const codegen::Kernel& member : launch.built->launch.members) {
      const auto source = [&](std::size_t operand) { return launch.pointers[first + operand]; };
      for (std::size_t out = 0; out < member.operands.size(); ++out)
        for (std::size_t in = 0; in < member.operands.size(); ++in) {
          if (source(out).kind != PointerSource::Kind::output || source(in).kind != PointerSource::Kind::input)
            continue;
          const int output = static_cast<int>(source(out).at), input = static_cast<int>(source(in).at);
          const Reads& last = reads.at(input);
          if (last.launch == i && last.operands == 1 && same_type(input, output) &&
              updates(member, static_cast<int>(in), static_cast<int>(out)))
            inputs[static_cast<std::size_t>(output)].push_back(input);
        }
      first += member.operands.size();
    }
  }
  for (std::vector<int>& each : inputs) std::sort(each.begin(), each.end());
  return inputs;
}

namespace {

struct Extent {
  std::uintptr_t begin = 0, end = 0;
  std::size_t buffer = 0;
};

// The shape is a record's, so that its bytes are a number (ir/graph/bind.cpp).
Extent extent_of(const Buffer& buffer, std::size_t number) {
  std::int64_t bytes = size_of(buffer.dtype);
  for (const std::int64_t size : buffer.shape) bytes *= size;
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.data);
  return {begin, begin + static_cast<std::uintptr_t>(bytes), number};
}

[[noreturn]] void refuse(const std::string& output, const std::string& other, bool exactly) {
  throw Error(ErrorKind::argument,
              fmt::format("output '{}' {} {}", output, exactly ? "has the buffer of" : "overlaps with", other), {},
              "give it memory of its own: only an elementwise update of an input that nothing else reads afterwards "
              "may be written in its place");
}

}  // namespace

bool check_overlaps(const ir::Graph& graph, const LaunchRecord& record, std::span<const Buffer> inputs,
                    std::span<const Buffer> outputs) {
  SmallArray<Extent> written(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) written[i] = extent_of(outputs[i], i);
  Extent* const first = written.data();
  Extent* const last =
      std::remove_if(first, first + outputs.size(), [](const Extent& extent) { return extent.begin == extent.end; });
  std::sort(first, last, [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (const Extent* next = first; next != last && next + 1 != last; ++next)
    if (next->end > next[1].begin)
      refuse(graph.outputs_names[next[1].buffer], fmt::format("output '{}'", graph.outputs_names[next->buffer]),
             next->begin == next[1].begin && next->end == next[1].end);
  bool in_place = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Extent read = extent_of(inputs[i], i);
    if (read.begin == read.end) continue;
    const Extent* output = std::upper_bound(
        first, last, read.begin, [](std::uintptr_t begin, const Extent& extent) { return begin < extent.end; });
    if (output == last || output->begin >= read.end) continue;
    const bool exactly = output->begin == read.begin && output->end == read.end;
    const std::vector<int>& allowed = record.in_place[output->buffer];
    if (!exactly || !std::binary_search(allowed.begin(), allowed.end(), static_cast<int>(i)))
      refuse(graph.outputs_names[output->buffer], fmt::format("input '{}'", graph.value(graph.inputs[i]).name),
             exactly);
    in_place = true;
  }
  return in_place;
}

}  // namespace tenon::runtime
