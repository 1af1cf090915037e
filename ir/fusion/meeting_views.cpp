// Views that meet again: a concat of a value and its flip, behind another such, reads its source at twice as many
// places with each. Views cost no kernel of their own, so a value that many places of one kernel need through a view,
// and that is made by further such views, is stored instead: kernels stay of bounded size, whatever the graph.
#include <algorithm>
#include <map>

#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {
namespace {

constexpr std::size_t kMeeting = 16;  // places of a view behind which others meet
constexpr int kViewsInARow = 256;     // more, and one is stored: lowering walks them one in the other
constexpr double kMost = 1e9;         // what is counted

// What looking through a value costs at most: how often its sources are named, and in how many terms.
struct Depth {
  double growth = 1;
  int views = 0;
};

class MeetingViews {
 public:
  explicit MeetingViews(Context& context) : context_(context), graph_(context.graph), depth_(graph_.values.size()) {}

  void run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (context_.live[i] && context_.cloned[i]) measure(graph_.nodes[i]);
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      const bool copied = context_.cloned[i] && context_.graph_output[static_cast<std::size_t>(node.results[0])];
      if (context_.live[i] && node.op != Op::input && (!context_.cloned[i] || copied) && grows(node))
        walk(static_cast<NodeId>(i));
    }
  }

 private:
  Depth& depth(ValueId value) { return depth_[static_cast<std::size_t>(value)]; }

  bool is_view(ValueId value) const { return kind_of(graph_.producer(value).op) == Kind::view; }

  void measure(const Node& node) {
    if (node.operands.empty()) return;
    Depth own{0, 0};
    for (ValueId operand : node.operands) {
      own.growth += depth(operand).growth;
      own.views = std::max(own.views, depth(operand).views);
    }
    if (node.op == Op::reshape)  // each coordinate of the operand may be a division of all of the result's
      own.growth *=
          static_cast<double>(std::max<std::size_t>(1, without_ones(graph_.type(node.operands[0]).shape).size()));
    own.growth = std::min(kMost, own.growth);
    const ValueId result = node.results[0];
    if (++own.views > kViewsInARow && is_view(result)) return store(result);
    depth(result) = own;
  }

  void store(ValueId value) {
    context_.cloned[static_cast<std::size_t>(graph_.value(value).producer)] = false;
    depth(value) = {};
  }

  bool grows(const Node& node) {
    return std::any_of(node.operands.begin(), node.operands.end(),
                       [&](ValueId operand) { return depth(operand).growth > static_cast<double>(kMeeting); });
  }

  // From the node's result back to memory, each value once all that need it are known.
  void walk(NodeId root) {
    const ValueId result = graph_.node(root).results[0];
    const Domain domain = domain_of(graph_, graph_.node(root));
    const KernelClass kernel_class =
        kind_of(graph_.node(root).op) == Kind::reduce ? KernelClass::reduce : KernelClass::map;
    const Combined combined = combined_axes(graph_, kernel_class, domain, -1);
    std::map<ValueId, std::vector<Layout>> needed{{result, {domain.kept_layout()}}};
    while (!needed.empty()) {
      const auto [value, layouts] = std::move(*needed.rbegin());
      needed.erase(std::prev(needed.end()));
      if (value != result && (context_.stored(value) || is_stored_now(value, layouts))) continue;
      const NodeId id = graph_.value(value).producer;
      for (const Layout& layout : layouts)
        for (std::size_t i = 0; i < graph_.node(id).operands.size(); ++i) {
          std::vector<Layout>& of_operand = needed[graph_.node(id).operands[i]];
          Layout at = operand_layout(graph_, id, i, layout, combined(id, layout));
          if (std::find(of_operand.begin(), of_operand.end(), at) == of_operand.end())
            of_operand.push_back(std::move(at));
        }
    }
  }

  bool is_stored_now(ValueId value, const std::vector<Layout>& layouts) {
    if (!is_view(value) || depth(value).growth <= 1) return false;
    const bool long_one = std::any_of(layouts.begin(), layouts.end(), [](const Layout& layout) {
      return terms_of(layout) > static_cast<int>(kMeeting);
    });
    if (layouts.size() <= kMeeting && !long_one) return false;
    store(value);
    return true;
  }

  Context& context_;
  const Graph& graph_;
  std::vector<Depth> depth_;
};

}  // namespace

void store_meeting_views(Context& context) {
  if (context.options.max_places > 0) MeetingViews(context).run();
}

}  // namespace tenon::ir::fusion
