// Attention that is wider than its kernel holds well. Tensor cores take queries, keys and values of 16 bits up to some
// depth and width; beyond, and for other dtypes, plain lanes multiply, and a block mixes some columns of the values at
// once: for more of them it computes its scores again. Kernels apart, which have the scores in memory, may then take
// less time: cut_into_groups predicts both.
#pragma once

#include <string>

#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {

/// How a kernel multiplies, at the typical binding.
struct AttentionWork {
  bool tensor_cores = true;
  double score_times = 1;  ///< that it computes each score
  double row_times = 1;    ///< rows that it computes, for each that there is
};
AttentionWork attention_work(const Context& context, NodeId scores, NodeId mix);

/// Why the attention may be better apart, a clause: its kernel computes scores several times, or has no tensor cores
/// for what is too wide for them. Empty where it holds the attention well, and where not all sizes are known: scores in
/// memory take the more of it the longer a sequence is.
std::string why_apart(const Context& context, NodeId scores, NodeId mix);

/// How many times as fast kernels apart have to be, as predicted, for what they cost besides: memory for the scores.
/// Twice as many where the attention masks its scores, for one kernel does not compute what is hidden (half of it,
/// where queries see no later keys). `nodes` are the attention's.
double apart_gain(const Context& context, const std::vector<NodeId>& nodes);

}  // namespace tenon::ir::fusion
