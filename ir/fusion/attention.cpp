// Attention found in primitives: matmul -> maps -> exp(x - max) and its sum along a row -> maps -> matmul. Whether the
// division by the sum comes before or after the second matmul, and how rows of -inf are guarded, does not matter:
// shifts and factors that are the same along a row commute with the sums over it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "ir/fusion/wide_attention.h"
#include "ir/graph/build.h"
#include "ir/graph/check.h"

namespace tenon::ir::fusion {
namespace {

constexpr std::size_t kLookBack = 96;  // nodes looked at to tell a near miss from an ordinary matmul

// Why a candidate is no attention; caught in find_attention.
struct NoMatch {
  Rule rule = Rule::none;
  std::string reason;
};

class Matcher {
 public:
  Matcher(const Context& context, NodeId mix) : context_(context), graph_(context.graph) { found_.mix = mix; }

  Attention run(std::vector<NodeId>& nodes) {
    find_weight();
    find_shift();
    find_sum();
    find_scores();
    check_compute_types();
    check_factors();
    collect();
    check_escapes();
    check_layouts();
    nodes = inside_;
    return found_;
  }

  // Whether exponentials that a row sums, of something computed from a matmul, reach this one by maps.
  bool resembles() const {
    const auto elementwise = [](Kind kind) { return kind == Kind::map || kind == Kind::view; };
    ValueId exponential = -1;
    search(graph_.node(found_.mix).operands[0], elementwise, [&](ValueId value) {
      if (graph_.producer(value).op == Op::exp && sum_of(value) >= 0) exponential = value;
    });
    if (exponential < 0) return false;
    bool matmul = false;
    search(exponential, elementwise,
           [&](ValueId value) { matmul = matmul || kind_of(graph_.producer(value).op) == Kind::contract; });
    return matmul;
  }

 private:
  [[noreturn]] void no_match(Rule rule, std::string reason) const { throw NoMatch{rule, std::move(reason)}; }
  std::string name(ValueId value) const {
    const std::string& given = graph_.value(value).name;
    return given.empty() ? fmt::format("a result of {}", name_of(graph_.producer(value).op)) : given;
  }

  // `value` without the casts and reshapes that produced it.
  ValueId stripped(ValueId value) const {
    while (true) {
      const Node& node = graph_.producer(value);
      if (node.op != Op::cast && node.op != Op::reshape && node.op != Op::broadcast_to) return value;
      value = node.operands[0];
    }
  }

  // Visits what stands in front of `value`, through nodes of the kinds that `pass` lets through, as far as it looks.
  template <typename Pass, typename Visit>
  void search(ValueId value, const Pass& pass, const Visit& visit) const {
    std::vector<ValueId> pending{value};
    std::set<ValueId> seen;
    while (!pending.empty() && seen.size() < kLookBack) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (!seen.insert(next).second) continue;
      visit(next);
      const Node& node = graph_.producer(next);
      if (pass(kind_of(node.op))) pending.insert(pending.end(), node.operands.rbegin(), node.operands.rend());
    }
  }

  // Whether `value` is computed elementwise from an exp, or is one: the side on which the weights come in.
  bool from_exp(ValueId value) const {
    bool found = false;
    search(
        value, [](Kind kind) { return kind == Kind::map || kind == Kind::view; },
        [&](ValueId next) { found = found || graph_.producer(next).op == Op::exp; });
    return found;
  }

  // The sum that takes `value`, perhaps cast or reshaped; -1 when there is none.
  ValueId sum_of(ValueId value) const {
    std::vector<ValueId> pending{value};
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      for (NodeId user : context_.users[static_cast<std::size_t>(next)]) {
        const Node& node = graph_.node(user);
        if (!context_.live[static_cast<std::size_t>(user)]) continue;
        if (node.op == Op::sum) return node.results[0];
        if (node.op == Op::cast || node.op == Op::reshape) pending.push_back(node.results[0]);
      }
    }
    return -1;
  }

  bool is_zero(ValueId value) const {
    const Node& node = graph_.producer(stripped(value));
    if (node.op != Op::full) return false;
    const Scalar& scalar = node.attrs.get<Scalar>("value");
    if (const double* real = std::get_if<double>(&scalar)) return *real == 0;
    const std::int64_t* integer = std::get_if<std::int64_t>(&scalar);
    return integer != nullptr && *integer == 0;
  }

  // A cast from an integer to a real, say, is of something truncated.
  bool keeps_real(const Node& cast) const {
    return is_real(graph_.type(cast.operands[0]).dtype) && is_real(graph_.type(cast.results[0]).dtype);
  }

  // The number of the operand of `node` through which the weights pass linearly; nothing for a node that is not linear
  // in them.
  std::optional<std::size_t> linear_operand(const Node& node) const {
    if (node.op == Op::div || (node.op == Op::cast && keeps_real(node))) return 0;
    if (node.op == Op::mul) return from_exp(node.operands[0]) ? 0 : 1;
    if (node.op == Op::where && is_zero(node.operands[2])) return 1;
    if (node.op == Op::where && is_zero(node.operands[1])) return 2;
    return std::nullopt;
  }

  // What a linear node applies to the weights: a factor, a divisor or a condition; -1 for a cast.
  static ValueId applied(const Node& node, std::size_t linear) {
    if (node.op == Op::where) return node.operands[0];
    return node.op == Op::cast ? -1 : node.operands[1 - linear];
  }

  void find_weight() {
    ValueId value = graph_.node(found_.mix).operands[0];
    while (graph_.producer(value).op != Op::exp) {
      const Node& node = graph_.producer(value);
      if (node.op == Op::reshape) {
        value = node.operands[0];
        continue;
      }
      const auto operand = linear_operand(node);
      if (!operand)
        no_match(
            Rule::attention_not_linear,
            fmt::format("{} stands between the softmax and the second matmul; only casts between reals, factors and "
                        "masks with 0 commute with the sum over keys",
                        name_of(node.op)));
      found_.scaling.push_back({graph_.value(value).producer, *operand});
      if (const ValueId factor = applied(node, *operand); factor >= 0) factors_.push_back(factor);
      value = node.operands[*operand];
    }
    std::reverse(found_.scaling.begin(), found_.scaling.end());
    found_.weight = value;
  }

  // The reductions that `value` is computed from by maps and views.
  std::vector<NodeId> reductions_behind(ValueId value) const {
    std::vector<NodeId> reductions;
    search(
        value, [](Kind kind) { return kind == Kind::map || kind == Kind::view; },
        [&](ValueId next) {
          if (kind_of(graph_.producer(next).op) == Kind::reduce) reductions.push_back(graph_.value(next).producer);
        });
    return reductions;
  }

  void find_shift() {
    const ValueId exponent = graph_.producer(found_.weight).operands[0];
    found_.score = exponent;
    const Node& node = graph_.producer(stripped(exponent));
    if (node.op != Op::sub) return;
    const std::vector<NodeId> reductions = reductions_behind(node.operands[1]);
    if (reductions.empty()) return;  // no row maximum: part of the score
    const Node& reduction = graph_.node(reductions.front());
    if (reductions.size() != 1 || reduction.op != Op::max ||
        stripped(reduction.operands[0]) != stripped(node.operands[0]))
      no_match(Rule::attention_shift,
               fmt::format("exp takes {} minus something that is not the maximum of it along a row",
                           name(node.operands[0])));
    found_.score = node.operands[0];
    found_.shift = node.operands[1];
    found_.maximum = reduction.results[0];
  }

  void find_sum() {
    found_.sum = sum_of(found_.weight);
    if (found_.sum < 0)
      no_match(Rule::attention_no_sum, "exp of the scores is not summed along a row, so this is no softmax");
  }

  void find_scores() {
    search(
        found_.score, [](Kind kind) { return kind == Kind::map || kind == Kind::view; },
        [&](ValueId value) {
          if (found_.scores < 0 && kind_of(graph_.producer(value).op) == Kind::contract)
            found_.scores = graph_.value(value).producer;
        });
    if (found_.scores < 0)
      no_match(Rule::attention_no_scores, fmt::format("{} does not come from a matmul by maps", name(found_.score)));
  }

  // How `value` comes from the scores: through their maximum and sum alone, in another way, or not at all.
  enum class Origin : std::uint8_t { elsewhere, row, scores };
  Origin origin(ValueId value) const {
    Origin origin = Origin::elsewhere;
    std::vector<ValueId> pending{value};
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      const NodeId producer = graph_.value(next).producer;
      if (producer == found_.scores) return Origin::scores;
      if (next == found_.maximum || next == found_.sum) origin = Origin::row;
      if (next == found_.maximum || next == found_.sum || producer < found_.scores || !seen.insert(next).second)
        continue;
      for (ValueId operand : graph_.node(producer).operands) pending.push_back(operand);
    }
    return origin;
  }

  // What the weights are multiplied by or selected with may be of a row, or known without the scores.
  void check_factors() {
    for (ValueId factor : factors_) {
      const Origin from = origin(factor);
      if (from == Origin::row) of_row_.push_back(factor);
      if (from != Origin::scores) continue;
      const bool condition = graph_.type(factor).dtype == DType::bool_;
      no_match(
          condition ? Rule::attention_condition : Rule::attention_factor,
          fmt::format("the weights are {} {}, which depends on their scores one by one; only what is the same for a "
                      "whole row, or known without the scores, commutes with the sum over keys",
                      condition ? "selected by" : "multiplied by", name(stripped(factor))));
    }
  }

  // A kernel has one place for a block's scores and for the weights that they become.
  void check_compute_types() const {
    const Node &scores = graph_.node(found_.scores), &mix = graph_.node(found_.mix);
    const auto computed_in = [&](ValueId value) { return compute_type(graph_.type(value).dtype); };
    const DType first = computed_in(scores.operands[0]);
    for (ValueId value : {scores.operands[1], found_.score, found_.weight, mix.operands[0], mix.operands[1]})
      if (computed_in(value) != first)
        no_match(Rule::attention_types, fmt::format("the scores are computed in {} and {} in {}", name_of(first),
                                                    name(value), name_of(computed_in(value))));
  }

  // The nodes on paths from the first matmul to the second, and to the sum (which may divide only afterwards).
  void collect() {
    std::set<NodeId> behind;
    std::vector<NodeId> pending{found_.mix, graph_.value(found_.sum).producer};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (id < found_.scores || !behind.insert(id).second || id == found_.scores) continue;
      for (ValueId operand : graph_.node(id).operands) pending.push_back(graph_.value(operand).producer);
    }
    std::set<NodeId> inside{found_.scores};
    for (NodeId id : behind) {
      const auto& operands = graph_.node(id).operands;
      if (std::any_of(operands.begin(), operands.end(),
                      [&](ValueId v) { return inside.count(graph_.value(v).producer); }))
        inside.insert(id);
    }
    inside_.assign(inside.begin(), inside.end());
    for (NodeId id : inside_) check_kind(id);
  }

  void check_kind(NodeId id) const {
    const Node& node = graph_.node(id);
    if (id == found_.scores || id == found_.mix) return;
    const Kind kind = kind_of(node.op);
    if (kind == Kind::contract)
      no_match(Rule::attention_third_matmul,
               fmt::format("a third matmul ({}) lies between the two", name(node.results[0])));
    if (kind == Kind::reduce && node.results[0] != found_.maximum && node.results[0] != found_.sum)
      no_match(Rule::attention_reduction,
               fmt::format("{} of the scores is needed besides their maximum and sum", name_of(node.op)));
    if (kind != Kind::map && kind != Kind::view && kind != Kind::reduce)
      no_match(Rule::attention_node, fmt::format("{} lies between the two matmuls", name_of(node.op)));
  }

  bool holds(NodeId id) const { return std::binary_search(inside_.begin(), inside_.end(), id); }

  // Values along the keys must not be needed outside: they are never in memory.
  void check_escapes() const {
    for (NodeId id : inside_) {
      const ValueId value = graph_.node(id).results[0];
      if (id == found_.mix || value == found_.maximum || value == found_.sum) continue;
      const bool output = context_.graph_output[static_cast<std::size_t>(value)];
      const auto& users = context_.users[static_cast<std::size_t>(value)];
      const auto outside = std::find_if(users.begin(), users.end(), [&](NodeId user) {
        return context_.live[static_cast<std::size_t>(user)] && !holds(user);
      });
      if (!output && outside == users.end()) continue;
      no_match(Rule::attention_escape,
               fmt::format("{} {} is also {}, so it would have to be stored: {:.0f} bytes",
                           id == found_.scores ? "the score matrix" : "the value", name(value),
                           output ? "a result" : fmt::format("used by {}", name_of(graph_.node(*outside).op)),
                           context_.bytes[static_cast<std::size_t>(value)]));
    }
    const ValueId v = graph_.node(found_.mix).operands[1];
    if (holds(graph_.value(v).producer))
      no_match(Rule::attention_values, "the second matmul's other operand depends on the scores");
  }

  // A constant, or a product of symbols: it is 0 where one of them is, which a kernel is specialised for.
  static bool is_product(Dim extent) {
    std::set<std::string> symbols;
    extent.collect_symbols(symbols);
    for (const std::string& symbol : symbols)
      while (const auto rest = extent.exact_div(Dim::symbol(symbol))) extent = *rest;
    return extent.is_constant();
  }

  Domain domain() const {
    const Node& mix = graph_.node(found_.mix);
    const Node& scores = graph_.node(found_.scores);
    if (graph_.type(mix.operands[0]).shape.back().is(1))
      no_match(Rule::attention_one_key, "there is one key: its softmax needs no maximum, and its products no matrix");
    const Dim& width = graph_.type(mix.results[0]).shape.back();
    if (width.bounds(graph_.symbols).min < 1 && !is_product(width))
      no_match(Rule::attention_width,
               fmt::format("its {} columns may be none, which would leave the rows without a kernel", width.str()));
    Domain domain{graph_.type(mix.results[0]).shape, 0};
    domain.kept = domain.rank();
    domain.extents.push_back(graph_.type(mix.operands[0]).shape.back());
    domain.extents.push_back(graph_.type(scores.operands[0]).shape.back());
    return domain;
  }

  void check_layouts() const {
    const Domain axes = domain();
    const int row = axes.kept - 2, key = axes.kept;
    const std::uint32_t rows = axis_bits(axes, 0, row + 1), keys = axis_bits(axes, key, key + 1);
    const auto from_memory = [&](ValueId value) { return !holds(graph_.value(value).producer); };
    Needs needs;
    demand(graph_, graph_.node(found_.mix).results[0], axes.kept_layout(), from_memory,
           combined_axes(graph_, KernelClass::attend, axes, found_.scores), needs);
    demand(graph_, found_.sum, axes.axes(0, row + 1), from_memory,
           combined_axes(graph_, KernelClass::attend, axes, found_.scores), needs);
    check_pointers(needs);
    const auto only = [&](ValueId value) -> const Layout& {
      const std::vector<Layout>& layouts = needs.computed.at(value);
      if (layouts.size() != 1)
        no_match(Rule::attention_layout,
                 fmt::format("{} is needed at {} different places", name(value), layouts.size()));
      return layouts.front();
    };
    for (ValueId value : {found_.maximum, found_.sum})
      if (value >= 0) check_reduced(value, axes.extents[static_cast<std::size_t>(key)]);
    for (ValueId value : {found_.maximum, found_.sum})
      if (value >= 0 && covered(only(value), axes) != rows)
        no_match(Rule::attention_row, fmt::format("{} is not one number for each row of the scores", name(value)));
    for (ValueId factor : of_row_) check_along_row(factor, needs, keys);
    const ValueId scores = graph_.node(found_.scores).results[0];
    for (ValueId value : {scores, found_.weight})
      if (covered(only(value), axes) != (rows | keys))
        no_match(Rule::attention_domain,
                 fmt::format("{} does not lie on (batch, queries, keys) of the second matmul", name(value)));
    const auto parts = segments(only(scores), graph_.type(scores).shape);
    if (!parts || parts->size() < 2 || normalized(parts->back()) != axes.axes(key, key + 1))
      no_match(Rule::attention_keys, "the softmax does not run over the columns of the first matmul");
  }

  void check_pointers(const Needs& needs) const {
    int pointers = 0;
    for (const auto& [value, layouts] : needs.read) pointers += context_.pointers[static_cast<std::size_t>(value)];
    if (pointers > context_.options.max_pointers)
      no_match(Rule::attention_operands, fmt::format("one kernel would take {} pointers, the limit is {}", pointers,
                                                     context_.options.max_pointers));
  }

  // What is made of a row's maximum or sum, and of the position in the row, is known neither with a key nor behind all.
  void check_along_row(ValueId factor, const Needs& needs, std::uint32_t keys) const {
    const auto found = needs.computed.find(stripped(factor));
    if (found == needs.computed.end()) return;
    for (const Layout& layout : found->second)
      if (std::any_of(layout.begin(), layout.end(), [&](const Digit& digit) { return (digit.depends & keys) != 0; }))
        no_match(Rule::attention_factor, fmt::format("{} varies along the keys and is made of the row's maximum or sum",
                                                     name(stripped(factor))));
  }

  // The softmax runs over the last axis that has more than one element, and that is the keys.
  void check_reduced(ValueId value, const Dim& keys) const {
    const Node& node = graph_.producer(value);
    const Shape& shape = graph_.type(node.operands[0]).shape;
    const std::vector<int> axes = reduced_axes(node, static_cast<int>(shape.size()));
    Dim count(1);
    for (int axis : axes) count = count * shape[static_cast<std::size_t>(axis)];
    bool last = true;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (std::find(axes.begin(), axes.end(), static_cast<int>(i)) != axes.end()) break;
      last = last && shape[i].is(1);
    }
    if (!last || !(count == keys))
      no_match(Rule::attention_axis, fmt::format("{} does not run over the {} keys that the second matmul sums over",
                                                 name(value), keys.str()));
  }

  const Context& context_;
  const Graph& graph_;
  Attention found_;
  std::vector<NodeId> inside_;
  std::vector<ValueId> factors_;  // what stands beside the weights in `scaling`: factors, divisors, conditions
  std::vector<ValueId> of_row_;   // those of them that come from the row's maximum or sum
};

}  // namespace

AttentionSearch find_attention(const Context& context, bool wide, const std::vector<ValueId>& parts) {
  AttentionSearch search;
  std::set<NodeId> taken;
  for (std::size_t i = 0; i < context.graph.nodes.size(); ++i) {
    const Node& node = context.graph.nodes[i];
    if (!context.live[i] || kind_of(node.op) != Kind::contract) continue;
    if (std::find(parts.begin(), parts.end(), node.results[0]) != parts.end()) continue;
    Matcher matcher(context, static_cast<NodeId>(i));
    if (!matcher.resembles()) continue;
    try {
      std::vector<NodeId> nodes;
      Attention found = matcher.run(nodes);
      if (std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return taken.count(id) != 0; }))
        throw NoMatch{Rule::attention_shared, "the score matrix already belongs to another attention"};
      const std::string why = why_apart(context, found.scores, found.mix);
      if (!why.empty() && !wide) throw NoMatch{Rule::attention_apart, why};
      if (!why.empty()) search.apart_gain = std::max(search.apart_gain, apart_gain(context, nodes));
      taken.insert(nodes.begin(), nodes.end());
      search.found.push_back(std::move(found));
      search.nodes.push_back(std::move(nodes));
    } catch (const NoMatch& no) {
      Refusal refusal;
      refusal.value = node.results[0];
      refusal.rule = no.rule;
      refusal.reason = no.reason;
      search.refusals.push_back(std::move(refusal));
    }
  }
  return search;
}

}  // namespace tenon::ir::fusion
