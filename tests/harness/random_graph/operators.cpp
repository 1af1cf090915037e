// Draws of one map, reduction or source.
#include "ir/ops/op.h"
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Attrs;
using ir::Op;
using ir::ValueId;

bool draw_where(Generator& g) {
  const ValueId chosen = g.random_value();
  const ir::Type type = g.type(chosen);  // a new input moves the graph's values
  const ValueId condition = g.partner(DType::bool_, type.shape);
  return g.append(Op::where, {condition, chosen, g.partner(type.dtype, type.shape)});
}

// A dtype of as many bytes, so that a bitcast takes it.
DType of_the_same_size(Generator& g, DType dtype) {
  std::vector<DType> fitting;
  for (DType other : kAllDTypes)
    if (size_of(other) == size_of(dtype) && other != DType::bool_) fitting.push_back(other);
  return g.pick(fitting);
}

}  // namespace

bool draw_map(Generator& g) {
  const ir::OpInfo& op = g.random_op(ir::Kind::map);
  if (op.op == Op::where) return draw_where(g);
  const ValueId first = g.operand_for(op);
  const ir::Type type = g.type(first);
  std::vector<ValueId> operands{first};
  while (static_cast<int>(operands.size()) < op.operands) operands.push_back(g.partner(type.dtype, type.shape));
  if (op.operands == 2 && g.chance(0.3)) std::swap(operands[0], operands[1]);
  Attrs attrs;
  if (op.op == Op::cast) attrs.set("dtype", g.chance(0.7) ? g.usual_dtype() : g.any_dtype());
  if (op.op == Op::bitcast) attrs.set("dtype", of_the_same_size(g, type.dtype));
  return g.append(op.op, operands, std::move(attrs));
}

bool draw_power(Generator& g) {
  const ValueId x = g.real_value(0);
  const std::vector<double> exponents{2, 3, 0.5, -1, -2, 0, 1, -0.5, 1.5, 4, 8, -3, 0.25, 100};
  return g.append(Op::pow, {x, g.literal(g.pick(exponents), g.type(x).dtype)});
}

bool draw_reduce(Generator& g) {
  const ir::OpInfo& op = g.random_op(ir::Kind::reduce);
  const ValueId operand = g.operand_for(op);
  const ir::Type type = g.type(operand);
  Attrs attrs;
  const int rank = static_cast<int>(type.shape.size());
  if (rank > 0 && g.chance(0.85)) attrs.set("axis", g.chance(0.6) ? Ints{-1} : g.random_axes(rank));
  if (g.chance(0.5)) attrs.set("keepdims", true);
  if ((op.op == Op::sum || op.op == Op::prod) && g.chance(0.15))
    attrs.set("dtype", is_real(type.dtype) ? g.pick(std::vector<DType>{DType::f32, DType::f64}) : DType::i64);
  return g.append(op.op, {operand}, std::move(attrs));
}

bool draw_source(Generator& g) {
  const Shape shape = g.random_shape();
  if (g.chance(0.2) && !g.graph().symbols.empty()) {
    const Dim symbol = Dim::symbol(g.graph().symbols.begin()->first);
    const std::vector<Dim> values{symbol, symbol * Dim(2) + Dim(1), symbol.floor_div(3)};
    return g.append(Op::dim_value, {},
                    {{"value", std::vector{g.pick(values)}},
                     {"dtype", g.pick(std::vector<DType>{DType::i64, DType::i32, DType::f32})}});
  }
  if (shape.empty()) return false;
  if (g.chance(0.15))
    return g.append(Op::full, {}, {{"shape", shape}, {"value", ir::Scalar(1.5)}, {"dtype", g.real_dtype()}});
  const std::vector<DType> numbers{DType::i32, DType::i64, DType::f32, DType::i16};
  if (g.chance(0.6))
    return g.append(Op::iota, {},
                    {{"shape", shape},
                     {"axis", std::int64_t{g.uniform(0, static_cast<int>(shape.size()) - 1)}},
                     {"dtype", g.pick(numbers)}});
  const ValueId seed = g.literal(g.uniform(0, 1 << 20), DType::i64);
  return g.append(
      Op::random_bits, {seed},
      {{"shape", shape}, {"stream", std::int64_t{g.uniform(0, 3)}}, {"word", std::int64_t{g.uniform(-1, 3)}}});
}

}  // namespace tenon::test
