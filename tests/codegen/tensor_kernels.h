// Contract and Attend kernels by their parameters, as lowering makes them, for tests of their emission.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/source.h"
#include "codegen/target/target.h"
#include "tests/codegen/kernel_builder.h"

namespace tenon::test {

struct MatmulCase {
  std::string name;
  DType a = DType::f16, b = DType::f16, out = DType::f16;
  Dim batch = 1, m = 512, n = 512, k = 512;
  bool a_transposed = false, b_transposed = false;  ///< stored [k, m], [n, k]
  bool a_flipped = false;                           ///< its last row first; not with a_transposed
  bool epilogue = false;                            ///< add a bias, multiply by tanh, add a residual
  bool prologue = false;                            ///< the positive part of a
  bool tf32 = false;
  Symbols symbols = {};
  std::vector<Bindings> bindings = {{}};  ///< to run it at
};

Kernel matmul_kernel(const MatmulCase& c, const codegen::Target& target);
std::vector<MatmulCase> matmul_cases();

/// window: 128 keys up to the query's own. loaded: a bool of (queries, keys). lengths: keys up to 30 + 60 x of an i32 x
/// of each head. documents: those with the number of the query's, which 150
/// positions share, or in every other document those with the same bit of an i32 each; causal besides. prefixes: keys
/// up to 80 x of an i32 x of each query, and 50 more for each 100 queries.
enum class Mask : std::uint8_t { none, causal, window, loaded, lengths, documents, prefixes };

struct AttentionCase {
  std::string name;
  DType dtype = DType::f16;
  Dim heads = 2, queries = 512, keys = 512, depth = 64, width = 64;
  std::int64_t group = 1;  ///< heads of q for each head of k and v
  Mask mask = Mask::none;
  bool by_hand = false;  ///< softmax without a guard against rows that are all -inf, divided before the second product
  bool alibi = false, softcap = false, lse = false;
  bool keys_transposed = false;  ///< k stored [heads, depth, keys]
  bool bias = false;  ///< in memory, as the operands are, for each head, query and key; instead of a loaded mask
  std::optional<DType> bias_dtype = {};  ///< of another type than they are
  bool dropout = false;  ///< weights times 1.25 where a bool of (queries, keys) holds, else 0; instead of a mask
  std::optional<std::int64_t> draws_from = {};  ///< that bool is drawn at random for each of (heads, queries, keys),
                                                ///< and so is what is added to each score; the first is this element
  static constexpr std::int64_t kSeed = 0x123456789abcdef, kStreamOfScores = 3,
                                kStreamOfWeights = 5 + (std::int64_t{1} << 40);
  static constexpr std::int64_t kLeastKept = -1000000000;  ///< of the 32 bits that are drawn for a weight
  Symbols symbols = {};
  std::vector<Bindings> bindings = {{}};  ///< to run it at
};

Kernel attention_kernel(const AttentionCase& c, const codegen::Target& target);
std::vector<AttentionCase> attention_cases();

}  // namespace tenon::test
