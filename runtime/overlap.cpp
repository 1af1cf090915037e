// What may share a buffer is a fact of the kernels, found once for each launch record; where buffers lie is looked at
// in each run.
#include "runtime/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "codegen/kernel/uses.h"
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

// Whether one of `roots` is computed from the load `from`, or lies where it says.
bool depends_on(const codegen::Kernel& kernel, const std::vector<codegen::InstrId>& roots, codegen::InstrId from) {
  return codegen::contains(codegen::needed(kernel, roots), from);
}

// Why not each point reads operand `read` only at the element of `written` that it writes, which it computes from it;
// nothing where that is so: then the element is read before it is written, whatever else the compiler moves.
std::string why_not_at_one_element(const codegen::Kernel& kernel, int read, int written) {
  const std::string elsewhere = "reads it at other elements than it writes";
  const auto writes = [&](const codegen::Store& store) { return store.access.operand == written; };
  if (std::count_if(kernel.stores.begin(), kernel.stores.end(), writes) != 1) return "writes it in several pieces";
  const codegen::Store& store = *std::find_if(kernel.stores.begin(), kernel.stores.end(), writes);
  if (!store.access.guards.empty()) return "writes it in several pieces";
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const codegen::Instr& load = kernel.body[i];
    if (load.kind != codegen::InstrKind::load || load.access.operand != read) continue;
    if (!load.access.guards.empty() || !(load.access.offset == store.access.offset)) return elsewhere;
    if (!depends_on(kernel, {store.value}, static_cast<codegen::InstrId>(i)))
      return "needs the old content for another result";
    // A compiler finds out that some functions of integers are none (x != x), and then may store before it loads.
    if (is_real(load.dtype)) continue;
    for (const codegen::Store& other : kernel.stores)
      if (other.access.operand != written && depends_on(kernel, roots_of(other), static_cast<codegen::InstrId>(i)))
        return "needs the old content, of no real dtype, for another result";
  }
  return "";
}

// The same of elementwise kernels. Tiles are read by other threads.
std::string why_no_update(const codegen::Kernel& kernel, int read, int written) {
  const auto* schedule = std::get_if<codegen::MapSchedule>(&kernel.schedule);
  if (schedule == nullptr) return "is not elementwise";
  if (schedule->tile) return "brings what it reads through tiles";
  return why_not_at_one_element(kernel, read, written);
}

// The same of what a row's reductions are added to, say. All threads of a row load it, and one of them stores: so
// nothing else may come of it, neither a reduction nor another result.
std::string why_no_update_of_rows(const codegen::Kernel& kernel, int read, int written) {
  const auto* schedule = std::get_if<codegen::ReduceSchedule>(&kernel.schedule);
  if (schedule == nullptr || persistent_blocks(*schedule) != nullptr) return why_no_update(kernel, read, written);
  if (std::string why = why_not_at_one_element(kernel, read, written); !why.empty()) return why;
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const codegen::Instr& load = kernel.body[i];
    if (load.kind != codegen::InstrKind::load || load.access.operand != read) continue;
    const auto from = static_cast<codegen::InstrId>(i);
    for (std::size_t other = i; other < kernel.body.size(); ++other)
      if (kernel.body[other].kind == codegen::InstrKind::reduce &&
          depends_on(kernel, {static_cast<codegen::InstrId>(other)}, from))
        return "needs the old content for its reductions";
    for (const codegen::Store& store : kernel.stores)
      if (store.access.operand != written && depends_on(kernel, roots_of(store), from))
        return "needs the old content for another result";
  }
  return "";
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
              why_no_update(member, static_cast<int>(in), static_cast<int>(out)).empty())
            inputs[static_cast<std::size_t>(output)].push_back(input);
        }
      first += member.operands.size();
    }
  }
  for (std::vector<int>& each : inputs) std::sort(each.begin(), each.end());
  return inputs;
}

std::string why_not_in_place(const ir::Plan& plan, const LaunchRecord& record, int input, int output) {
  const std::vector<int>& elementwise = record.in_place[static_cast<std::size_t>(output)];
  if (std::binary_search(elementwise.begin(), elementwise.end(), input)) return "";
  const std::map<int, Reads> reads = last_reads(record);
  const auto last = reads.find(input);
  const std::string& name = plan.graph.value(plan.graph.inputs[static_cast<std::size_t>(input)]).name;
  const PointerSource to{PointerSource::Kind::output, output}, from{PointerSource::Kind::input, input};
  for (std::size_t i = 0; i < record.launches.size(); ++i) {
    const PreparedLaunch& launch = record.launches[i];
    const std::string& kernel = launch.built->source.entry;
    std::size_t first = 0;
    for (const codegen::Kernel& member : launch.built->launch.members) {
      const auto begin = launch.pointers.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = begin + static_cast<std::ptrdiff_t>(member.operands.size());
      first += member.operands.size();
      const auto written = std::find(begin, end, to);
      if (written == end || !member.operands[static_cast<std::size_t>(written - begin)].written) continue;
      if (last == reads.end() || last->second.launch < i) return "";
      if (last->second.launch == record.launches.size()) return fmt::format("'{}' is returned as well", name);
      if (last->second.launch > i)
        return fmt::format("'{}' is read by {}, behind {}, which writes its new content", name,
                           record.launches[last->second.launch].built->source.entry, kernel);
      const auto read = std::find(begin, end, from);
      if (read == end || last->second.operands > 1)
        return fmt::format("'{}' is read beside {}, which writes its new content, in the same launch", name, kernel);
      const std::string why =
          why_no_update_of_rows(member, static_cast<int>(read - begin), static_cast<int>(written - begin));
      return why.empty() ? "" : fmt::format("{}, which writes the new content of '{}', {}", kernel, name, why);
    }
  }
  return fmt::format("no kernel writes the new content of '{}': it is another input, or another result", name);
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

[[noreturn]] void refuse(const std::string& written, const std::string& other, bool exactly) {
  throw Error(ErrorKind::argument,
              fmt::format("{} {} {}", written, exactly ? "has the buffer of" : "overlaps with", other), {},
              "give it memory of its own: only an elementwise update of an input that nothing else reads afterwards "
              "may be written in its place");
}

}  // namespace

bool check_overlaps(const ir::Graph& graph, const LaunchRecord& record, std::span<const Buffer> inputs,
                    std::span<const Buffer> outputs) {
  const std::size_t count = outputs.size();
  SmallArray<Extent> written(count + record.updates.size());
  for (std::size_t i = 0; i < count; ++i) written[i] = extent_of(outputs[i], i);
  for (std::size_t i = 0; i < record.updates.size(); ++i)
    written[count + i] = extent_of(inputs[static_cast<std::size_t>(record.updates[i].input)], count + i);
  const auto input_text = [&](std::size_t input) {
    return fmt::format("input '{}'", graph.value(graph.inputs[input]).name);
  };
  const auto updated = [&](const Extent& extent) {  // the input, where it is no output
    return extent.buffer < count ? inputs.size()
                                 : static_cast<std::size_t>(record.updates[extent.buffer - count].input);
  };
  const auto text = [&](const Extent& extent) {
    return extent.buffer < count
               ? fmt::format("output '{}'", graph.outputs_names[ir::own_outputs(graph)[extent.buffer]])
               : fmt::format("{}, which is updated,", input_text(updated(extent)));
  };
  Extent* const first = written.data();
  Extent* const last =
      std::remove_if(first, first + written.size(), [](const Extent& extent) { return extent.begin == extent.end; });
  std::sort(first, last, [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (const Extent* next = first; next != last && next + 1 != last; ++next)
    if (next->end > next[1].begin)
      refuse(text(next[1]), text(*next), next->begin == next[1].begin && next->end == next[1].end);
  bool in_place = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Extent read = extent_of(inputs[i], i);
    if (read.begin == read.end) continue;
    const Extent* output = std::upper_bound(
        first, last, read.begin, [](std::uintptr_t begin, const Extent& extent) { return begin < extent.end; });
    if (output == last || output->begin >= read.end || updated(*output) == i) continue;
    const bool exactly = output->begin == read.begin && output->end == read.end;
    const bool allowed =
        output->buffer < count && std::binary_search(record.in_place[output->buffer].begin(),
                                                     record.in_place[output->buffer].end(), static_cast<int>(i));
    if (!exactly || !allowed) refuse(text(*output), input_text(i), exactly);
    in_place = true;
  }
  return in_place;
}

}  // namespace tenon::runtime
