// Masks that attention kernels ask of tiles of keys, found in the graph as codegen/analysis/tile_tests.h finds them in
// a kernel: selections of the score against -inf, whose conditions compare what varies along queries alone with what
// varies along keys alone. Most tiles are hidden or open as a whole, so that such a mask costs a share of what it would
// cost for each score (cost.cpp).
#include <algorithm>
#include <cmath>
#include <set>

#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {
namespace {

constexpr std::size_t kMostTerms = 96;    // nodes of one score that are looked at
constexpr std::int64_t kBoxElements = 8;  // 16 bytes: what the rows of queries, keys and values are multiples of

bool is_comparison(Op op) {
  return op == Op::equal || op == Op::not_equal || op == Op::less || op == Op::less_equal || op == Op::greater ||
         op == Op::greater_equal;
}

// Whether a tile can be found hidden from all its queries, and whether open to all of them.
struct Tells {
  bool hidden = false, open = false;
};

class Search {
 public:
  explicit Search(const Context& context)
      : context_(context), graph_(context.graph), of_score_(graph_.nodes.size()), reached_(graph_.values.size()) {}

  void look(const Attention& attention, const std::vector<NodeId>& inside) {
    if (!is_of_warpgroups(attention)) return;
    domain_ = {graph_.type(graph_.node(attention.mix).results[0]).shape, 0};
    domain_.kept = domain_.rank();
    for (const NodeId matmul : {attention.mix, attention.scores})
      domain_.extents.push_back(graph_.type(graph_.node(matmul).operands[0]).shape.back());
    const auto from_memory = [&](ValueId value) {
      return !std::binary_search(inside.begin(), inside.end(), graph_.value(value).producer);
    };
    Needs needs;
    demand(graph_, graph_.node(attention.mix).results[0], domain_.kept_layout(), from_memory,
           combined_axes(graph_, KernelClass::attend, domain_, attention.scores), needs);
    terms_ = 0;
    look_at_term(attention.score, needs.computed.at(attention.score).front());
  }

  // Of a value that something else needs too, that one computes every element.
  void mark(std::vector<bool>& tile_mask) const {
    for (std::size_t i = graph_.nodes.size(); i-- > 0;)
      for (const ValueId value : graph_.nodes[i].results) {
        const auto at = static_cast<std::size_t>(value);
        const auto& users = context_.users[at];
        tile_mask[at] =
            reached_[at] && !context_.graph_output[at] && std::all_of(users.begin(), users.end(), [&](NodeId user) {
              const auto number = static_cast<std::size_t>(user);
              return !context_.live[number] || of_score_[number] ||
                     tile_mask[static_cast<std::size_t>(graph_.node(user).results[0])];
            });
      }
  }

 private:
  // Boxes bring queries, keys and values of 16 bits.
  bool is_of_warpgroups(const Attention& attention) const {
    for (const NodeId matmul : {attention.scores, attention.mix})
      for (const ValueId operand : graph_.node(matmul).operands) {
        const DType dtype = graph_.type(operand).dtype;
        if (dtype != DType::f16 && dtype != DType::bf16) return false;
      }
    for (const ValueId row : {graph_.node(attention.scores).operands[0], graph_.node(attention.mix).operands[1]})
      if (!graph_.type(row).shape.back().exact_div(Dim(kBoxElements))) return false;
    return true;
  }

  ValueId behind_casts(ValueId value) const {
    while (true) {
      const Node& node = graph_.producer(value);
      if (node.op != Op::cast && node.op != Op::reshape && node.op != Op::broadcast_to) return value;
      value = node.operands[0];
    }
  }

  bool is_number(ValueId value, double number) const {
    const Node& node = graph_.producer(behind_casts(value));
    if (node.op != Op::full) return false;
    return std::visit([&](auto scalar) { return static_cast<double>(scalar) == number; },
                      node.attrs.get<Scalar>("value"));
  }

  Layout layout_of(NodeId id, std::size_t operand, const Layout& at) const {
    return operand_layout(graph_, id, operand, at, {});
  }

  // A term of the sum that is the score, which is -inf where a mask hides it. Whether it is a mask and nothing else.
  bool look_at_term(ValueId value, const Layout& at) {
    const NodeId id = graph_.value(value).producer;
    const Node& node = graph_.node(id);
    if (is_number(value, 0)) return true;
    if (++terms_ > kMostTerms) return false;
    bool is_mask = false;
    if (node.op == Op::where && (is_number(node.operands[1], -INFINITY) || is_number(node.operands[2], -INFINITY))) {
      const bool hides = is_number(node.operands[1], -INFINITY);
      std::set<ValueId> reached;
      const Tells tells = look_at_condition(node.operands[0], layout_of(id, 0, at), reached);
      if (hides ? tells.open : tells.hidden)
        for (const ValueId of_mask : reached) reached_[static_cast<std::size_t>(of_mask)] = true;
      const std::size_t kept = hides ? 2 : 1;
      is_mask = look_at_term(node.operands[kept], layout_of(id, kept, at));
    } else if (node.op == Op::add) {
      const bool left = look_at_term(node.operands[0], layout_of(id, 0, at));
      is_mask = look_at_term(node.operands[1], layout_of(id, 1, at)) && left;
    } else if (node.op == Op::cast || node.op == Op::reshape || node.op == Op::broadcast_to) {
      is_mask = look_at_term(node.operands[0], layout_of(id, 0, at));
    } else {
      return false;
    }
    of_score_[static_cast<std::size_t>(id)] = true;
    if (is_mask) reached_[static_cast<std::size_t>(value)] = true;
    return is_mask;
  }

  // Along queries only, or along keys only, or neither.
  bool is_one_sided(const Layout& at) const {
    const std::uint32_t queries = axis_bits(domain_, domain_.kept - 2, domain_.kept - 1);
    const std::uint32_t keys = axis_bits(domain_, domain_.kept, domain_.kept + 1);
    return (depends_of(at) & queries) == 0 || (depends_of(at) & keys) == 0;
  }

  bool counts(ValueId side, const Layout& at) const {
    const DType dtype = graph_.type(side).dtype;
    return is_one_sided(at) && (is_integer(dtype) || dtype == DType::bool_);
  }

  // `reached`: what of the condition is known in tiles, and what that is made of.
  Tells look_at_condition(ValueId value, const Layout& at, std::set<ValueId>& reached) {
    const NodeId id = graph_.value(value).producer;
    const Node& node = graph_.node(id);
    if (is_one_sided(at)) {
      add_below(value, reached);
      return {true, true};
    }
    Tells tells;
    if (++terms_ > kMostTerms) return tells;
    if (node.op == Op::reshape || node.op == Op::broadcast_to || node.op == Op::transpose) {
      tells = look_at_condition(node.operands[0], layout_of(id, 0, at), reached);
    } else if (node.op == Op::logical_not) {
      const Tells inner = look_at_condition(node.operands[0], layout_of(id, 0, at), reached);
      tells = {inner.open, inner.hidden};
    } else if (node.op == Op::logical_and || node.op == Op::logical_or) {
      const Tells a = look_at_condition(node.operands[0], layout_of(id, 0, at), reached);
      const Tells b = look_at_condition(node.operands[1], layout_of(id, 1, at), reached);
      const bool both = node.op == Op::logical_and;
      tells = {both ? a.hidden || b.hidden : a.hidden && b.hidden, both ? a.open && b.open : a.open || b.open};
    } else if (is_comparison(node.op) && counts(node.operands[0], layout_of(id, 0, at)) &&
               counts(node.operands[1], layout_of(id, 1, at))) {
      for (const ValueId side : node.operands) add_below(side, reached);
      tells = {true, true};
    }
    if (tells.hidden || tells.open) reached.insert(value);
    return tells;
  }

  // What a value is made of by maps and views.
  void add_below(ValueId value, std::set<ValueId>& reached) const {
    std::vector<ValueId> pending{value};
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      const Node& node = graph_.producer(next);
      const bool elementwise = kind_of(node.op) == Kind::map || kind_of(node.op) == Kind::view;
      if (!elementwise || !reached.insert(next).second) continue;
      pending.insert(pending.end(), node.operands.begin(), node.operands.end());
    }
  }

  const Context& context_;
  const Graph& graph_;
  Domain domain_;               // of the attention looked at
  std::size_t terms_ = 0;       // of its score, looked at
  std::vector<bool> of_score_;  // node: a sum or selection that scores are made of
  std::vector<bool> reached_;   // value: of a mask that is asked of tiles
};

}  // namespace

void find_tile_masks(Context& context, const AttentionSearch& attention) {
  Search search(context);
  for (std::size_t i = 0; i < attention.found.size(); ++i) search.look(attention.found[i], attention.nodes[i]);
  search.mark(context.tile_mask);
}

}  // namespace tenon::ir::fusion
