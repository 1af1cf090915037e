// Inputs that an executable is given once.
#pragma once

#include <memory>

#include "ir/graph/graph.h"
#include "runtime/executable.h"
#include "tenon/compile.h"
#include "tenon/weights.h"

namespace tenon::src {

/// For each input of `graph` the array of that name: its own, or one whose name becomes the input's when '_' stands for
/// every character that names in graphs cannot have. Null: there is none. Error(argument) where two would do, where the
/// array is of another dtype or shape, where no name is an input's, and with `strict` where one is not.
std::vector<const Weights::Entry*> match_weights(const ir::Graph& graph, const Weights& weights, bool strict);

/// Binds inputs of the executable made of `graph`, whose last inputs are those that it has bound.
runtime::Binder binder(const ir::Graph& graph, const std::shared_ptr<const runtime::Backend>& backend,
                       const Options& options);

}  // namespace tenon::src
