// What Contract and Attend kernels should give: sums in f64 at sampled points, and checks that every element is written
// and nothing behind the outputs is.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tests/codegen/tensor_kernels.h"

namespace tenon::test {

/// One operand: its elements as numbers.
struct Array {
  std::vector<double> values;
  double at(std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
};

using Bytes = std::vector<std::byte>;
/// Runs a kernel on its operands, in order, each with some bytes behind it.
using Launch =
    std::function<void(const codegen::Source& source, std::vector<Bytes>& operands, const Bindings& bindings)>;

/// Runs `source` of `kernel` on random inputs: inputs and outputs in the order of the operands.
std::vector<Array> run(const Kernel& kernel, const codegen::Source& source, const Bindings& bindings,
                       const Launch& launch);

/// `points`: so many rows of each batch are looked at, and of each so many columns.
void check_matmul(const MatmulCase& c, const Bindings& at, const std::vector<Array>& arrays, int points = 40);
void check_attention(const AttentionCase& c, const Bindings& at, const Kernel& kernel,
                     const std::vector<Array>& arrays);

}  // namespace tenon::test
