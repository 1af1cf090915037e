// Scopes and the evaluation of instructions and index expressions in them.
#include "codegen/emit/llvm/scope.h"

#include <algorithm>

#include "codegen/analysis/interior.h"
#include "codegen/analysis/rounds.h"
#include "codegen/emit/llvm/ops/ops.h"
#include "codegen/kernel/uses.h"
#include "ir/graph/check.h"

namespace tenon::codegen::simd {

Scope root_scope(Unit& unit) {
  Scope scope;
  scope.home = unit.b.GetInsertBlock();
  scope.axes.resize(unit.kernel.axes.size());
  return scope;
}

Scope child_of(Scope& parent, Unit& unit) {
  Scope scope;
  scope.parent = &parent;
  scope.home = unit.b.GetInsertBlock();
  scope.bound = parent.bound;
  scope.axes = parent.axes;
  scope.vector_axis = parent.vector_axis;
  scope.lanes = parent.lanes;
  scope.mask = parent.mask;
  scope.inside = parent.inside;
  return scope;
}

void bind(Scope& scope, int axis, Value* value) {
  scope.axes[static_cast<std::size_t>(axis)] = value;
  scope.bound |= std::uint64_t{1} << axis;
}

void bind_lanes(Scope& scope, int axis, Value* base, int lanes, Value* mask) {
  bind(scope, axis, base);
  scope.vector_axis = axis;
  scope.lanes = lanes;
  scope.mask = mask;
}

void loop_in(Unit& unit, Scope& scope, Value* begin, Value* end, Value* step, const std::string& name,
             const std::function<void(Scope&, Value*)>& body) {
  emit_loop(unit, begin, end, step, name, [&](Value* i) {
    Scope inside = child_of(scope, unit);
    body(inside, i);
  });
  scope.home = unit.b.GetInsertBlock();
}

void if_in(Unit& unit, Scope& scope, Value* condition, const std::function<void(Scope&)>& body) {
  emit_if(unit, condition, [&] {
    Scope inside = child_of(scope, unit);
    body(inside);
  });
  scope.home = unit.b.GetInsertBlock();
}

namespace {

// The builder moved to the end of `scope` for as long as this lives.
class At {
 public:
  At(Unit& unit, const Scope& scope) : guard_(unit.b) {
    if (llvm::Instruction* end = scope.home->getTerminator()) {
      unit.b.SetInsertPoint(end);
    } else {
      unit.b.SetInsertPoint(scope.home);
    }
  }

 private:
  llvm::IRBuilderBase::InsertPointGuard guard_;
};

// The outermost scope in which a value that varies along `axes` can be computed.
Scope& outermost(Scope& scope, std::uint64_t axes, bool results) {
  Scope* at = &scope;
  while (at->parent && (axes & ~at->parent->bound) == 0 && !(results && at->holds_results)) at = at->parent;
  return *at;
}

bool varies_in_lanes(const Scope& scope, std::uint64_t axes) {
  return scope.vector_axis >= 0 && scope.lanes > 1 && ((axes >> scope.vector_axis) & 1) != 0;
}

Value* find_value(Scope& scope, InstrId id) {
  for (Scope* at = &scope; at; at = at->parent)
    if (const auto found = at->values.find(id); found != at->values.end()) return found->second;
  return nullptr;
}

Value* emit_literal(Unit& unit, const Instr& instr) {
  Type* type = compute_type_of(unit, instr.dtype);
  const double real = std::visit([](auto v) { return static_cast<double>(v); }, instr.literal);
  if (is_real(instr.dtype)) return emit_round(unit, llvm::ConstantFP::get(type, real), instr.dtype);
  const std::int64_t integer = std::visit([](auto v) { return static_cast<std::int64_t>(v); }, instr.literal);
  if (instr.dtype == DType::bool_) return unit.b.getInt1(integer != 0);
  return llvm::ConstantInt::getSigned(type, integer);
}

Value* emit_composed(Unit& unit, Composed composed, Value* x) {
  switch (composed) {
    case Composed::one_plus: return emit_one_plus_tanh(unit, x);
    case Composed::tanh_of_softplus: return emit_tanh_of_softplus(unit, x);
    case Composed::of_share: return emit_log1p_of_share(unit, x);
    case Composed::none:
    case Composed::logistic: break;
  }
  TENON_CHECK(false, "no function of a CPU");
  return nullptr;
}

Value* emit_instr(Unit& unit, Scope& scope, InstrId id) {
  const Instr& instr = unit.kernel.instr(id);
  auto& b = unit.b;
  std::vector<Value*> args;
  for (const InstrId arg : instr.args) args.push_back(evaluate(unit, scope, arg));
  switch (instr.kind) {
    case InstrKind::literal: return emit_literal(unit, instr);
    case InstrKind::load: return emit_load(unit, scope, instr.access);
    case InstrKind::index: return emit_cast(unit, evaluate_index(unit, scope, instr.index), DType::i64, instr.dtype);
    case InstrKind::inside: {
      Value* holds = evaluate_guards(unit, scope, instr.guards);
      return holds ? holds : b.getTrue();
    }
    case InstrKind::map: {
      std::vector<DType> dtypes;
      int lanes = 1;
      for (const InstrId arg : instr.args) dtypes.push_back(unit.kernel.instr(arg).dtype);
      for (const Value* arg : args) lanes = std::max(lanes, lanes_of(arg));
      for (Value*& arg : args) arg = splat(unit, arg, lanes);
      if (instr.composed != Composed::none) return emit_composed(unit, instr.composed, args[0]);
      if (instr.rounded) return b.CreateFMul(args[0], args[1]);  // without the flag that lets it be contracted
      if (is_weight(unit.kernel, id)) return emit_exp_at_most_one(unit, args[0]);
      if (has_fma(unit.target) && is_share(unit.kernel, id)) return emit_share(unit, args[0], args[1]);
      return emit_map_op(unit, instr.op, dtypes, instr.dtype, args);
    }
    case InstrKind::round: return emit_round(unit, args[0], instr.dtype);
    case InstrKind::random: {
      Value* index = evaluate_index(unit, scope, instr.index);
      const int lanes = std::max(lanes_of(index), lanes_of(args[0]));
      return emit_philox(unit, splat(unit, args[0], lanes), splat(unit, index, lanes), instr.stream, instr.word);
    }
    case InstrKind::reduce:
    case InstrKind::contract: break;
  }
  TENON_CHECK(false, "a result of " + unit.kernel.name + " is used outside its loops");
  return nullptr;
}

// Whether a selection takes its first value because the points lie in the interior. What varies less may stand further
// out, where that is not known yet.
bool is_chosen_inside(const Unit& unit, const Scope& scope, const Instr& instr) {
  if (!scope.inside || instr.kind != InstrKind::map || instr.op != ir::Op::where) return false;
  const Instr& condition = unit.kernel.instr(instr.args[0]);
  return condition.kind == InstrKind::inside &&
         std::all_of(condition.guards.begin(), condition.guards.end(), is_of_one_axis);
}

}  // namespace

Value* evaluate(Unit& unit, Scope& scope, InstrId id) {
  if (Value* value = find_value(scope, id)) return value;
  const Instr& instr = unit.kernel.instr(id);
  if (is_chosen_inside(unit, scope, instr)) return evaluate(unit, scope, instr.args[1]);
  Scope& home = outermost(scope, instr.depends, unit.uses_results[static_cast<std::size_t>(id)]);
  const At at(unit, home);
  Value* value = emit_instr(unit, home, id);
  return home.values[id] = value;
}

Value* evaluate_lanes(Unit& unit, Scope& scope, InstrId id) {
  return splat(unit, evaluate(unit, scope, id), scope.lanes);
}

// ---- indices ------------------------------------------------------------------------------------------------------

std::uint64_t dependence(const Kernel& kernel, const Index& index) {
  std::uint64_t axes = 0;
  for (const IndexTerm& term : index.terms()) {
    switch (term.atom->kind) {
      case IndexAtom::Kind::axis: axes |= std::uint64_t{1} << term.atom->id; break;
      case IndexAtom::Kind::value: axes |= kernel.instr(term.atom->id).depends; break;
      case IndexAtom::Kind::floor_div:
      case IndexAtom::Kind::mod: axes |= dependence(kernel, term.atom->operand); break;
    }
  }
  return axes;
}

namespace {

bool index_uses_results(const Unit& unit, const Index& index) {
  const std::vector<int> values = index.values();
  return std::any_of(values.begin(), values.end(),
                     [&](int id) { return unit.uses_results[static_cast<std::size_t>(id)]; });
}

bool fits_31_bits(const Unit& unit, const Index& index) {
  const SymbolBounds range = bounds(index, unit.kernel.context());
  return range.min >= 0 && range.max <= 0x7fffffff;
}

// floor(a / d) or a mod d, where no extent is 0; else no matter what, for nothing lies there. Vectors of numbers that
// fit are divided in 32 bits, which the hardware can multiply high.
Value* emit_division(Unit& unit, const IndexAtom& atom, Value* a, Value* d) {
  auto& b = unit.b;
  const bool quotient = atom.kind == IndexAtom::Kind::floor_div;
  const bool natural = bounds(atom.operand, unit.kernel.context()).min >= 0;
  if (atom.divisor.bounds(unit.kernel.symbols).min < 1) d = maximum_of(unit, d, constant(unit, 1));  // a CPU traps
  d = splat(unit, d, lanes_of(a));
  if (natural && lanes_of(a) > 1 && fits_31_bits(unit, atom.operand) &&
      atom.divisor.bounds(unit.kernel.symbols).max <= 0x7fffffff) {
    Type* narrow = vector_of(b.getInt32Ty(), lanes_of(a));
    Value* x = b.CreateTrunc(a, narrow);
    Value* y = b.CreateTrunc(d, narrow);
    return b.CreateZExt(quotient ? b.CreateUDiv(x, y) : b.CreateURem(x, y), a->getType());
  }
  if (natural) return quotient ? b.CreateUDiv(a, d) : b.CreateURem(a, d);
  Value* rest = b.CreateSRem(a, d);
  Value* negative = b.CreateICmpSLT(rest, constant_like(rest, 0));
  if (!quotient) return b.CreateSelect(negative, b.CreateAdd(rest, d), rest);
  return b.CreateAdd(b.CreateSDiv(a, d), b.CreateSExt(negative, a->getType()));
}

Value* emit_atom(Unit& unit, Scope& scope, const IndexAtom& atom) {
  switch (atom.kind) {
    case IndexAtom::Kind::axis: {
      Value* base = scope.axes[static_cast<std::size_t>(atom.id)];
      if (atom.id != scope.vector_axis || scope.lanes == 1) return base;
      return unit.b.CreateAdd(splat(unit, base, scope.lanes), hidden_lane_numbers(unit, base->getType(), scope.lanes));
    }
    case IndexAtom::Kind::value: {
      const DType dtype = unit.kernel.instr(atom.id).dtype;
      return emit_cast(unit, evaluate(unit, scope, atom.id), dtype, DType::i64);
    }
    case IndexAtom::Kind::floor_div:
    case IndexAtom::Kind::mod:
      return emit_division(unit, atom, evaluate_index(unit, scope, atom.operand), emit_dim(unit, atom.divisor));
  }
  return nullptr;
}

Value* add(Unit& unit, Value* a, Value* b) {
  const int lanes = std::max(lanes_of(a), lanes_of(b));
  return unit.b.CreateAdd(splat(unit, a, lanes), splat(unit, b, lanes));
}

Value* emit_term(Unit& unit, Scope& scope, const IndexTerm& term) {
  Value* atom = emit_atom(unit, scope, *term.atom);
  if (term.coefficient.is(1)) return atom;
  return unit.b.CreateMul(atom, splat(unit, emit_dim(unit, term.coefficient), lanes_of(atom)));
}

// Emits an index whose terms all belong in `home`, apart from those that belong further out: they are summed there.
Value* emit_sum(Unit& unit, Scope& home, const Index& index) {
  std::vector<IndexTerm> outer, inner;
  for (const IndexTerm& term : index.terms()) {
    const Index alone = Index::sum(0, {term});
    Scope& at = outermost(home, dependence(unit.kernel, alone), index_uses_results(unit, alone));
    (&at == &home ? inner : outer).push_back(term);
  }
  Value* sum = nullptr;
  if (!outer.empty() || inner.empty() || !index.constant().is(0)) {
    const Index rest = Index::sum(index.constant(), outer);
    sum = outer.empty() ? emit_dim(unit, index.constant()) : evaluate_index(unit, home, rest);
  }
  for (const IndexTerm& term : inner) {
    Value* value = emit_term(unit, home, term);
    sum = sum ? add(unit, sum, value) : value;
  }
  return sum;
}

// `index` with the vector axis standing still at lane 0.
Value* evaluate_base(Unit& unit, Scope& scope, const Index& index) {
  Scope still = child_of(scope, unit);
  still.home = scope.home;
  still.lanes = 1;
  std::vector<IndexTerm> moving, fixed;
  for (const IndexTerm& term : index.terms()) {
    const bool moves = term.atom->kind == IndexAtom::Kind::axis && term.atom->id == scope.vector_axis;
    (moves ? moving : fixed).push_back(term);
  }
  Value* sum = evaluate_index(unit, scope, Index::sum(index.constant(), fixed));
  for (const IndexTerm& term : moving) sum = add(unit, sum, emit_term(unit, still, term));
  return sum;
}

}  // namespace

Value* evaluate_index(Unit& unit, Scope& scope, const Index& index) {
  if (index.is_constant()) return emit_dim(unit, index.constant());
  Scope& home = outermost(scope, dependence(unit.kernel, index), index_uses_results(unit, index));
  const std::string text = index.str();
  for (Scope* at = &home; at; at = at->parent)
    if (const auto found = at->indices.find(text); found != at->indices.end()) return found->second;
  const At at(unit, home);
  Value* value = emit_sum(unit, home, index);
  return home.indices[text] = value;
}

std::optional<Affine> evaluate_affine(Unit& unit, Scope& scope, const Index& index) {
  if (!varies_in_lanes(scope, dependence(unit.kernel, index))) return Affine{evaluate_index(unit, scope, index), 0};
  const auto step = index.coefficient(scope.vector_axis);
  if (!step) return std::nullopt;
  for (const int value : index.values())
    if (varies_in_lanes(scope, unit.kernel.instr(value).depends)) return std::nullopt;
  return Affine{evaluate_base(unit, scope, index), *step};
}

Value* evaluate_guards(Unit& unit, Scope& scope, const std::vector<Guard>& guards) {
  auto& b = unit.b;
  Value* all = nullptr;
  for (const Guard& guard : guards) {
    if (scope.inside && is_of_one_axis(guard)) continue;
    Value* index = evaluate_index(unit, scope, guard.index);
    Value* bound = splat(unit, emit_dim(unit, guard.bound), lanes_of(index));
    Value* inside = b.CreateICmpULT(index, bound, "inside");
    if (all) {
      const int lanes = std::max(lanes_of(all), lanes_of(inside));
      all = b.CreateAnd(splat(unit, all, lanes), splat(unit, inside, lanes));
    } else {
      all = inside;
    }
  }
  return all;
}

}  // namespace tenon::codegen::simd
