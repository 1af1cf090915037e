// See updates.h.
#include "runtime/updates.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/arena.h"
#include "runtime/overlap.h"

namespace tenon::runtime {
namespace {

std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
}

class Placer {
 public:
  Placer(const ir::Plan& plan, LaunchRecord& record) : graph_(plan.graph), record_(record) {
    std::int64_t own = 0;
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i)
      places_.push_back(graph_.updates[i] < 0 ? PointerSource{PointerSource::Kind::output, own++}
                                              : placed(plan, static_cast<int>(i)));
  }

  void run() {
    for (PreparedLaunch& launch : record_.launches)
      for (PointerSource& pointer : launch.pointers) place(pointer);
    for (PreparedCopy& copy : record_.copies) place(copy.from), place(copy.to);
    record_.copies.insert(record_.copies.end(), late_.begin(), late_.end());
    keep_own(record_.output_shapes);
    keep_own(record_.in_place);
    for (std::vector<int>& inputs : record_.in_place)  // whose content is the update's
      std::erase_if(inputs,
                    [&](int input) { return std::count(graph_.updates.begin(), graph_.updates.end(), input) > 0; });
  }

 private:
  PointerSource placed(const ir::Plan& plan, int output) {
    PlacedUpdate update;
    update.output = output, update.input = graph_.updates[static_cast<std::size_t>(output)];
    update.bytes = bytes_of(graph_.type(graph_.outputs[static_cast<std::size_t>(output)]).dtype,
                            record_.output_shapes[static_cast<std::size_t>(output)]);
    update.copied = why_not_in_place(plan, record_, update.input, output);
    const PointerSource input{PointerSource::Kind::input, update.input};
    if (update.bytes == 0) update.copied.clear();
    record_.updates.push_back(update);
    if (update.copied.empty()) return input;
    const PointerSource place{PointerSource::Kind::arena, record_.arena_bytes};
    record_.arena_bytes += (update.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    late_.push_back({place, input, update.bytes});
    return place;
  }

  void place(PointerSource& pointer) const {
    if (pointer.kind == PointerSource::Kind::output) pointer = places_[static_cast<std::size_t>(pointer.at)];
  }

  template <typename T>
  void keep_own(std::vector<T>& all) const {
    std::vector<T> own;
    for (const std::size_t output : ir::own_outputs(graph_)) own.push_back(std::move(all[output]));
    all = std::move(own);
  }

  const ir::Graph& graph_;
  LaunchRecord& record_;
  std::vector<PointerSource> places_;  // of the graph's outputs
  std::vector<PreparedCopy> late_;     // behind those of the record, which may read the inputs
};

}  // namespace

void place_updates(const ir::Plan& plan, LaunchRecord& record) { Placer(plan, record).run(); }

AllOutputs::AllOutputs(const Backend& backend, const ir::Graph& graph, const LaunchRecord& record,
                       std::span<const Buffer> own)
    : backend_(backend) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    if (graph.updates[i] < 0) {
      buffers_.push_back(own[next++]);
      continue;
    }
    const DType dtype = graph.type(graph.outputs[i]).dtype;
    memory_.push_back(nullptr);
    memory_.back() = backend.allocate(static_cast<std::size_t>(bytes_of(dtype, record.output_shapes[i])));
    buffers_.push_back({memory_.back(), dtype, record.output_shapes[i]});
  }
}

AllOutputs::~AllOutputs() {
  backend_.drain();
  for (void* memory : memory_) backend_.release(memory);
}

}  // namespace tenon::runtime
