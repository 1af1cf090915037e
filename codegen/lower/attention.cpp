// From the parts of an attention in the graph to those in the kernel's body. Maps become instructions with the same
// operands, and views none, so that each part is an argument of the one behind it.
#include <algorithm>

#include "codegen/kernel/uses.h"
#include "codegen/lower/body.h"

namespace tenon::codegen {

Attention attention_in(const Kernel& kernel, const ir::Graph& graph, const ir::Attention& found,
                       const std::function<InstrId(ir::ValueId)>& combine) {
  Attention attention;
  attention.mix = combine(graph.node(found.mix).results[0]);
  attention.scores = combine(graph.node(found.scores).results[0]);
  attention.sum = combine(found.sum);
  attention.weight = kernel.instr(attention.mix).args[0];
  for (auto scaling = found.scaling.rbegin(); scaling != found.scaling.rend(); ++scaling) {
    attention.scaling.push_back(attention.weight);
    attention.weight = kernel.instr(attention.weight).args.at(scaling->weights);
  }
  std::reverse(attention.scaling.begin(), attention.scaling.end());
  attention.score = kernel.instr(attention.weight).args.at(0);
  if (found.maximum < 0) return attention;
  attention.maximum = combine(found.maximum);
  const std::vector<InstrId>& difference = kernel.instr(behind_casts(kernel, attention.score)).args;
  attention.score = difference.at(0);
  attention.shift = difference.at(1);
  return attention;
}

}  // namespace tenon::codegen
