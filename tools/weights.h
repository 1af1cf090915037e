// --weights of the subcommands that take it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "tenon/weights.h"

namespace tenon::tools {

/// Arrays for the inputs of a graph.
struct GivenWeights {
  Weights arrays;                             ///< of all files
  std::vector<const Weights::Entry*> inputs;  ///< for each input of the graph its array, or null

  /// Those for inputs, by the inputs' names.
  Weights by_input(const ir::Graph& graph) const;
};

/// The option --weights.
void add_weights(CLI::App& command, std::vector<std::string>& files);

/// Reads .safetensors and .npz files; arrays of the latter get the dtypes of the inputs with their names. All null
/// where there are no files. Error(argument) for a file of another name, for an array that two of them have, and where
/// no array is an input's.
GivenWeights read_weights(const std::vector<std::string>& files, const ir::Graph& graph);

}  // namespace tenon::tools
