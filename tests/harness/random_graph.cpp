// Random graphs, grown forward: pick an op, pick or make operands that it takes, let inference judge.
#include "tests/harness/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "ir/build.h"
#include "ir/op.h"

namespace tenon::test {
namespace {

using ir::Attrs;
using ir::Graph;
using ir::Op;
using ir::OpInfo;
using ir::ValueId;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kMostElements = 1 << 13;
constexpr std::int64_t kExtents[] = {1, 1, 2, 3, 4, 5, 7, 8, 8, 16, 17, 31, 32, 33, 64, 65, 100, 129};

class Generator {
 public:
  Generator(std::uint64_t seed, int max_nodes) : engine_(seed), max_nodes_(max_nodes) {}

  RandomCase make(std::uint64_t seed) {
    graph_.name = fmt::format("random_{}", seed);
    if (chance(0.4)) add_symbol("rows");
    if (chance(0.15)) add_symbol("cols");
    // Most graphs stay with a few dtypes, so that values meet.
    for (int i = 0; i < 3; ++i)
      dtypes_.push_back(chance(0.6) ? pick(kCommon)
                                    : pick(std::vector<DType>(std::begin(kAllDTypes), std::end(kAllDTypes))));
    const int inputs = uniform(1, 3);
    for (int i = 0; i < inputs; ++i) new_input(pick(dtypes_), random_shape());
    const int wanted = chance(0.5) ? uniform(1, 8) : uniform(1, max_nodes_);
    int grown = 0;
    for (int tries = 0; grown < wanted && tries < 30 * wanted; ++tries) grown += grow();
    choose_outputs();
    return {std::move(graph_), std::move(bindings_), {}};
  }

 private:
  // ---- randomness ----

  int uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool chance(double probability) { return std::uniform_real_distribution<double>(0, 1)(engine_) < probability; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(uniform(0, static_cast<int>(items.size()) - 1))];
  }

  // ---- shapes ----

  void add_symbol(const std::string& name) {
    graph_.symbols[name] = SymbolBounds{};
    bindings_[name] = chance(0.05) ? 0 : extent();
  }

  std::int64_t extent() { return kExtents[uniform(0, static_cast<int>(std::size(kExtents)) - 1)]; }

  Dim random_dim() {
    if (!graph_.symbols.empty() && chance(0.35)) {
      const auto symbol = std::next(graph_.symbols.begin(), uniform(0, static_cast<int>(graph_.symbols.size()) - 1));
      return Dim::symbol(symbol->first);
    }
    return chance(0.02) ? Dim(0) : Dim(extent());
  }

  Shape random_shape() {
    for (;;) {
      Shape shape;
      for (int rank = uniform(0, 4); rank > 0; --rank) shape.push_back(random_dim());
      if (size(shape) <= kMostElements) return shape;
    }
  }

  std::int64_t size(const Shape& shape) const { return element_count(shape).evaluate(bindings_); }

  // ---- values ----

  ValueId new_input(DType dtype, const Shape& shape) {
    // A symbol must be decided by an input whose extent it is: any input with that extent will do, or the bindings.
    const ValueId value = ir::append_input(graph_, fmt::format("x{}", graph_.inputs.size()), dtype, shape);
    values_.push_back(value);
    return value;
  }

  ValueId random_value() {  // later values more often, so that graphs grow deep
    const int count = static_cast<int>(values_.size());
    return values_[static_cast<std::size_t>(std::max(uniform(0, count - 1), uniform(0, count - 1)))];
  }

  std::optional<ValueId> value_where(const std::function<bool(const ir::Type&)>& fits) {
    std::vector<ValueId> found;
    for (ValueId value : values_)
      if (fits(graph_.type(value))) found.push_back(value);
    if (found.empty()) return std::nullopt;
    return pick(found);
  }

  // A value of `dtype` whose shape broadcasts with `shape`: an old one, a literal, or a new input.
  ValueId partner(DType dtype, const Shape& shape) {
    if (chance(0.15)) return literal(dtype);
    const auto same = value_where([&](const ir::Type& type) { return type.dtype == dtype && type.shape == shape; });
    if (same && chance(0.75)) return *same;
    const auto broadcasting = value_where([&](const ir::Type& type) {
      if (type.dtype != dtype || type.shape.size() > shape.size()) return false;
      for (std::size_t i = 0; i < type.shape.size(); ++i) {
        const Dim& own = type.shape[type.shape.size() - 1 - i];
        if (!own.is(1) && !(own == shape[shape.size() - 1 - i])) return false;
      }
      return true;
    });
    if (broadcasting && chance(0.8)) return *broadcasting;
    Shape own = shape;
    if (chance(0.5)) own.erase(own.begin(), own.begin() + uniform(0, static_cast<int>(own.size())));
    for (Dim& extent : own)
      if (chance(0.15)) extent = Dim(1);
    return new_input(dtype, own);
  }

  ValueId literal(DType dtype) {
    if (dtype == DType::bool_) return ir::append_literal(graph_, chance(0.5), dtype);
    if (!is_real(dtype))
      return ir::append_literal(graph_, std::int64_t{uniform(dtype == DType::u8 ? 0 : -3, 7)}, dtype);
    return ir::append_literal(graph_, std::ldexp(uniform(-24, 24), -3), dtype);
  }

  ValueId operand_for(const OpInfo& op) {
    if (const auto value = value_where([&](const ir::Type& type) { return ir::accepts(op.accepts, type.dtype); });
        value && chance(0.95)) {
      for (int tries = 0; tries < 4; ++tries)
        if (const ValueId recent = random_value(); ir::accepts(op.accepts, graph_.type(recent).dtype)) return recent;
      return *value;
    }
    std::vector<DType> fitting;
    for (DType dtype : kAllDTypes)
      if (ir::accepts(op.accepts, dtype)) fitting.push_back(dtype);
    return new_input(pick(fitting), random_shape());
  }

  // ---- growing ----

  bool grow() {
    const double roll = std::uniform_real_distribution<double>(0, 1)(engine_);
    try {
      if (roll < 0.5) return map();
      if (roll < 0.65) return reduce();
      if (roll < 0.82) return view();
      if (roll < 0.88) return contract();
      if (roll < 0.91) return source();
      return composite();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      return false;  // inference refused the attempt
    }
  }

  bool append(Op op, const std::vector<ValueId>& operands, Attrs attrs = {}) {
    std::vector<ir::Type> types;
    for (ValueId operand : operands) types.push_back(graph_.type(operand));
    for (const ir::Type& result : ir::infer(op, types, attrs, graph_.symbols))
      if (size(result.shape) > kMostElements) return false;
    for (ValueId result : ir::append(graph_, op, operands, std::move(attrs))) values_.push_back(result);
    return true;
  }

  const OpInfo& random_op(ir::Kind kind) {
    std::vector<const OpInfo*> rows;
    for (const OpInfo& row : ir::all_ops())
      if (row.kind == kind) rows.push_back(&row);
    return *pick(rows);
  }

  bool map() {
    const OpInfo& op = random_op(ir::Kind::map);
    if (op.op == Op::where) {
      const ValueId chosen = random_value();
      const ir::Type type = graph_.type(chosen);
      const ValueId condition = partner(DType::bool_, type.shape);
      return append(Op::where, {condition, chosen, partner(type.dtype, type.shape)});
    }
    const ValueId first = operand_for(op);
    const ir::Type type = graph_.type(first);
    std::vector<ValueId> operands{first};
    while (static_cast<int>(operands.size()) < op.operands) operands.push_back(partner(type.dtype, type.shape));
    if (op.operands == 2 && chance(0.3)) std::swap(operands[0], operands[1]);
    Attrs attrs;
    if (op.op == Op::cast || op.op == Op::bitcast)
      attrs.set("dtype",
                pick(chance(0.7) ? dtypes_ : std::vector<DType>(std::begin(kAllDTypes), std::end(kAllDTypes))));
    return append(op.op, operands, std::move(attrs));
  }

  Ints random_axes(int rank) {
    Ints axes;
    for (int axis = 0; axis < rank; ++axis)
      if (chance(0.45)) axes.push_back(chance(0.5) ? axis : axis - rank);
    if (axes.empty() && rank > 0) axes.push_back(uniform(0, rank - 1));
    return axes;
  }

  bool reduce() {
    const OpInfo& op = random_op(ir::Kind::reduce);
    const ValueId operand = operand_for(op);
    Attrs attrs;
    const int rank = static_cast<int>(graph_.type(operand).shape.size());
    if (rank > 0 && chance(0.85)) attrs.set("axis", chance(0.6) ? Ints{-1} : random_axes(rank));
    if (chance(0.5)) attrs.set("keepdims", true);
    return append(op.op, {operand}, std::move(attrs));
  }

  bool source() {
    const Shape shape = random_shape();
    if (shape.empty()) return false;
    const std::vector<DType> integers{DType::i32, DType::i64, DType::f32, DType::i16};
    if (chance(0.6))
      return append(Op::iota, {},
                    {{"shape", shape},
                     {"axis", std::int64_t{uniform(0, static_cast<int>(shape.size()) - 1)}},
                     {"dtype", pick(integers)}});
    const ValueId seed = ir::append_literal(graph_, std::int64_t{uniform(0, 1 << 20)}, DType::i64);
    return append(Op::random_bits, {seed},
                  {{"shape", shape}, {"stream", std::int64_t{uniform(0, 3)}}, {"word", std::int64_t{uniform(-1, 3)}}});
  }

  bool view() {
    const ValueId x = random_value();
    const Shape shape = graph_.type(x).shape;
    const int rank = static_cast<int>(shape.size());
    switch (uniform(0, 8)) {
      case 0: return append(Op::transpose, {x}, {{"perm", permutation(rank)}});
      case 1: return append(Op::reshape, {x}, {{"shape", regrouped(shape)}});
      case 2: return append(Op::broadcast_to, {x}, {{"shape", broadcast_of(shape)}});
      case 3: return slice(x);
      case 4: return rank > 0 && append(Op::flip, {x}, {{"axis", random_axes(rank)}});
      case 5: return pad(x);
      case 6: return concat(x);
      case 7: return take(x);
      default: return append(Op::expand_dims, {x}, {{"axis", Ints{uniform(0, rank)}}});
    }
  }

  Ints permutation(int rank) {
    Ints perm(static_cast<std::size_t>(rank));
    for (int i = 0; i < rank; ++i) perm[static_cast<std::size_t>(i)] = i;
    std::shuffle(perm.begin(), perm.end(), engine_);
    return perm;
  }

  // Some neighbours merged, some constant extents split.
  Shape regrouped(const Shape& shape) {
    Shape result;
    for (const Dim& extent : shape) {
      if (!result.empty() && chance(0.4)) {
        result.back() = result.back() * extent;
      } else {
        result.push_back(extent);
      }
    }
    Shape split;
    for (const Dim& extent : result) {
      std::int64_t divisor = extent.is_constant() && extent.constant() > 1 && chance(0.6) ? uniform(2, 8) : 0;
      if (divisor > 0 && extent.constant() % divisor == 0) {
        split.push_back(extent.constant() / divisor);
        split.push_back(divisor);
      } else {
        split.push_back(extent);
      }
    }
    if (chance(0.2)) split.insert(split.begin() + uniform(0, static_cast<int>(split.size())), Dim(1));
    return split;
  }

  Shape broadcast_of(Shape shape) {
    for (Dim& extent : shape)
      if (extent.is(1) && chance(0.7)) extent = random_dim();
    if (chance(0.5)) shape.insert(shape.begin(), random_dim());
    return shape;
  }

  bool slice(ValueId x) {
    const Shape shape = graph_.type(x).shape;
    Ints axes, steps;
    std::vector<Dim> starts, stops;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (!shape[i].is_constant() || !chance(0.6)) continue;
      const int n = static_cast<int>(shape[i].constant());
      axes.push_back(static_cast<std::int64_t>(i));
      steps.push_back(chance(0.6) ? 1 : chance(0.5) ? uniform(1, 3) : uniform(-3, -1));
      starts.push_back(uniform(-n - 1, n + 1));
      stops.push_back(uniform(-n - 1, n + 1));
      if (chance(0.7)) {
        starts.back() = steps.back() > 0 ? uniform(0, n / 2) : n - 1;
        stops.back() = steps.back() > 0 ? uniform(n / 2, n) : -n - 1;
      }
    }
    return !axes.empty() &&
           append(Op::slice, {x}, {{"axis", axes}, {"start", starts}, {"stop", stops}, {"step", steps}});
  }

  bool pad(ValueId x) {
    std::vector<Dim> low, high;
    for (std::size_t i = 0; i < graph_.type(x).shape.size(); ++i) {
      low.push_back(chance(0.5) ? 0 : uniform(0, 3));
      high.push_back(chance(0.5) ? 0 : uniform(0, 3));
    }
    return append(Op::pad, {x}, {{"low", low}, {"high", high}, {"value", ir::Scalar(std::int64_t{uniform(0, 1)})}});
  }

  bool concat(ValueId x) {
    const ir::Type type = graph_.type(x);
    if (type.shape.empty()) return false;
    const int axis = uniform(0, static_cast<int>(type.shape.size()) - 1);
    std::vector<ValueId> pieces{x};
    for (int more = uniform(0, 2); more > 0; --more) {
      const auto fits = value_where([&](const ir::Type& other) {
        if (other.dtype != type.dtype || other.shape.size() != type.shape.size()) return false;
        for (std::size_t i = 0; i < other.shape.size(); ++i)
          if (static_cast<int>(i) != axis && !(other.shape[i] == type.shape[i])) return false;
        return true;
      });
      pieces.push_back(fits ? *fits : x);
    }
    std::shuffle(pieces.begin(), pieces.end(), engine_);
    return append(Op::concat, pieces, {{"axis", std::int64_t{axis}}});
  }

  bool take(ValueId x) {
    const Shape shape = graph_.type(x).shape;  // a new input moves the graph's values
    if (shape.empty()) return false;
    const DType dtype = chance(0.5) ? DType::i32 : DType::i64;
    const auto old =
        value_where([&](const ir::Type& type) { return is_integer(type.dtype) && type.shape.size() <= 2; });
    const ValueId index = old && chance(0.5) ? *old : new_input(dtype, chance(0.3) ? Shape{} : Shape{random_dim()});
    return append(Op::take, {x, index}, {{"axis", std::int64_t{uniform(0, static_cast<int>(shape.size()) - 1)}}});
  }

  bool contract() {
    const auto real = [](const ir::Type& type) { return is_real(type.dtype) && !type.shape.empty(); };
    const auto a = value_where(real);
    if (!a) return false;
    const ir::Type type = graph_.type(*a);
    const Dim k = type.shape.back();
    Shape right{k};
    if (chance(0.9)) right.push_back(random_dim());
    if (right.size() == 2 && type.shape.size() > 2 && chance(0.5))
      right.insert(right.begin(), chance(0.5) ? Dim(1) : type.shape[type.shape.size() - 3]);
    const auto old = value_where([&](const ir::Type& other) {
      return other.dtype == type.dtype && other.shape.size() == 2 && other.shape[0] == k;
    });
    const ValueId b = old && chance(0.4) ? *old : new_input(type.dtype, right);
    Attrs attrs;
    if (chance(0.3)) attrs.set("dtype", pick(std::vector<DType>{DType::f32, DType::f16, DType::bf16, type.dtype}));
    return append(Op::matmul, {*a, b}, std::move(attrs));
  }

  bool composite() {
    const OpInfo& op = random_op(ir::Kind::composite);
    if (op.op == Op::attention) return attention();
    const auto real = value_where([](const ir::Type& type) { return is_real(type.dtype); });
    const ValueId x = real ? *real : new_input(DType::f32, random_shape());
    const ir::Type type = graph_.type(x);
    std::vector<ValueId> operands{x};
    Attrs attrs;
    if (op.op == Op::swiglu) operands.push_back(partner(type.dtype, type.shape));
    if (op.op == Op::layer_norm || op.op == Op::rms_norm) {
      if (type.shape.empty()) return false;
      for (int more = uniform(0, op.op == Op::layer_norm ? 2 : 1); more > 0; --more)
        operands.push_back(new_input(type.dtype, {type.shape.back()}));
    }
    if (op.op == Op::cross_entropy) {
      if (type.shape.empty()) return false;
      operands.push_back(new_input(DType::i64, Shape(type.shape.begin(), type.shape.end() - 1)));
      attrs.set("reduction", pick(std::vector<std::string>{"none", "mean", "sum"}));
    }
    if (op.op == Op::linear) {
      if (type.shape.empty()) return false;
      operands.push_back(new_input(type.dtype, {random_dim(), type.shape.back()}));
    }
    if (op.op == Op::gelu) attrs.set("approximate", pick(std::vector<std::string>{"none", "tanh"}));
    if (op.op == Op::random_uniform || op.op == Op::random_normal) {
      operands = {ir::append_literal(graph_, std::int64_t{uniform(0, 1 << 20)}, DType::i64)};
      attrs = {{"shape", random_shape()}, {"dtype", pick(kReals)}};
    }
    if (op.op == Op::dropout) operands.push_back(ir::append_literal(graph_, std::int64_t{uniform(0, 99)}, DType::i64));
    if (op.op == Op::expand_dims) attrs.set("axis", Ints{0});
    if (op.op == Op::split) {
      if (type.shape.empty() || !type.shape[0].is_constant() || type.shape[0].constant() < 2) return false;
      const int at = uniform(1, static_cast<int>(type.shape[0].constant()) - 1);
      attrs.set("sections", Ints{at, type.shape[0].constant() - at});
    }
    if ((op.op == Op::mean || op.op == Op::var || op.op == Op::logsumexp || op.op == Op::softmax ||
         op.op == Op::log_softmax) &&
        !type.shape.empty() && chance(0.4))
      attrs.set("axis", random_axes(static_cast<int>(type.shape.size())));
    return append(op.op, operands, std::move(attrs));
  }

  bool attention() {
    const DType dtype = pick(kReals);
    const std::vector<Dim> widths{8, 16, 5, 32, 64, 1};
    const Dim batch(uniform(1, 2)), heads(uniform(1, 2)), group(uniform(1, 2));
    const Dim sq(uniform(1, 40)), sk = chance(0.6) ? sq : Dim(uniform(1, 50)), d = pick(widths),
                                  dv = chance(0.7) ? d : pick(widths);
    Attrs attrs;
    if (chance(0.5)) attrs.set("causal", true);
    if (chance(0.2)) attrs.set("window", std::int64_t{uniform(0, 12)});
    if (chance(0.2)) attrs.set("softcap", 4.0);
    if (chance(0.3)) attrs.set("lse", true);
    std::vector<ValueId> operands{new_input(dtype, {batch, heads * group, sq, d}),
                                  new_input(dtype, {batch, heads, sk, d}), new_input(dtype, {batch, heads, sk, dv})};
    if (chance(0.3)) operands.push_back(new_input(dtype, chance(0.5) ? Shape{sq, sk} : Shape{heads * group, 1, sk}));
    return append(Op::attention, operands, std::move(attrs));
  }

  // ---- results ----

  void choose_outputs() {
    const auto users = ir::users_of(graph_);
    std::vector<ValueId> sinks;
    for (ValueId value : values_)
      if (users[static_cast<std::size_t>(value)].empty() && graph_.producer(value).op != Op::input)
        sinks.push_back(value);
    if (sinks.empty()) sinks = {values_.back()};
    std::shuffle(sinks.begin(), sinks.end(), engine_);
    if (sinks.size() > 4) sinks.resize(4);
    if (chance(0.3)) sinks.push_back(random_value());
    for (std::size_t i = 0; i < sinks.size(); ++i) ir::append_output(graph_, sinks[i], fmt::format("y{}", i));
  }

  const std::vector<DType> kCommon{DType::f32, DType::f32, DType::f16,  DType::bf16,
                                   DType::i32, DType::f64, DType::bool_};
  const std::vector<DType> kReals{DType::f32, DType::f16, DType::bf16, DType::f64};
  std::mt19937_64 engine_;
  int max_nodes_;
  Graph graph_;
  Bindings bindings_;
  std::vector<DType> dtypes_;
  std::vector<ValueId> values_;
};

double random_real(std::mt19937_64& engine, bool special) {
  std::uniform_real_distribution<double> unit(0, 1);
  if (special && unit(engine) < 0.03) {
    constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e-30, 65504.0, 1e-7, 0.5};
    return kSpecial[std::uniform_int_distribution<std::size_t>(0, std::size(kSpecial) - 1)(engine)];
  }
  return std::normal_distribution<double>(0, 1)(engine);
}

}  // namespace

RandomCase random_case(std::uint64_t seed, int max_nodes) {
  RandomCase result = Generator(seed, max_nodes).make(seed);
  result.inputs = random_inputs(result.graph, result.bindings, seed);
  return result;
}

std::vector<ir::HostArray> random_inputs(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed) {
  std::mt19937_64 engine(seed ^ 0x9e3779b97f4a7c15ULL);
  const bool special = std::uniform_int_distribution<int>(0, 9)(engine) == 0;
  std::vector<ir::HostArray> arrays;
  for (ir::ValueId input : graph.inputs) {
    const ir::Type& type = graph.type(input);
    std::vector<std::int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(extent.evaluate(bindings));
    ir::HostArray array = ir::make_array(type.dtype, shape);
    for (std::int64_t i = 0; i < ir::element_count(array); ++i) {
      if (is_real(type.dtype)) {
        ir::set_real(array, i, random_real(engine, special));
      } else {
        const int low = type.dtype == DType::u8 || type.dtype == DType::bool_ ? 0 : -9;
        ir::set_integer(array, i, std::uniform_int_distribution<int>(low, type.dtype == DType::bool_ ? 1 : 12)(engine));
      }
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace tenon::test
