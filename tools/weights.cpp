// Files of weights by the ends of their names.
#include "tools/weights.h"

#include <fmt/format.h>

#include "ir/text/json_document.h"
#include "src/driver/bind.h"
#include "tenon/error.h"

namespace tenon::tools {
namespace {

Weights read_file(const std::string& path, const ir::Graph& graph) {
  if (path.ends_with(".safetensors")) return load_safetensors(path);
  if (!path.ends_with(".npz"))
    throw Error(ErrorKind::argument, fmt::format("--weights {}: no .safetensors file and no .npz file", path), {},
                "name it by what it is");
  std::map<std::string, DType> dtypes;
  for (const ir::ValueId input : graph.inputs) dtypes[graph.value(input).name] = graph.type(input).dtype;
  return load_npz(path, dtypes);
}

}  // namespace

Weights GivenWeights::by_input(const ir::Graph& graph) const {
  Weights named;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != nullptr) named.add(graph.value(graph.inputs[i]).name, inputs[i]->view, inputs[i]->memory);
  return named;
}

void add_weights(CLI::App& command, std::vector<std::string>& files) {
  command.add_option("--weights", files,
                     "model.safetensors or model.npz: inputs by their names, given once (repeatable; input h_0_w takes "
                     "h.0.w too)");
}

GivenWeights read_weights(const std::vector<std::string>& files, const ir::Graph& graph) {
  GivenWeights given;
  for (const std::string& file : files)
    for (const auto& [name, view, memory] : read_file(file, graph)) {
      if (given.arrays.contains(name))
        throw Error(ErrorKind::argument,
                    fmt::format("--weights {}: {} is in another file too", file, ir::display(name)), {},
                    "give each array once");
      given.arrays.add(name, view, memory);
    }
  given.inputs.resize(graph.inputs.size());
  if (!files.empty()) given.inputs = src::match_weights(graph, given.arrays, false);
  return given;
}

}  // namespace tenon::tools
