// The interpreter: the meaning of a graph, and the oracle of every other target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "tenon/bytes.h"

namespace tenon::ir {

/// A dense row-major array on the host, in its storage format.
struct HostArray {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  Bytes bytes;
};

/// An array of `dtype` and `shape`, all bytes zero; Error(resource) when its size leaves 64 bits or memory.
HostArray make_array(DType dtype, std::vector<std::int64_t> shape);
/// The same with any bytes, for a caller that writes them all.
HostArray empty_array(DType dtype, std::vector<std::int64_t> shape);
std::int64_t element_count(const HostArray& array);
/// Element i in row-major order, converted exactly (integers and bool through get_integer).
double get_real(const HostArray& array, std::int64_t i);
std::int64_t get_integer(const HostArray& array, std::int64_t i);
/// Stores with the conversion that `cast` means (ops.def).
void set_real(HostArray& array, std::int64_t i, double value);
void set_integer(HostArray& array, std::int64_t i, std::int64_t value);

struct InterpretOptions {
  /// Round every real value to its dtype, rather than only at casts, at graph results and where a rounded value decides
  /// something (comparisons, casts to integers, argmax, bitcast); see docs/numerics.md.
  bool round_every_op = false;
  /// Stochastic arithmetic (Vignes, CESTAC, 1993): when given, each real operation's result is disturbed by a random
  /// relative error of the size its dtype's rounding and the targets' math libraries may make. The spread of a few such
  /// runs bounds what a correct target may return. Seeds 2k and 2k + 1 disturb by opposite amounts.
  std::optional<std::uint64_t> perturb_seed = std::nullopt;
};

/// Runs `graph` on `inputs` (in signature order). Symbols are bound from the input shapes; a symbol that no input
/// decides must be in `bindings`. Returns the outputs in order. Error(argument) when inputs do not fit.
std::vector<HostArray> interpret(const Graph& graph, const std::vector<HostArray>& inputs,
                                 const Bindings& bindings = {}, const InterpretOptions& options = {});

/// Binds the graph's symbols from concrete input shapes, and checks bounds, divisors and consistency.
Bindings bind_symbols(const Graph& graph, const std::vector<std::vector<std::int64_t>>& input_shapes,
                      const Bindings& given = {});

/// Checks that `bindings` gives every symbol a value within its bounds, and nothing else. Error(argument) otherwise.
void check_bindings(const Graph& graph, const Bindings& bindings);

/// How far `actual` is from what the graph means, judged against the interpreter and the spread of perturbed runs.
struct Comparison {
  bool equal = true;  ///< every element within its tolerance
  double max_abs_error = 0;
  double max_rel_error = 0;        ///< relative to max(|expected|, smallest normal)
  double max_tolerance_ratio = 0;  ///< the worst error over its tolerance; > 1 means different
  std::int64_t mismatches = 0;
  std::int64_t undecided = 0;  ///< elements whose perturbed runs disagree on NaN, infinity or a discrete choice, but
                               ///< for a NaN that no run shows
  std::int64_t elements = 0;
  std::int64_t first_mismatch = -1;
};

/// One Comparison for each output. `runs` (best even) perturbed interpretations estimate the tolerance; where one finds
/// a difference, more are asked about the elements that differ, 192 in all, before it is believed. Error(argument) when
/// the results' types do not fit the graph.
std::vector<Comparison> compare_with_interpreter(const Graph& graph, const std::vector<HostArray>& inputs,
                                                 const std::vector<HostArray>& actual, const Bindings& bindings = {},
                                                 int runs = 4);

}  // namespace tenon::ir
