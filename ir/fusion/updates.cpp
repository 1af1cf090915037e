// See updates.h.
#include "ir/fusion/updates.h"

namespace tenon::ir::fusion {

std::vector<std::vector<std::size_t>> readers_of_updated(const Graph& graph, const std::vector<Group>& groups) {
  std::vector<int> maker(graph.values.size(), -1), writer(graph.values.size(), -1);  // of an input: of its new content
  for (std::size_t group = 0; group < groups.size(); ++group)
    for (const ValueId output : groups[group].outputs)
      maker[static_cast<std::size_t>(output)] = static_cast<int>(group);
  for (std::size_t output = 0; output < graph.outputs.size(); ++output)
    if (const int input = graph.updates[output]; input >= 0)
      writer[static_cast<std::size_t>(graph.inputs[static_cast<std::size_t>(input)])] =
          maker[static_cast<std::size_t>(graph.outputs[output])];
  std::vector<std::vector<std::size_t>> readers(groups.size());
  for (std::size_t group = 0; group < groups.size(); ++group)
    for (const ValueId input : groups[group].inputs)
      if (const int by = writer[static_cast<std::size_t>(input)]; by >= 0 && by != static_cast<int>(group))
        readers[static_cast<std::size_t>(by)].push_back(group);
  return readers;
}

}  // namespace tenon::ir::fusion
