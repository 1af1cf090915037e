// A builder for every operator of the table, in NumPy's spelling. Each appends one node to the graph of its operands
// and returns its result. `tenon ops` says what each computes.
//
// All of them: shapes broadcast by NumPy's rules; dtypes must be equal (a number takes its partner's, see Operand);
// what does not fit is Error(type) that names the operator, the operands, the caller's line and the remedy. An empty
// Tensor, tensors of two graphs, or numbers alone are Error(argument).
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "tenon/operand.h"

namespace tenon {

// ---- elementwise ------------------------------------------------------------------------------------------------

// clang-format off
#define TENON_OPERANDS_1 const Operand& a
#define TENON_OPERANDS_2 const Operand& a, const Operand& b
#define TENON_OPERANDS_3 const Operand& a, const Operand& b, const Operand& c
#define TENON_DECLARE_Same(name, arity) Tensor name(TENON_OPERANDS_##arity);
#define TENON_DECLARE_Boolean(name, arity) Tensor name(TENON_OPERANDS_##arity);
#define TENON_DECLARE_Special(name, arity)  // where, cast, bitcast: below

/// Maps, declared from the table; the result has the operands' dtype unless said otherwise.
///   numbers:  add sub mul floor_div mod pow neg abs sign floor ceil round (half to even) trunc minimum maximum clamp
///   reals:    div reciprocal exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh erf
///             (angles in radians) fma
///   to bool:  equal not_equal (any dtype) less less_equal greater greater_equal (numbers) isnan isinf isfinite (reals)
///   bools:    logical_and logical_or logical_xor logical_not
///   bits:     bitwise_and bitwise_or bitwise_xor bitwise_not (integers and bools) left_shift right_shift (integers)
#define TENON_MAP(name, arity, accepts, yields, ...) TENON_DECLARE_##yields(name, arity)
/// Reductions, declared from the table: sum prod max min (numbers), any all (bools), argmax argmin (numbers; the result
/// is i64, an index in row-major order over `axis`). Over `axis` (absent: all), which the result drops, or keeps with
/// extent 1 when `keepdims`.
#define TENON_REDUCE(name, ...) Tensor name(const Operand& x, const Axes& axis = {}, bool keepdims = false);
#include "tenon/ops.def"
#undef TENON_DECLARE_Same
#undef TENON_DECLARE_Boolean
#undef TENON_DECLARE_Special
#undef TENON_OPERANDS_1
#undef TENON_OPERANDS_2
#undef TENON_OPERANDS_3
// clang-format on

/// b where the bool `condition` holds, else c. Of two numbers the result is f32 when one is real, i64 when both are
/// integers and bool for bools; or of `dtype`.
Tensor where(const Operand& condition, const Operand& b, const Operand& c);
Tensor where(const Operand& condition, Scalar b, Scalar c, DType dtype);
/// x converted to `dtype`: reals round to nearest even; to integers they truncate and saturate, NaN is 0; integers
/// wrap.
Tensor cast(const Operand& x, DType dtype);
/// The same bits as another dtype of the same size.
Tensor bitcast(const Operand& x, DType dtype);

/// The operators of C++ for these, elementwise: % is mod, with the sign of the divisor, == and != are equal and
/// not_equal. So a == b is a tensor of bools: tensors are no keys, and std::find does not compile on them.
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator%(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a);
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);
/// Bitwise on integers, logical on bools.
Tensor operator&(const Operand& a, const Operand& b);
Tensor operator|(const Operand& a, const Operand& b);
Tensor operator^(const Operand& a, const Operand& b);
Tensor operator~(const Operand& a);
/// left_shift and right_shift, of integers.
Tensor operator<<(const Operand& a, const Operand& b);
Tensor operator>>(const Operand& a, const Operand& b);
/// logical_and, logical_or and logical_not, of bools only. Nothing is short-circuited: both sides are recorded, and
/// computed where they are needed.
Tensor operator&&(const Operand& a, const Operand& b);
Tensor operator||(const Operand& a, const Operand& b);
Tensor operator!(const Operand& a);

/// `x += b` is `x = x + b`: x stands for the new value from here on. The value that it stood for does not change, nor
/// do other handles of it. The result has the shape that x + b has, which may be larger than x's.
Tensor& operator+=(Tensor& x, const Operand& b);
Tensor& operator-=(Tensor& x, const Operand& b);
Tensor& operator*=(Tensor& x, const Operand& b);
Tensor& operator/=(Tensor& x, const Operand& b);
Tensor& operator%=(Tensor& x, const Operand& b);
Tensor& operator&=(Tensor& x, const Operand& b);
Tensor& operator|=(Tensor& x, const Operand& b);
Tensor& operator^=(Tensor& x, const Operand& b);
Tensor& operator<<=(Tensor& x, const Operand& b);
Tensor& operator>>=(Tensor& x, const Operand& b);

/// x at and below the diagonal k of its last two axes (k > 0: above the main one), and 0 or false elsewhere. Rank 2 or
/// more.
Tensor tril(const Operand& x, std::int64_t k = 0);
/// x at and above the diagonal k, and 0 or false elsewhere.
Tensor triu(const Operand& x, std::int64_t k = 0);
/// 1 where the new last axis, of extent `classes`, has the index, else 0: integers (…) become (…, classes) of `dtype`.
/// An index outside [0, classes) gives a row of zeros.
Tensor one_hot(const Operand& indices, const Dim& classes, DType dtype = DType::f32);

// ---- reductions -------------------------------------------------------------------------------------------------

// clang-format off
/// max and min reduce, as NumPy's: max(x, 0) is the maximum over axis 0. Of two operands they are maximum and minimum.
template <typename T> requires std::floating_point<T> || std::same_as<T, Tensor> || std::same_as<T, Operand>
Tensor max(const Operand& x, const T& y, bool = false) = delete;  // the larger of two is maximum(x, y)
template <typename T> requires std::floating_point<T> || std::same_as<T, Tensor> || std::same_as<T, Operand>
Tensor min(const Operand& x, const T& y, bool = false) = delete;  // the smaller of two is minimum(x, y)
// clang-format on

/// Sum and product in a `dtype` no narrower than the operand's: the elements are widened first.
Tensor sum(const Operand& x, const Axes& axis, bool keepdims, DType dtype);
Tensor prod(const Operand& x, const Axes& axis, bool keepdims, DType dtype);
/// Arithmetic mean of reals.
Tensor mean(const Operand& x, const Axes& axis = {}, bool keepdims = false);
/// Variance of reals by the two-pass formula: squared deviations over n - ddof.
Tensor var(const Operand& x, const Axes& axis = {}, bool keepdims = false, std::int64_t ddof = 0);
/// log(sum(exp(x))) without overflow.
Tensor logsumexp(const Operand& x, const Axes& axis = {}, bool keepdims = false);

// ---- views: no kernel of their own where one can absorb them --------------------------------------------------------

/// The same elements in row-major order as `shape`; one extent may be -1.
Tensor reshape(const Operand& x, const Shape& shape);
/// Result axis i is operand axis perm[i]; absent, the axes are reversed.
Tensor transpose(const Operand& x, const Axes& perm = {});
/// NumPy broadcasting to `shape`.
Tensor broadcast_to(const Operand& x, const Shape& shape);
/// start:stop:step along `axis`.
Tensor slice(const Operand& x, std::int64_t axis, const Dim& start, const Dim& stop, std::int64_t step = 1);
/// One range for each of the leading axes: `slice(x, {{0, 4}, {}, {.step = -1}})` is x[0:4, :, ::-1].
Tensor slice(const Operand& x, const std::vector<Range>& ranges);
/// The order reversed along `axis`; absent: along all.
Tensor flip(const Operand& x, const Axes& axis = {});
/// low[i] elements of `value` before and high[i] after axis i.
Tensor pad(const Operand& x, const Shape& low, const Shape& high, Scalar value = 0);
/// Joined along `axis`: all other extents are equal. At least one tensor.
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis = 0, Location at = Location::current());
/// Joined along a new axis: all shapes are equal. At least one tensor.
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0, Location at = Location::current());
/// Elements of x at integer `indices` along `axis`, whose place in the shape the indices' shape takes: an embedding is
/// take(table, tokens). Negative indices count from the end, the rest are clamped.
Tensor take(const Operand& x, const Operand& indices, std::int64_t axis = 0);
/// Pieces of the extents `sections` along `axis`.
std::vector<Tensor> split(const Operand& x, const std::vector<std::int64_t>& sections, std::int64_t axis = 0);
/// Extents of 1 inserted, so that they stand at `axis` of the result.
Tensor expand_dims(const Operand& x, const Axes& axis);
/// Extents of 1 removed at `axis`; absent: all that are constant 1.
Tensor squeeze(const Operand& x, const Axes& axis = {});

// ---- sources ------------------------------------------------------------------------------------------------------

/// Every element is `value`; Error(type) when `dtype` cannot hold it.
Tensor full(const Graph& graph, const Shape& shape, Scalar value, DType dtype, Location at = Location::current());
/// Each element is its index along `axis`.
Tensor iota(const Graph& graph, const Shape& shape, std::int64_t axis = 0, DType dtype = DType::i64,
            Location at = Location::current());
/// The value of a dimension as a rank-0 number: how a graph computes with a symbolic extent.
Tensor dim_value(const Graph& graph, const Dim& value, DType dtype = DType::i64, Location at = Location::current());

// ---- random: counter-based (Philox 4x32-10), equal on every target; `seed` is i64[]
// ------------------------------------

/// 32 random bits an element as i32. `stream` (from 0) tells apart the uses of one seed. A block of the generator has
/// four words: element i is word i % 4 of block i / 4, or with `word` (0 to 3) that word of block i.
Tensor random_bits(const Tensor& seed, const Shape& shape, std::int64_t stream = 0, std::int64_t word = -1,
                   Location at = Location::current());
/// Uniform on [0, 1), with as many bits as the dtype holds: f16, bf16, f32 or f64.
Tensor random_uniform(const Tensor& seed, const Shape& shape, DType dtype = DType::f32, std::int64_t stream = 0,
                      Location at = Location::current());
/// Standard normal (Box and Muller, 1958); f16, bf16, f32 or f64.
Tensor random_normal(const Tensor& seed, const Shape& shape, DType dtype = DType::f32, std::int64_t stream = 0,
                     Location at = Location::current());
/// x / (1 - p) with probability 1 - p, else 0 (Srivastava et al., 2014).
Tensor dropout(const Operand& x, const Operand& seed, double p = 0.5, std::int64_t stream = 0);

// ---- matrix products ------------------------------------------------------------------------------------------------

/// NumPy's matmul: (…, m, k) x (…, k, n), 1-D operands and batch broadcasting included. Accumulates in f32 (f64 for
/// f64). `dtype` is the result's: absent, the operands', and f32 for f8. `tf32` lets f32 operands be rounded to tf32.
/// Tensor cores add up at most `block` products, in fewer bits than f32 has, before an f32 total gets their sum (0: as
/// many as are fast).
Tensor matmul(const Operand& a, const Operand& b, std::optional<DType> dtype = {}, bool tf32 = false,
              std::int64_t block = 0);
/// NumPy's einsum: `einsum("bij,bjk->bik", {a, b})`. Without "->" the result has the ellipsis' axes and then, in the
/// alphabet's order, the labels that occur once. An ellipsis stands for the axes without a label; a label twice in one
/// operand is its diagonal (constant extents only); extents of 1 broadcast. Labels of one operand alone are summed over
/// first. Two operands then are one matmul of views, with the labels of both in front as a batch, more are taken from
/// left to right, each product in the operands' dtype; without a label to sum over, and for integers, they are mul and
/// sum. `dtype` and `tf32` as in matmul. Error(type) for extents that differ names the label and the operands.
Tensor einsum(const std::string& spec, const std::vector<Tensor>& operands, std::optional<DType> dtype = {},
              bool tf32 = false, Location at = Location::current());
/// a[i] * b[j] for all elements in row-major order: (m) x (n) is (m, n); what has other ranks is flattened first.
Tensor outer(const Operand& a, const Operand& b);
/// x @ weight.T + bias: x (…, in), weight (out, in), bias (out).
Tensor linear(const Operand& x, const Tensor& weight, const std::optional<Tensor>& bias = {},
              std::optional<DType> dtype = {});

// ---- activations and normalisations: real tensors, computed in f32 or wider
// --------------------------------------------

/// maximum(x, 0).
Tensor relu(const Operand& x);
/// x where x >= 0, else negative_slope * x.
Tensor leaky_relu(const Operand& x, double negative_slope = 0.01);
/// x where x > 0, else alpha * expm1(x).
Tensor elu(const Operand& x, double alpha = 1.0);
/// x/2 (1 + erf(x/sqrt 2)); approximate = "tanh": x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel,
/// 2016).
Tensor gelu(const Operand& x, const std::string& approximate = "none");
/// x * sigmoid(x).
Tensor silu(const Operand& x);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Operand& x);
/// log(1 + exp(x)), without overflow.
Tensor softplus(const Operand& x);
/// x * tanh(softplus(x)).
Tensor mish(const Operand& x);
/// silu(gate) * up.
Tensor swiglu(const Operand& gate, const Operand& up);
/// exp(x - max) / sum over `axis`; a row of -inf gives 0.
Tensor softmax(const Operand& x, const Axes& axis = -1);
/// x - logsumexp(x) over `axis`.
Tensor log_softmax(const Operand& x, const Axes& axis = -1);
/// (x - mean) / sqrt(var + eps) * weight + bias over `axis` (Ba et al., 2016). weight and bias have the extents at
/// `axis`; there is no bias without a weight.
Tensor layer_norm(const Operand& x, const std::optional<Tensor>& weight = {}, const std::optional<Tensor>& bias = {},
                  const Axes& axis = -1, double eps = 1e-5);
/// x / sqrt(mean(x*x) + eps) * weight over `axis` (Zhang and Sennrich, 2019).
Tensor rms_norm(const Operand& x, const std::optional<Tensor>& weight = {}, const Axes& axis = -1, double eps = 1e-6);
/// logsumexp(x) - x[target] for logits (…, classes) and integer targets (…). reduction: "none", "mean" or "sum".
Tensor cross_entropy(const Operand& logits, const Operand& targets, const std::string& reduction = "none");

// ---- attention
// --------------------------------------------------------------------------------------------------------

struct AttentionOptions {
  bool causal = false;            ///< query i sees keys up to i + keys - queries
  std::int64_t window = -1;       ///< and none more than `window` before that; -1: no limit
  std::optional<double> scale{};  ///< of the scores; absent: 1/sqrt(depth)
  double softcap = 0;             ///< c > 0: scores become c * tanh(score / c)
  std::optional<Tensor> bias{};   ///< added to the scores; broadcasts to (…, heads, queries, keys)
  std::optional<DType> dtype{};   ///< of the output; absent: the operands'
};

struct AttentionResult {
  Tensor output;
  Tensor lse;  ///< log-sum-exp of each row of scores, f32 (…, heads, queries); -inf for a row that sees nothing
};

/// softmax(scale q k' + bias, masked) v. q (…, heads, queries, depth), k (…, key heads, keys, depth), v (…, key heads,
/// keys, value depth); the heads of q are a multiple of those of k and share them in order. Rows that see nothing
/// give 0.
Tensor attention(const Operand& q, const Operand& k, const Operand& v, const AttentionOptions& options = {});
/// The same with the log-sum-exp of each row, which a backward pass needs.
AttentionResult attention_with_lse(const Operand& q, const Operand& k, const Operand& v,
                                   const AttentionOptions& options = {});

}  // namespace tenon
