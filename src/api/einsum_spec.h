// The subscripts of an einsum, read for operands of given ranks.
#pragma once

#include <string>
#include <vector>

#include "tenon/error.h"

namespace tenon::src {

/// A letter, or an axis that an ellipsis stands for: kEllipsis + its place counted from the last one.
using Label = int;
using Labels = std::vector<Label>;
inline constexpr Label kEllipsis = 256;

/// The labels of each operand's axes and of the result's.
struct EinsumSpec {
  std::vector<Labels> operands;
  Labels output;
};

/// Reads "ij,jk->ik" by NumPy's rules: without "->" the result has the ellipsis' axes, then the labels that occur once,
/// in the alphabet's order. `types` are the operands' as errors show them. Error(type) at `place`.
EinsumSpec read_einsum(const std::string& spec, const std::vector<int>& ranks, const std::vector<std::string>& types,
                       const Place& place);

/// "label 'j'", or which axis of the ellipsis.
std::string describe(Label label);

bool contains(const Labels& labels, Label label);

}  // namespace tenon::src
