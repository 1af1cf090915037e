// attention: the composition that the planner finds again as one Attend kernel, and the meaning of that kernel.
// Scores, maximum, sum and the product with v are f32 (f64 for f64); positions come from iota, aligned at the end.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/ops/composites.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMaxI32 = std::numeric_limits<std::int32_t>::max();
// Terms of f8 products that tensor cores may add up as they are stored (docs/numerics.md): of a score, and of a result.
constexpr std::int64_t kDepthOfF8 = 256, kAllKeys = 1 << 30;

// The operands, with the heads of q split in (key heads, group) when several query heads share a key head.
struct Heads {
  ValueId q, k, v, bias;  // bias is -1 when absent
  bool grouped;
};

struct Extents {
  Shape batch;  // all axes before the last two of q
  Dim queries, keys, depth;
};

Dim extent(const Shape& shape, int from_end) { return shape[shape.size() - static_cast<std::size_t>(from_end)]; }

Shape with_last(Shape shape, const Dim& rows, const Dim& columns) {
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

void check_operands(const Expansion& e) {
  if (e.operands.size() < 3 || e.operands.size() > 4)
    type_error(fmt::format("takes q, k, v and maybe a bias; {} given", e.operands.size()),
               "write attention(q, k, v, bias)");
  const Type q = e.type(e.operands[0]), k = e.type(e.operands[1]), v = e.type(e.operands[2]);
  const std::string all = fmt::format("q {}, k {}, v {}", str(q), str(k), str(v));
  e.require_real(e.operands[0]);
  if (q.dtype != k.dtype || q.dtype != v.dtype)
    type_error("operands have different dtypes: " + all,
               fmt::format("cast k and v: cast(k, dtype={})", name_of(q.dtype)));
  const std::size_t rank = q.shape.size();
  if (rank < 2 || k.shape.size() != rank || v.shape.size() != rank)
    type_error("operands must have one rank of 2 or more: " + all, "q is (…, heads, queries, depth)");
  if (!(extent(q.shape, 1) == extent(k.shape, 1)))
    type_error("q and k differ in depth, their last axis: " + all,
               "q is (…, heads, queries, depth), k (…, heads, keys, depth)");
  if (!(extent(k.shape, 2) == extent(v.shape, 2)))
    type_error("k and v differ in the number of keys: " + all,
               "k is (…, heads, keys, depth), v (…, heads, keys, depth of v)");
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const bool heads = i + 3 == rank;
    if (!(k.shape[i] == v.shape[i]) || (!heads && !(q.shape[i] == k.shape[i])))
      type_error(fmt::format("{} differ: {}", heads ? "the heads of k and v" : "batch axes", all), "make them equal");
  }
}

void check_attributes(const Attrs& attrs) {
  const std::int64_t window = attrs.get<std::int64_t>("window");
  if (window < -1 || window > kMaxI32)
    type_error(fmt::format("window={} is out of range", window), "use -1 for none, or 0 and more");
  const double softcap = attrs.get<double>("softcap");
  if (!(softcap >= 0) || std::isinf(softcap))
    type_error(fmt::format("softcap={} is out of range", softcap), "use 0 for none, or a positive number");
  if (attrs.has("scale") && !std::isfinite(attrs.get<double>("scale")))
    type_error(fmt::format("scale={} is not finite", attrs.get<double>("scale")), "leave it out for 1/sqrt(depth)");
  if (attrs.has("dtype") && !is_real(attrs.get<DType>("dtype")))
    type_error(fmt::format("dtype={} is not real", name_of(attrs.get<DType>("dtype"))), "cast the result");
}

// The group size when heads of q share heads of k; nothing when they match or when k's one head broadcasts.
std::optional<Dim> group_of(const Shape& q, const Shape& k) {
  if (q.size() < 3 || extent(q, 3) == extent(k, 3) || extent(k, 3).is(1)) return std::nullopt;
  const auto group = extent(q, 3).exact_div(extent(k, 3));
  if (!group || group->is(0))
    type_error(fmt::format("{} query heads do not divide among {} key heads", extent(q, 3).str(), extent(k, 3).str()),
               "the heads of q must be a multiple of those of k");
  return group;
}

// (…, heads, a, b) -> (…, first, second, a, b)
ValueId split_heads(const Expansion& e, ValueId x, const Dim& first, const Dim& second) {
  Shape shape = e.shape(x);
  shape[shape.size() - 3] = second;
  shape.insert(shape.end() - 3, first);
  return e.reshape(x, shape);
}

Heads split_groups(const Expansion& e) {
  const ValueId q = e.operands[0], k = e.operands[1], v = e.operands[2];
  const ValueId bias = e.operands.size() > 3 ? e.operands[3] : -1;
  const auto group = group_of(e.shape(q), e.shape(k));
  if (!group) return {q, k, v, bias, false};
  const Dim heads = extent(e.shape(k), 3);
  ValueId grouped_bias = bias;
  if (bias >= 0 && e.rank(bias) >= 3)
    grouped_bias =
        extent(e.shape(bias), 3).is(1) ? split_heads(e, bias, Dim(1), Dim(1)) : split_heads(e, bias, heads, *group);
  return {split_heads(e, q, heads, *group), split_heads(e, k, heads, Dim(1)), split_heads(e, v, heads, Dim(1)),
          grouped_bias, true};
}

void check_bias(const Expansion& e, const Extents& extents) {
  if (e.operands.size() < 4) return;
  const Type bias = e.type(e.operands[3]);
  const Shape scores = with_last(extents.batch, extents.queries, extents.keys);
  if (!is_real(bias.dtype))
    type_error(fmt::format("the bias must be real, not {}", str(bias)),
               "turn a mask into a bias: where(mask, 0.0, -inf)");
  const std::size_t offset = scores.size() - std::min(scores.size(), bias.shape.size());
  bool fits = bias.shape.size() <= scores.size();
  for (std::size_t i = 0; fits && i < bias.shape.size(); ++i)
    fits = bias.shape[i].is(1) || bias.shape[i] == scores[offset + i];
  if (!fits)
    type_error(fmt::format("bias {} does not broadcast to the scores {}", str(bias), str(scores)),
               "its extents must be 1 or those of the scores");
}

ValueId scaled(const Expansion& e, ValueId scores, const Dim& depth) {
  if (e.attrs.has("scale")) return e(Op::mul, {scores, e.literal(e.attrs.get<double>("scale"), scores)});
  if (depth.is(0)) return scores;  // every score is 0
  if (depth.is_constant())
    return e(Op::mul, {scores, e.literal(1 / std::sqrt(static_cast<double>(depth.constant())), scores)});
  return e(Op::mul, {scores, e(Op::rsqrt, {e.dimension(depth, e.dtype(scores))})});
}

ValueId softcapped(const Expansion& e, ValueId scores) {
  const double cap = e.attrs.get<double>("softcap");
  if (cap == 0) return scores;
  return e(Op::mul, {e(Op::tanh, {e(Op::div, {scores, e.literal(cap, scores)})}), e.literal(cap, scores)});
}

// Key j counts for query i when i + (keys - queries) - window <= j <= i + (keys - queries).
ValueId masked(const Expansion& e, ValueId scores, const Dim& queries, const Dim& keys) {
  const bool causal = e.attrs.get<bool>("causal");
  const std::int64_t window = e.attrs.get<std::int64_t>("window");
  if (!causal && window < 0) return scores;
  const Symbols& symbols = e.symbols();
  const bool narrow = at_least(Dim(kMaxI32 / 4) - queries, 0, symbols) &&
                      at_least(Dim(kMaxI32 / 4) - keys, 0, symbols) && window <= kMaxI32 / 4;
  const DType index = narrow ? DType::i32 : DType::i64;
  const ValueId row = e(Op::iota, {}, {{"shape", std::vector{queries, Dim(1)}}, {"dtype", index}});
  const ValueId column = e(Op::iota, {}, {{"shape", std::vector{keys}}, {"dtype", index}});
  const auto shifted = [&](const Dim& by) { return by.is(0) ? row : e(Op::add, {row, e.dimension(by, index)}); };
  ValueId seen = -1;
  if (causal) seen = e(Op::less_equal, {column, shifted(keys - queries)});
  if (window >= 0) {
    const ValueId near = e(Op::greater_equal, {column, shifted(keys - queries - Dim(window))});
    seen = causal ? e(Op::logical_and, {seen, near}) : near;
  }
  return e(Op::where, {seen, scores, e.literal(-kInfinity, scores)});
}

ValueId scores_of(const Expansion& e, const Heads& heads, const Extents& extents, DType wide) {
  std::vector<std::int64_t> perm;
  for (int axis = 0; axis < e.rank(heads.k); ++axis) perm.push_back(axis);
  std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  Attrs attrs{{"dtype", wide}};
  if (is_f8(e.dtype(heads.q))) attrs.set("block", kDepthOfF8);
  ValueId scores = e(Op::matmul, {heads.q, e(Op::transpose, {heads.k}, {{"perm", perm}})}, attrs);
  scores = softcapped(e, scaled(e, scores, extents.depth));
  if (heads.bias >= 0) scores = e(Op::add, {scores, e.cast(heads.bias, wide)});
  return masked(e, scores, extents.queries, extents.keys);
}

// Weights are at most 1, and f8e4m3 has its bits from 2^-6 to 448: times 2^8 those down to 2^-14 have them.
ValueId mixed_in_f8(const Expansion& e, ValueId weight, ValueId v) {
  constexpr double kScale = 256;
  const ValueId scaled = e(Op::mul, {weight, e.literal(kScale, weight)});
  const ValueId product =
      e(Op::matmul, {e.cast(scaled, DType::f8e4m3), v}, {{"dtype", DType::f32}, {"block", kAllKeys}});
  return e(Op::mul, {product, e.literal(1 / kScale, product)});
}

}  // namespace

std::vector<ValueId> expand_attention(const Expansion& e) {
  check_operands(e);
  check_attributes(e.attrs);
  const Shape q = e.shape(e.operands[0]);
  const Extents extents{Shape(q.begin(), q.end() - 2), extent(q, 2), extent(e.shape(e.operands[1]), 2), extent(q, 1)};
  check_bias(e, extents);
  const Heads heads = split_groups(e);
  const DType dtype = e.dtype(heads.q), wide = compute_type(dtype);
  const DType out = e.attrs.has("dtype") ? e.attrs.get<DType>("dtype") : dtype;

  const ValueId scores = scores_of(e, heads, extents, wide);
  const std::vector<int> keys{e.rank(scores) - 1};
  const ValueId top = e.reduce(Op::max, scores, keys, true);
  const ValueId safe = e(Op::where, {e(Op::equal, {top, e.literal(-kInfinity, top)}), e.literal(0, top), top});
  const ValueId weight = e(Op::exp, {e(Op::sub, {scores, safe})});
  const ValueId sum = e.reduce(Op::sum, weight, keys, true);
  const ValueId product = is_f8(dtype) ? mixed_in_f8(e, weight, heads.v)
                                       : e(Op::matmul, {e.cast(weight, dtype), heads.v}, {{"dtype", wide}});
  const ValueId divisor = e(Op::where, {e(Op::equal, {sum, e.literal(0, sum)}), e.literal(1, sum), sum});
  const ValueId output = e.cast(e(Op::div, {product, divisor}), out);

  const Dim depth = extent(e.shape(e.operands[2]), 1);
  std::vector<ValueId> results{e.reshape(output, with_last(extents.batch, extents.queries, depth))};
  if (!e.attrs.get<bool>("lse")) return results;
  Shape rows = extents.batch;
  rows.push_back(extents.queries);
  results.push_back(e.cast(e.reshape(e(Op::add, {top, e(Op::log, {sum})}), rows), DType::f32));
  return results;
}

}  // namespace tenon::ir
