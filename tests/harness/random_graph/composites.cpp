// Draws of one composite, with the operands and attributes that it may have.
#include "ir/ops/op.h"
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Attrs;
using ir::Op;
using ir::ValueId;

struct Call {
  std::vector<ValueId> operands;
  Attrs attrs;
};

// What a composite with one operand x takes beside it.
void add_norm_operands(Generator& g, Op op, const ir::Type& type, Call& call) {
  Shape normalized{type.shape.back()};
  if (type.shape.size() > 1 && g.chance(0.2)) {
    call.attrs.set("axis", Ints{-2, -1});
    normalized.insert(normalized.begin(), type.shape[type.shape.size() - 2]);
  }
  for (int more = g.uniform(0, op == Op::layer_norm ? 2 : 1); more > 0; --more)
    call.operands.push_back(g.new_input(type.dtype, normalized));
  if (g.chance(0.2)) call.attrs.set("eps", g.pick(std::vector<double>{0.0, 1e-6, 0.1}));
}

void add_cross_entropy_operands(Generator& g, const ir::Type& type, Call& call) {
  call.operands.push_back(
      g.new_input(g.chance(0.5) ? DType::i64 : DType::i32, Shape(type.shape.begin(), type.shape.end() - 1)));
  call.attrs.set("reduction", g.pick(std::vector<std::string>{"none", "mean", "sum"}));
}

void add_linear_operands(Generator& g, const ir::Type& type, Call& call) {
  const Dim out = g.random_dim();
  call.operands.push_back(g.new_input(type.dtype, {out, type.shape.back()}));
  if (g.chance(0.5)) call.operands.push_back(g.new_input(type.dtype, {out}));
}

bool takes_axes(Op op) {
  return op == Op::mean || op == Op::var || op == Op::logsumexp || op == Op::softmax || op == Op::log_softmax;
}

bool draw_split(Generator& g, ValueId x) {
  const Shape shape = g.shape(x);
  if (shape.empty()) return false;
  const int axis = g.uniform(0, static_cast<int>(shape.size()) - 1);
  const Dim extent = shape[static_cast<std::size_t>(axis)];
  if (!extent.is_constant() || extent.constant() < 2) return false;
  const int at = g.uniform(1, static_cast<int>(extent.constant()) - 1);
  return g.append(Op::split, {x}, {{"sections", Ints{at, extent.constant() - at}}, {"axis", std::int64_t{axis}}});
}

bool draw_stack(Generator& g, ValueId x) {
  const ir::Type type = g.type(x);
  std::vector<ValueId> pieces{x};
  for (int more = g.uniform(0, 3); more > 0; --more)
    pieces.push_back(*g.value_where([&](ValueId value) { return g.type(value) == type; }));
  return g.append(Op::stack, pieces, {{"axis", std::int64_t{g.uniform(0, g.rank(x))}}});
}

bool draw_random_numbers(Generator& g, Op op) {
  const ValueId seed = g.literal(g.uniform(0, 1 << 20), DType::i64);
  return g.append(op, {seed}, {{"shape", g.random_shape()}, {"dtype", g.real_dtype()}});
}

bool draw_dropout(Generator& g, ValueId x) {
  return g.append(Op::dropout, {x, g.literal(g.uniform(0, 99), DType::i64)},
                  {{"p", g.pick(std::vector<double>{0.5, 0.1, 0.0, 1.0})}});
}

void add_attributes(Generator& g, Op op, int rank, Attrs& attrs) {
  if (op == Op::gelu) attrs.set("approximate", g.pick(std::vector<std::string>{"none", "tanh"}));
  if (op == Op::leaky_relu && g.chance(0.5)) attrs.set("negative_slope", 0.25);
  if (op == Op::elu && g.chance(0.5)) attrs.set("alpha", 2.0);
  if (op == Op::expand_dims) attrs.set("axis", Ints{g.uniform(0, rank)});
  if (takes_axes(op) && rank > 0 && g.chance(0.4)) attrs.set("axis", g.random_axes(rank));
  if ((op == Op::mean || op == Op::var || op == Op::logsumexp) && g.chance(0.4)) attrs.set("keepdims", true);
  if (op == Op::var && g.chance(0.4)) attrs.set("ddof", std::int64_t{1});
}

}  // namespace

bool draw_composite(Generator& g) {
  const ir::OpInfo& op = g.random_op(ir::Kind::composite);
  if (op.op == Op::attention) return draw_attention(g);
  if (op.op == Op::random_uniform || op.op == Op::random_normal) return draw_random_numbers(g, op.op);
  const auto real = g.value_where([&](ValueId value) { return is_real(g.type(value).dtype); });
  const ValueId x = real ? *real : g.new_input(DType::f32, g.random_shape());
  const ir::Type type = g.type(x);  // a new input moves the graph's values
  if (op.op == Op::split) return draw_split(g, x);
  if (op.op == Op::stack) return draw_stack(g, x);
  if (op.op == Op::dropout) return draw_dropout(g, x);
  Call call{{x}, {}};
  add_attributes(g, op.op, static_cast<int>(type.shape.size()), call.attrs);
  if (op.op == Op::swiglu) call.operands.push_back(g.partner(type.dtype, type.shape));
  const bool over_rows =
      op.op == Op::layer_norm || op.op == Op::rms_norm || op.op == Op::cross_entropy || op.op == Op::linear;
  if (over_rows && type.shape.empty()) return false;
  if (op.op == Op::layer_norm || op.op == Op::rms_norm) add_norm_operands(g, op.op, type, call);
  if (op.op == Op::cross_entropy) add_cross_entropy_operands(g, type, call);
  if (op.op == Op::linear) add_linear_operands(g, type, call);
  return g.append(op.op, call.operands, std::move(call.attrs));
}

}  // namespace tenon::test
