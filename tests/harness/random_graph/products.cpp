// Draws of one product or attention.
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {

using ir::Attrs;
using ir::Op;
using ir::ValueId;

namespace {

// What comes before an operand of an attention: nothing, or something of the same shape.
ValueId prepared(Generator& g, ValueId x) {
  const ir::Type type = g.type(x);
  switch (g.uniform(0, 11)) {
    case 0: return g.make(Op::mul, {x, g.partner(type.dtype, type.shape)});
    case 1: return g.make(Op::rms_norm, {x});
    case 2: return g.make(Op::softmax, {x});
    case 3: return g.make(Op::flip, {x}, {{"axis", Ints{-2}}});
    case 4: return g.make(Op::silu, {x});
    case 5: return g.make(Op::where, {g.partner(DType::bool_, type.shape), x, g.literal(0, type.dtype)});
    default: return x;
  }
}

}  // namespace

bool draw_matmul(Generator& g) {
  const auto a =
      g.value_where([&](ValueId value) { return is_real(g.type(value).dtype) && !g.type(value).shape.empty(); });
  if (!a) return false;
  const ir::Type type = g.type(*a);
  const Dim k = type.shape.back();
  Shape right{k};
  if (g.chance(0.9)) right.push_back(g.random_dim());
  if (right.size() == 2 && type.shape.size() > 2 && g.chance(0.5))
    right.insert(right.begin(), g.chance(0.5) ? Dim(1) : type.shape[type.shape.size() - 3]);
  const auto old = g.value_where([&](ValueId value) {
    const ir::Type& other = g.type(value);
    return other.dtype == type.dtype && other.shape.size() == 2 && other.shape[0] == k;
  });
  const ValueId b = old && g.chance(0.4) ? *old : g.new_input(type.dtype, right);
  Attrs attrs;
  if (g.chance(0.3)) attrs.set("dtype", g.pick(std::vector<DType>{DType::f32, DType::f16, DType::bf16, type.dtype}));
  if (type.dtype == DType::f32 && g.chance(0.1)) attrs.set("tf32", true);
  return g.append(Op::matmul, {*a, b}, std::move(attrs));
}

bool draw_attention(Generator& g) {
  const DType dtype = g.real_dtype();
  const std::vector<Dim> widths{8, 16, 5, 32, 64, 1};
  const Dim batch(g.uniform(1, 2)), heads(g.uniform(1, 2)), group(g.uniform(1, 2));
  const Dim sq = g.chance(0.15) ? g.random_dim() : Dim(g.uniform(1, 40)),
            sk = g.chance(0.6) ? sq : Dim(g.uniform(1, 50));
  const Dim d = g.chance(0.03) ? Dim(0) : g.pick(widths), dv = g.chance(0.7) ? d : g.pick(widths);
  Attrs attrs;
  if (g.chance(0.5)) attrs.set("causal", true);
  if (g.chance(0.2)) attrs.set("window", std::int64_t{g.uniform(0, 12)});
  if (g.chance(0.15)) attrs.set("scale", g.pick(std::vector<double>{0.125, 1.0, -0.5, 3.0}));
  if (g.chance(0.2)) attrs.set("softcap", 4.0);
  if (g.chance(0.3)) attrs.set("lse", true);
  Shape q{batch, heads * group, sq, d}, k{batch, heads, sk, d}, v{batch, heads, sk, dv};
  if (const int dropped = g.chance(0.2) ? g.uniform(1, 2) : 0; dropped > 0)
    for (Shape* shape : {&q, &k, &v}) shape->erase(shape->begin(), shape->begin() + dropped);
  std::vector<ValueId> operands;
  for (const Shape& shape : {q, k, v}) operands.push_back(prepared(g, g.new_input(dtype, shape)));
  if (g.chance(0.3))
    operands.push_back(g.new_input(dtype, g.chance(0.5) || q.size() < 3 ? Shape{sq, sk} : Shape{heads * group, 1, sk}));
  return g.append(Op::attention, operands, std::move(attrs));
}

}  // namespace tenon::test
