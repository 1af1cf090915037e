// The bodies of tenon/ops.h: each names its op and its attributes; src/api/recorder.h does the rest.
#include "tenon/ops.h"

#include <fmt/format.h>

#include "ir/graph/view.h"
#include "src/api/recorder.h"

namespace tenon {
namespace {

using ir::Attrs;
using ir::Op;
using src::record;
using src::record_literal;
using src::record_one;
using src::record_source;

Attrs with_axes(const Axes& axes, Attrs rest = {}, const char* name = "axis") {
  if (axes.list()) rest.set(name, *axes.list());
  return rest;
}

Attrs with_dtype(std::optional<DType> dtype, Attrs rest = {}) {
  if (dtype) rest.set("dtype", *dtype);
  return rest;
}

std::vector<Operand> operands_of(Op op, const std::vector<Tensor>& tensors, const Location& at) {
  if (tensors.empty())
    throw Error(ErrorKind::argument, fmt::format("{}: no tensor is given", ir::name_of(op)), src::place_of(at),
                "give at least one");
  std::vector<Operand> operands;
  for (const Tensor& tensor : tensors) operands.emplace_back(tensor, at);
  return operands;
}

// The dtype of two numbers that no tensor gives one.
DType usual_dtype(const Scalar& a, const Scalar& b) {
  if (std::holds_alternative<double>(a.value) || std::holds_alternative<double>(b.value)) return DType::f32;
  const bool bools = std::holds_alternative<bool>(a.value) && std::holds_alternative<bool>(b.value);
  return bools ? DType::bool_ : DType::i64;
}

}  // namespace

// The table's maps and reductions.
// clang-format off
#define TENON_OPERANDS_1 const Operand& a
#define TENON_OPERANDS_2 const Operand& a, const Operand& b
#define TENON_OPERANDS_3 const Operand& a, const Operand& b, const Operand& c
#define TENON_LIST_1 {a}
#define TENON_LIST_2 {a, b}
#define TENON_LIST_3 {a, b, c}
#define TENON_DEFINE_Same(name, arity) \
  Tensor name(TENON_OPERANDS_##arity) { return record_one(Op::name, TENON_LIST_##arity); }
#define TENON_DEFINE_Boolean(name, arity) TENON_DEFINE_Same(name, arity)
#define TENON_DEFINE_Special(name, arity)
#define TENON_MAP(name, arity, accepts, yields, ...) TENON_DEFINE_##yields(name, arity)
#define TENON_REDUCE(name, ...)                                          \
  Tensor name(const Operand& x, const Axes& axis, bool keepdims) {       \
    return record_one(Op::name, {x}, with_axes(axis, {{"keepdims", keepdims}})); \
  }
#include "ir/ops.def"
// clang-format on

Tensor where(const Operand& condition, const Operand& b, const Operand& c) {
  if (condition.tensor() && b.scalar() && c.scalar())
    return where(condition, *b.scalar(), *c.scalar(), usual_dtype(*b.scalar(), *c.scalar()));
  return record_one(Op::where, {condition, b, c});
}
Tensor where(const Operand& condition, Scalar b, Scalar c, DType dtype) {
  const Location& at = condition.location();
  const Tensor first = record_literal(Op::where, src::tensor_of("where", condition), b, dtype, at);
  return record_one(Op::where, {condition, {first, at}, Operand(record_literal(Op::where, first, c, dtype, at), at)});
}
Tensor cast(const Operand& x, DType dtype) { return record_one(Op::cast, {x}, {{"dtype", dtype}}); }
Tensor bitcast(const Operand& x, DType dtype) { return record_one(Op::bitcast, {x}, {{"dtype", dtype}}); }

Tensor sum(const Operand& x, const Axes& axis, bool keepdims, DType dtype) {
  return record_one(Op::sum, {x}, with_axes(axis, {{"keepdims", keepdims}, {"dtype", dtype}}));
}
Tensor prod(const Operand& x, const Axes& axis, bool keepdims, DType dtype) {
  return record_one(Op::prod, {x}, with_axes(axis, {{"keepdims", keepdims}, {"dtype", dtype}}));
}
Tensor mean(const Operand& x, const Axes& axis, bool keepdims) {
  return record_one(Op::mean, {x}, with_axes(axis, {{"keepdims", keepdims}}));
}
Tensor var(const Operand& x, const Axes& axis, bool keepdims, std::int64_t ddof) {
  return record_one(Op::var, {x}, with_axes(axis, {{"keepdims", keepdims}, {"ddof", ddof}}));
}
Tensor logsumexp(const Operand& x, const Axes& axis, bool keepdims) {
  return record_one(Op::logsumexp, {x}, with_axes(axis, {{"keepdims", keepdims}}));
}

Tensor reshape(const Operand& x, const Shape& shape) { return record_one(Op::reshape, {x}, {{"shape", shape}}); }
Tensor transpose(const Operand& x, const Axes& perm) {
  return record_one(Op::transpose, {x}, with_axes(perm, {}, "perm"));
}
Tensor broadcast_to(const Operand& x, const Shape& shape) {
  return record_one(Op::broadcast_to, {x}, {{"shape", shape}});
}
Tensor slice(const Operand& x, std::int64_t axis, const Dim& start, const Dim& stop, std::int64_t step) {
  Attrs attrs{{"axis", std::vector{axis}}, {"start", std::vector{start}}, {"stop", std::vector{stop}}};
  if (step != 1) attrs.set("step", std::vector{step});
  return record_one(Op::slice, {x}, std::move(attrs));
}

// A list is written only when some range needs it; an open end is kSliceEnd.
Tensor slice(const Operand& x, const std::vector<Range>& ranges) {
  std::vector<Dim> starts, stops;
  std::vector<std::int64_t> steps;
  bool any_start = false, any_stop = false, any_step = false;
  for (const Range& range : ranges) {
    starts.push_back(range.start.value_or(Dim(range.step > 0 ? std::int64_t{0} : ir::kSliceEnd)));
    stops.push_back(range.stop.value_or(Dim(ir::kSliceEnd)));
    steps.push_back(range.step);
    any_start = any_start || range.start;
    any_stop = any_stop || range.stop;
    any_step = any_step || range.step != 1;
  }
  Attrs attrs;
  if (any_start) attrs.set("start", starts);
  if (any_stop) attrs.set("stop", stops);
  if (any_step) attrs.set("step", steps);
  return record_one(Op::slice, {x}, std::move(attrs));
}

Tensor flip(const Operand& x, const Axes& axis) { return record_one(Op::flip, {x}, with_axes(axis)); }
Tensor pad(const Operand& x, const Shape& low, const Shape& high, Scalar value) {
  return record_one(Op::pad, {x}, {{"low", low}, {"high", high}, {"value", ir::Scalar(value.value)}});
}
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis, Location at) {
  return record_one(Op::concat, operands_of(Op::concat, tensors, at), {{"axis", axis}});
}
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis, Location at) {
  return record_one(Op::stack, operands_of(Op::stack, tensors, at), {{"axis", axis}});
}
Tensor take(const Operand& x, const Operand& indices, std::int64_t axis) {
  return record_one(Op::take, {x, indices}, {{"axis", axis}});
}
std::vector<Tensor> split(const Operand& x, const std::vector<std::int64_t>& sections, std::int64_t axis) {
  return record(Op::split, {x}, {{"sections", sections}, {"axis", axis}});
}
Tensor expand_dims(const Operand& x, const Axes& axis) { return record_one(Op::expand_dims, {x}, with_axes(axis)); }
Tensor squeeze(const Operand& x, const Axes& axis) { return record_one(Op::squeeze, {x}, with_axes(axis)); }

Tensor full(const Graph& graph, const Shape& shape, Scalar value, DType dtype, Location at) {
  return record_source(graph, Op::full, {{"shape", shape}, {"value", ir::Scalar(value.value)}, {"dtype", dtype}}, at);
}
Tensor iota(const Graph& graph, const Shape& shape, std::int64_t axis, DType dtype, Location at) {
  return record_source(graph, Op::iota, {{"shape", shape}, {"axis", axis}, {"dtype", dtype}}, at);
}
Tensor dim_value(const Graph& graph, const Dim& value, DType dtype, Location at) {
  return record_source(graph, Op::dim_value, {{"value", std::vector{value}}, {"dtype", dtype}}, at);
}

Tensor random_bits(const Tensor& seed, const Shape& shape, std::int64_t stream, std::int64_t word, Location at) {
  return record_one(Op::random_bits, {{seed, at}}, {{"shape", shape}, {"stream", stream}, {"word", word}});
}
Tensor random_uniform(const Tensor& seed, const Shape& shape, DType dtype, std::int64_t stream, Location at) {
  return record_one(Op::random_uniform, {{seed, at}}, {{"shape", shape}, {"dtype", dtype}, {"stream", stream}});
}
Tensor random_normal(const Tensor& seed, const Shape& shape, DType dtype, std::int64_t stream, Location at) {
  return record_one(Op::random_normal, {{seed, at}}, {{"shape", shape}, {"dtype", dtype}, {"stream", stream}});
}
Tensor dropout(const Operand& x, const Operand& seed, double p, std::int64_t stream) {
  return record_one(Op::dropout, {x, seed}, {{"p", p}, {"stream", stream}});
}

Tensor matmul(const Operand& a, const Operand& b, std::optional<DType> dtype, bool tf32, std::int64_t block) {
  return record_one(Op::matmul, {a, b}, with_dtype(dtype, {{"tf32", tf32}, {"block", block}}));
}

}  // namespace tenon
