// Random graphs, grown forward: pick a kind of draw, pick or make operands that it takes, let inference judge.
#include "tests/harness/random_graph/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/op.h"
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Op;
using ir::ValueId;

constexpr std::int64_t kExtents[] = {1, 1, 2, 3, 4, 5, 7, 8, 8, 16, 17, 31, 32, 33, 64, 65, 100, 129};
constexpr std::int64_t kLong[] = {4096, 4097, 5000, 8192, 10000, 16384, 20001, 33000, 65536, 100000};
constexpr std::int64_t kLarge[] = {256, 768, 1000, 1024, 1023, 4096, 5120, 16384, 50257, 65536, 262144, 1000003};
constexpr int kMostDraws = 40, kMostNodes = 60;
constexpr double kFavoured = 25;  // times its weight, what a graph's favourite has

const std::vector<DType> kCommon{DType::f32, DType::f32, DType::f16, DType::bf16, DType::i32, DType::f64, DType::bool_};

}  // namespace

Generator::Generator(std::uint64_t seed, Sizes sizes) : engine_(seed), sizes_(sizes) {}

// ---- shapes ----

void Generator::choose_style(Sizes sizes) {
  style_.large = sizes == Sizes::large;
  style_.ones = chance(0.15);
  style_.zeros = chance(0.06);
  style_.long_row = !style_.large && chance(0.025);
  if (style_.long_row) style_.most_elements = 1 << 17;
  if (style_.large) style_.most_elements = std::int64_t{1} << 27;
  if (!chance(0.55)) return;
  std::vector<int> patterns;
  for (std::size_t i = 0; i < all_draws().size(); ++i)
    if (all_draws()[i].pattern) patterns.push_back(static_cast<int>(i));
  favourite_ = pick(patterns);
}

void Generator::add_symbol(const std::string& name) {
  graph_.symbols[name] = SymbolBounds{};
  bindings_[name] = chance(style_.zeros ? 0.3 : 0.05) ? 0 : extent();
}

std::int64_t Generator::extent() {
  if (style_.ones && chance(0.5)) return 1;
  return kExtents[uniform(0, static_cast<int>(std::size(kExtents)) - 1)];
}

Dim Generator::random_dim() {
  if (!graph_.symbols.empty() && chance(0.35)) {
    const auto symbol = std::next(graph_.symbols.begin(), uniform(0, static_cast<int>(graph_.symbols.size()) - 1));
    return Dim::symbol(symbol->first);
  }
  return chance(style_.zeros ? 0.12 : 0.01) ? Dim(0) : Dim(extent());
}

Shape Generator::random_shape() {
  for (;;) {
    Shape shape;
    for (int rank = uniform(style_.ones ? 1 : 0, style_.ones ? 6 : 4); rank > 0; --rank) shape.push_back(random_dim());
    if (style_.long_row && !shape.empty() && chance(0.7)) {
      shape.resize(std::min<std::size_t>(shape.size(), 3));
      for (Dim& other : shape) other = Dim(uniform(1, 5));
      shape[static_cast<std::size_t>(uniform(0, static_cast<int>(shape.size()) - 1))] =
          Dim(kLong[uniform(0, static_cast<int>(std::size(kLong)) - 1)]);
    }
    if (style_.large && !shape.empty() && chance(0.85)) enlarge(shape);
    if (size(shape) <= style_.most_elements) return shape;
  }
}

std::int64_t Generator::size(const Shape& shape) const {
  std::int64_t count = 1;
  for (const Dim& extent : shape)
    if (__builtin_mul_overflow(count, extent.evaluate(bindings_), &count))
      return std::numeric_limits<std::int64_t>::max();
  return count;
}

// Two axes of a few thousand, or one that is larger.
void Generator::enlarge(Shape& shape) {
  const auto axis = [&] { return static_cast<std::size_t>(uniform(0, static_cast<int>(shape.size()) - 1)); };
  for (int axes = uniform(1, 3); axes > 0; --axes)
    shape[axis()] = Dim(kLarge[uniform(0, static_cast<int>(std::size(kLarge)) - 1)]);
}

Ints Generator::random_axes(int rank) {
  Ints axes;
  for (int axis = 0; axis < rank; ++axis)
    if (chance(0.45)) axes.push_back(chance(0.5) ? axis : axis - rank);
  if (axes.empty() && rank > 0) axes.push_back(uniform(0, rank - 1));
  return axes;
}

Ints Generator::permutation(int rank) {
  Ints perm(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) perm[static_cast<std::size_t>(i)] = i;
  shuffle(perm);
  return perm;
}

// ---- dtypes ----

DType Generator::any_dtype() { return pick(std::vector<DType>(std::begin(kAllDTypes), std::end(kAllDTypes))); }

DType Generator::real_dtype() { return pick(std::vector<DType>{DType::f32, DType::f16, DType::bf16, DType::f64}); }

// ---- values ----

// A symbol must be decided by an input whose extent it is: any input with that extent will do, or the bindings.
ValueId Generator::new_input(DType dtype, const Shape& shape) {
  if (size(shape) > style_.most_elements) throw Error(ErrorKind::resource, "too many elements");
  const ValueId value = ir::append_input(graph_, fmt::format("x{}", graph_.inputs.size()), dtype, shape);
  values_.push_back(value);
  return value;
}

ValueId Generator::random_value() {
  const int count = static_cast<int>(values_.size());
  return values_[static_cast<std::size_t>(std::max(uniform(0, count - 1), uniform(0, count - 1)))];
}

std::optional<ValueId> Generator::value_where(const std::function<bool(ValueId)>& fits) {
  std::vector<ValueId> found;
  for (ValueId value : values_)
    if (fits(value)) found.push_back(value);
  if (found.empty()) return std::nullopt;
  return pick(found);
}

ValueId Generator::real_value(int least_rank) {
  const auto old = value_where([&](ValueId value) {
    return is_real(type(value).dtype) && size_of(type(value).dtype) > 1 && rank(value) >= least_rank;
  });
  if (old && chance(0.7)) return *old;
  Shape own = random_shape();
  while (static_cast<int>(own.size()) < least_rank) own.push_back(Dim(uniform(1, 9)));
  return new_input(real_dtype(), own);
}

ValueId Generator::partner(DType dtype, const Shape& shape) {
  if (chance(0.15)) return literal(dtype);
  const auto same =
      value_where([&](ValueId value) { return type(value).dtype == dtype && type(value).shape == shape; });
  if (same && chance(0.75)) return *same;
  const auto broadcasting = value_where([&](ValueId value) {
    const ir::Type& other = type(value);
    if (other.dtype != dtype || other.shape.size() > shape.size()) return false;
    for (std::size_t i = 0; i < other.shape.size(); ++i) {
      const Dim& own = other.shape[other.shape.size() - 1 - i];
      if (!own.is(1) && !(own == shape[shape.size() - 1 - i])) return false;
    }
    return true;
  });
  if (broadcasting && chance(0.8)) return *broadcasting;
  Shape own = shape;
  if (chance(0.5)) own.erase(own.begin(), own.begin() + uniform(0, static_cast<int>(own.size())));
  for (Dim& extent : own)
    if (chance(style_.ones ? 0.4 : 0.15)) extent = Dim(1);
  return new_input(dtype, own);
}

ValueId Generator::literal(DType dtype) {
  if (dtype == DType::bool_) return ir::append_literal(graph_, chance(0.5), dtype);
  if (!is_real(dtype)) return ir::append_literal(graph_, std::int64_t{uniform(dtype == DType::u8 ? 0 : -3, 7)}, dtype);
  if (chance(0.06) && size_of(dtype) > 1)
    return literal(pick(std::vector<double>{INFINITY, -INFINITY, NAN, 0.0, -0.0, 65504}), dtype);
  return ir::append_literal(graph_, std::ldexp(uniform(-24, 24), -3), dtype);
}

ValueId Generator::literal(double value, DType dtype) { return ir::append_literal(graph_, value, dtype); }

ValueId Generator::operand_for(const ir::OpInfo& op) {
  const auto fits = [&](ValueId value) { return ir::accepts(op.accepts, type(value).dtype); };
  if (const auto value = value_where(fits); value && chance(0.95)) {
    for (int tries = 0; tries < 4; ++tries)
      if (const ValueId recent = random_value(); fits(recent)) return recent;
    return *value;
  }
  std::vector<DType> fitting;
  for (DType dtype : kAllDTypes)
    if (ir::accepts(op.accepts, dtype)) fitting.push_back(dtype);
  return new_input(pick(fitting), random_shape());
}

// ---- growing ----

bool Generator::append(Op op, const std::vector<ValueId>& operands, ir::Attrs attrs) {
  std::vector<ir::Type> types;
  for (ValueId operand : operands) types.push_back(type(operand));
  for (const ir::Type& result : ir::infer(op, types, attrs, graph_.symbols))
    if (size(result.shape) > style_.most_elements) return false;
  for (ValueId result : ir::append(graph_, op, operands, std::move(attrs))) values_.push_back(result);
  return true;
}

ValueId Generator::make(Op op, const std::vector<ValueId>& operands, ir::Attrs attrs) {
  if (!append(op, operands, std::move(attrs))) throw Error(ErrorKind::resource, "too many elements");
  return values_.back();
}

const ir::OpInfo& Generator::random_op(ir::Kind kind) {
  std::vector<const ir::OpInfo*> rows;
  for (const ir::OpInfo& row : ir::all_ops())
    if (row.kind == kind) rows.push_back(&row);
  return *pick(rows);
}

void Generator::grow_one(RandomCase& result) {
  std::vector<double> weights;
  for (const Draw& draw : all_draws()) weights.push_back(draw.weight);
  if (favourite_ >= 0) weights[static_cast<std::size_t>(favourite_)] *= kFavoured;
  const Draw& draw = all_draws()[std::discrete_distribution<std::size_t>(weights.begin(), weights.end())(engine_)];
  try {
    if (draw.grow(*this)) result.draws.push_back(draw.name);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;  // else inference refused the attempt
  }
}

RandomCase Generator::make(std::uint64_t seed) {
  graph_.name = fmt::format("random_{}", seed);
  choose_style(sizes_);
  if (chance(0.4)) add_symbol("rows");
  if (chance(0.15)) add_symbol("cols");
  // Most graphs stay with a few dtypes, so that values meet.
  for (int i = 0; i < 3; ++i) dtypes_.push_back(chance(0.6) ? pick(kCommon) : any_dtype());
  const int inputs = uniform(1, 3);
  for (int i = 0; i < inputs; ++i) new_input(pick(dtypes_), random_shape());
  const int most = style_.long_row ? 5 : kMostDraws;
  const int wanted = chance(0.5) ? uniform(1, std::min(8, most)) : uniform(1, most);
  RandomCase result;
  // A draw may be a pattern of many operators: enough is what is reached by draws or by operators.
  for (int tries = 0; static_cast<int>(result.draws.size()) < wanted && tries < 30 * wanted &&
                      (result.draws.empty() || static_cast<int>(graph_.nodes.size()) < kMostNodes);
       ++tries)
    grow_one(result);
  choose_outputs();
  result.graph = std::move(graph_);
  result.bindings = std::move(bindings_);
  return result;
}

// ---- results ----

void Generator::choose_outputs() {
  const auto users = ir::users_of(graph_);
  std::vector<ValueId> sinks;
  for (ValueId value : values_)
    if (users[static_cast<std::size_t>(value)].empty() && graph_.producer(value).op != Op::input)
      sinks.push_back(value);
  if (sinks.empty()) sinks = {values_.back()};
  shuffle(sinks);
  if (sinks.size() > 4) sinks.resize(4);
  if (chance(0.3)) sinks.push_back(random_value());
  shuffle(returned_);
  if (returned_.size() > 4) returned_.resize(4);
  sinks.insert(sinks.end(), returned_.begin(), returned_.end());
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    const auto name = fmt::format("y{}", i);
    const ValueId state = state_for(sinks[i]);
    if (state >= 0)
      ir::append_update(graph_, sinks[i], name, state);
    else
      ir::append_output(graph_, sinks[i], name);
  }
}

// An input that the result may update, if it likes to.
ValueId Generator::state_for(ValueId result) {
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
    if (graph_.type(graph_.inputs[i]) == graph_.type(result) && chance(0.5) &&
        std::count(graph_.updates.begin(), graph_.updates.end(), static_cast<int>(i)) == 0)
      return graph_.inputs[i];
  return -1;
}

RandomCase random_case(std::uint64_t seed, Sizes sizes) {
  RandomCase result = Generator(seed, sizes).make(seed);
  if (sizes == Sizes::small) result.inputs = random_inputs(result.graph, result.bindings, seed);
  return result;
}

}  // namespace tenon::test
