// One spelling for each thing. Every node is offered to the rules of its kind once its operands are canonical; a rule
// gives what stands for it, or nothing. Only exact rules: no bit of any result changes.
#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/ops/infer.h"
#include "ir/passes/canonical.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

bool is_narrow(DType dtype) { return is_real(dtype) && size_of(dtype) < 4; }

// Attributes that say what is so anyway are left out.
Attrs without_defaults(Op op, const Attrs& attrs) {
  const Attrs defaults = with_defaults(op, {});
  Attrs kept;
  for (const auto& [name, value] : attrs.items()) {
    const AttrValue* usual = defaults.find(name);
    if (usual == nullptr || !(*usual == value)) kept.set(name, value);
  }
  return kept;
}

void spell_source(Draft& draft) {
  if (draft.op == Op::full) draft.attrs.set("value", fit_scalar(draft.attrs.get<Scalar>("value"), draft.type.dtype));
  if (draft.op == Op::iota && draft.attrs.has("axis"))
    draft.attrs.set("axis", std::int64_t{normalize_axis(draft.attrs.get<std::int64_t>("axis"),
                                                        static_cast<int>(draft.type.shape.size()))});
}

std::optional<ValueId> apply_rules(Canonical& c, Draft& draft) {
  switch (kind_of(draft.op)) {
    case Kind::map: return canonical_map(c, draft);
    case Kind::view: return canonical_view(c, draft);
    case Kind::reduce: return canonical_reduce(c, draft);
    case Kind::source: spell_source(draft); return std::nullopt;
    case Kind::random:
    case Kind::contract:
    case Kind::composite: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ValueId> Canonical::under(Op op, ValueId value) const {
  const Node& node = producer(value);
  return node.op == op ? std::optional(node.operands[0]) : std::nullopt;
}

std::optional<Scalar> Canonical::constant(ValueId value) const {
  const Node& node = producer(value);
  return node.op == Op::full ? std::optional(node.attrs.get<Scalar>("value")) : std::nullopt;
}

bool Canonical::is_rounded(ValueId value) const {
  const auto index = static_cast<std::size_t>(value);
  return index >= rounded_.size() || rounded_[index];
}

ValueId Canonical::append(Draft draft) {
  if (const auto known = apply_rules(*this, draft)) return *known;
  const Kind kind = kind_of(draft.op);
  bool rounded = !is_narrow(draft.type.dtype) || kind == Kind::source || draft.op == Op::cast;
  if (kind == Kind::view) {
    rounded = draft.op != Op::pad;
    for (ValueId operand : draft.operands) rounded = rounded && is_rounded(operand);
  }
  Node node{draft.op, std::move(draft.operands), without_defaults(draft.op, draft.attrs), {}, draft.place};
  rounded_.resize(graph_.values.size() + 1, true);
  rounded_.back() = rounded;
  return push_node(graph_, std::move(node), {std::move(draft.type)})[0];
}

ValueId Canonical::append(Op op, std::vector<ValueId> operands, Attrs attrs, const Place& place) {
  std::vector<Type> types;
  for (ValueId operand : operands) types.push_back(type(operand));
  Type result = infer(op, types, attrs, graph_.symbols)[0];
  return append({op, std::move(operands), std::move(attrs), std::move(result), place});
}

ValueId Canonical::full(const Type& type, const Scalar& value, const Place& place) {
  return append({Op::full, {}, {{"shape", type.shape}, {"value", value}, {"dtype", type.dtype}}, type, place});
}

ValueId Canonical::broadcast(ValueId value, const Draft& draft) {
  if (type(value).shape == draft.type.shape) return value;
  return append(Op::broadcast_to, {value}, {{"shape", draft.type.shape}}, draft.place);
}

Graph canonicalize(const Graph& graph) {
  Rewrite rewrite(graph);
  Canonical canonical(rewrite.graph);
  for (const Node& node : graph.nodes) {
    if (node.results.size() != 1) {  // a composite: decompose comes before its parts can be improved
      rewrite.copy(node);
      continue;
    }
    const Type& type = graph.type(node.results[0]);
    rewrite.replace(node.results[0],
                    canonical.append({node.op, rewrite.mapped(node.operands), node.attrs, type, node.place}));
  }
  return rewrite.finish();
}

}  // namespace tenon::ir
