// The clusters that merging starts from: one for each computed node, with what it reads through the views and cloned
// values in front of it.
#include <algorithm>
#include <limits>

#include "ir/fusion/feeds.h"
#include "ir/fusion/wide_attention.h"
#include "ir/graph/build.h"
#include "ir/graph/check.h"

namespace tenon::ir::fusion {
namespace {

bool is_one(const Dim& dim) { return dim.is(1); }

Domain reduce_domain(const Graph& graph, const Node& node) {
  const Shape& shape = graph.type(node.operands[0]).shape;
  const std::vector<int> axes = reduced_axes(node, static_cast<int>(shape.size()));
  Domain domain;
  Shape reduced;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool combined = std::find(axes.begin(), axes.end(), static_cast<int>(i)) != axes.end();
    if (!shape[i].is(1)) (combined ? reduced : domain.extents).push_back(shape[i]);
  }
  domain.kept = domain.rank();
  domain.extents.insert(domain.extents.end(), reduced.begin(), reduced.end());
  return domain;
}

Domain contract_domain(const Graph& graph, const Node& node) {
  Domain domain{graph.type(node.results[0]).shape, 0};
  domain.kept = domain.rank();
  domain.extents.push_back(graph.type(node.operands[0]).shape.back());
  return domain;
}

Domain map_domain(const Graph& graph, const Node& node) {
  Domain domain{without_ones(graph.type(node.results[0]).shape), 0};
  domain.kept = domain.rank();
  return domain;
}

KernelClass class_of(const Node& node) {
  switch (kind_of(node.op)) {
    case Kind::reduce: return KernelClass::reduce;
    case Kind::contract: return KernelClass::contract;
    case Kind::map:
    case Kind::view:
    case Kind::source:
    case Kind::random:
    case Kind::composite: break;
  }
  return KernelClass::map;
}

constexpr double kRandomSlots = 40;  // Philox 4x32-10, one block for four elements

double slots_of(const Context& context, const Node& node) {
  const double results = context.count[static_cast<std::size_t>(node.results[0])];
  switch (kind_of(node.op)) {
    case Kind::map: return results * info(node.op).cost;
    case Kind::random: return results * kRandomSlots;
    case Kind::reduce: return context.count[static_cast<std::size_t>(node.operands[0])] * info(node.op).cost;
    case Kind::contract:
    case Kind::view:
    case Kind::source:
    case Kind::composite: break;
  }
  return 0;
}

void add_flops(const Context& context, const Node& node, Cluster& cluster) {
  if (kind_of(node.op) != Kind::contract) return;
  const Graph& graph = context.graph;
  if (cluster.kernel_class == KernelClass::contract)
    find_feeds(context, graph.value(node.results[0]).producer, cluster);
  const double flops = 2 * context.count[static_cast<std::size_t>(node.results[0])] *
                       context.extent(graph.type(node.operands[0]).shape.back()) * cluster.share();
  const DType a = graph.type(node.operands[0]).dtype, b = graph.type(node.operands[1]).dtype;
  const ContractionElement element =
      contraction_element(a, b, graph.type(node.results[0]).dtype, node.attrs.get_or<bool>("tf32", false),
                          context.options.cost.tensor_cores);
  const bool wide = element.dtype == (element.tensor_cores ? DType::f32 : DType::f64);  // takes twice the time
  cluster.flops += flops;
  if (cluster.kernel_class == KernelClass::attend) {
    const AttentionWork work = attention_work(context, cluster.attention.scores, cluster.attention.mix);
    if (!work.tensor_cores) {
      const double times = graph.value(node.results[0]).producer == cluster.attention.scores ? work.score_times : 1;
      cluster.lane_flops += (element.dtype == DType::f64 ? 2 : 1) * times * work.row_times * flops;
      return;
    }
  }
  const bool f8 = cluster.kernel_class == KernelClass::contract && context.options.cost.tensor_cores.f8 &&
                  may_multiply_f8(a, b, graph.type(node.results[0]).dtype, node.attrs.get_or<std::int64_t>("block", 0));
  const CostModel& cost = context.options.cost;
  if (cluster.kernel_class == KernelClass::contract && element.dtype == DType::f32 && !element.tensor_cores &&
      context.options.split_f32 && cost.f32_tflops > 0) {  // as many as would take tensor cores as long
    cluster.tensor_flops += flops * cost.tensor_tflops / cost.f32_tflops;
    return;
  }
  (element.tensor_cores ? cluster.tensor_flops : cluster.lane_flops) += wide ? 2 * flops : f8 ? flops / 2 : flops;
}

constexpr std::int64_t kFewRows =
    32;  // up to so many, a matrix streams past them alone (codegen/schedule/contract.cpp)

// Fills domain, reads, costs and the root's result from class and nodes. Whether at `most_places` at most.
bool complete(const Context& context, Cluster& cluster, ValueId root,
              std::size_t most_places = std::numeric_limits<std::size_t>::max()) {
  const Graph& graph = context.graph;
  cluster.domain = domain_of(graph, graph.producer(root));
  const bool attend = cluster.kernel_class == KernelClass::attend;
  if (attend)
    cluster.domain.extents.push_back(graph.type(graph.node(cluster.attention.scores).operands[0]).shape.back());
  cluster.node_count = static_cast<int>(cluster.nodes.size());
  const std::set<NodeId> inside(cluster.nodes.begin(), cluster.nodes.end());
  const auto from_memory = [&](ValueId value) {
    return context.stored(value) && inside.count(graph.value(value).producer) == 0;
  };
  Needs needs;
  needs.left = most_places;
  const Combined combined = combined_axes(graph, cluster.kernel_class, cluster.domain, cluster.attention.scores);
  demand(graph, root, cluster.domain.kept_layout(), from_memory, combined, needs);
  if (attend)
    demand(graph, cluster.attention.sum, cluster.domain.axes(0, cluster.domain.kept - 1), from_memory, combined, needs);
  const bool of_mask = !attend && std::all_of(cluster.nodes.begin(), cluster.nodes.end(), [&](NodeId id) {
    return context.tile_mask[static_cast<std::size_t>(graph.node(id).results[0])];
  });
  for (const auto& [value, layouts] : needs.read) cluster.reads.push_back({value, layouts, of_mask});
  for (NodeId id : cluster.nodes) {
    const Node& node = graph.node(id);
    const auto computed = needs.computed.find(node.results[0]);
    const int places = computed == needs.computed.end() ? 1 : static_cast<int>(computed->second.size());
    cluster.repeats += places - 1;
    cluster.slots += places * slots_of(context, node);
    if (context.tile_mask[static_cast<std::size_t>(node.results[0])])
      cluster.mask_slots += places * slots_of(context, node);
    add_flops(context, node, cluster);
    cluster.random = cluster.random || kind_of(node.op) == Kind::random;
    int before = 0;  // what is cloned in front of it
    for (ValueId operand : node.operands) before = std::max(before, context.depth[static_cast<std::size_t>(operand)]);
    cluster.depth += before + 1;
    if (kind_of(node.op) == Kind::reduce || kind_of(node.op) == Kind::contract)
      for (const Layout& layout : needs.computed[node.results[0]]) add_place(cluster.places, layout);
  }
  cluster.rounds = cluster.kernel_class == KernelClass::map ? 0 : 1;
  cluster.results.push_back({root, cluster.domain.kept_layout(), cluster.rounds});
  if (!attend) return needs.left > 0;
  for (ValueId row : {cluster.attention.maximum, cluster.attention.sum})
    if (row >= 0) cluster.results.push_back({row, needs.computed.at(row).front(), 1});
  std::sort(cluster.results.begin(), cluster.results.end(),
            [](const Result& a, const Result& b) { return a.value < b.value; });
  return needs.left > 0;
}

}  // namespace

Domain domain_of(const Graph& graph, const Node& node) {
  switch (kind_of(node.op)) {
    case Kind::reduce: return reduce_domain(graph, node);
    case Kind::contract: return contract_domain(graph, node);
    case Kind::map:
    case Kind::view:
    case Kind::source:
    case Kind::random:
    case Kind::composite: break;
  }
  return map_domain(graph, node);
}

const Read* Cluster::find_read(ValueId value) const {
  const auto found = std::lower_bound(reads.begin(), reads.end(), value,
                                      [](const Read& read, ValueId wanted) { return read.value < wanted; });
  return found != reads.end() && found->value == value ? &*found : nullptr;
}

const Result* Cluster::find_result(ValueId value) const {
  const auto found = std::lower_bound(results.begin(), results.end(), value,
                                      [](const Result& result, ValueId wanted) { return result.value < wanted; });
  return found != results.end() && found->value == value ? &*found : nullptr;
}

ValueId paired_operand(const Graph& graph, const PlanOptions& options, const Node& node) {
  if (kind_of(node.op) != Kind::contract || !options.pair_products || !options.cost.paired_products) return -1;
  const Type &a = graph.type(node.operands[0]), &b = graph.type(node.operands[1]),
             &result = graph.type(node.results[0]);
  const bool sixteen_bits = (a.dtype == DType::bf16 || a.dtype == DType::f16) && b.dtype == a.dtype &&
                            is_real(result.dtype) && size_of(result.dtype) == 2;
  if (!sixteen_bits || a.shape.size() < 2 || b.shape.size() < 2 || node.attrs.has("block")) return -1;
  const auto least = [&](const Dim& extent) { return extent.bounds(graph.symbols).min; };
  return least(a.shape[a.shape.size() - 2]) > kFewRows && least(b.shape.back()) > kFewRows ? node.operands[0] : -1;
}

Shape without_ones(const Shape& shape) {
  Shape rest;
  std::remove_copy_if(shape.begin(), shape.end(), std::back_inserter(rest), is_one);
  return rest;
}

void add_place(std::vector<Layout>& places, const Layout& layout) {
  if (std::find(places.begin(), places.end(), layout) == places.end()) places.push_back(layout);
}

bool is_outer(const Domain& domain, const Layout& layout) {
  const std::uint32_t kept = axis_bits(domain, 0, domain.kept);
  return kept != 0 && !layout.empty() && (depends_of(layout) & kept) == 0;
}

Combined combined_axes(const Graph& graph, KernelClass kernel_class, const Domain& domain, NodeId first_matmul) {
  return [&graph, kernel_class, domain, first_matmul](NodeId id, const Layout& result) -> Layout {
    const Kind kind = kind_of(graph.node(id).op);
    if (kind != Kind::reduce && kind != Kind::contract) return {};
    if (kernel_class == KernelClass::reduce && is_outer(domain, result)) return domain.kept_layout();
    if (kernel_class != KernelClass::attend) return domain.axes(domain.kept, domain.rank());
    return id == first_matmul ? domain.axes(domain.kept + 1, domain.kept + 2)
                              : domain.axes(domain.kept, domain.kept + 1);
  };
}

std::optional<Cluster> map_cluster(const Context& context, ValueId root, std::vector<NodeId> nodes) {
  Cluster cluster;
  cluster.nodes = std::move(nodes);
  const int limit = context.options.max_places;
  const std::size_t most = limit > 0 ? 8 * static_cast<std::size_t>(limit) : std::numeric_limits<std::size_t>::max();
  if (!complete(context, cluster, root, most) || (limit > 0 && repeats_of(cluster) > limit)) return std::nullopt;
  return cluster;
}

std::vector<Cluster> seed_clusters(const Context& context, const AttentionSearch& attention) {
  const Graph& graph = context.graph;
  std::vector<int> attend_of(graph.nodes.size(), -1);
  for (std::size_t i = 0; i < attention.found.size(); ++i)
    for (NodeId id : attention.nodes[i]) attend_of[static_cast<std::size_t>(id)] = static_cast<int>(i);
  std::vector<Cluster> clusters;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto id = static_cast<NodeId>(i);
    if (!context.live[i] || node.op == Op::input) continue;
    const bool copied = context.cloned[i] && context.graph_output[static_cast<std::size_t>(node.results[0])];
    if (context.cloned[i] && !copied) continue;
    Cluster cluster;
    const int attend = attend_of[i];
    if (attend >= 0) {
      cluster.attention = attention.found[static_cast<std::size_t>(attend)];
      if (cluster.attention.mix != id) continue;
      cluster.kernel_class = KernelClass::attend;
      for (NodeId inner : attention.nodes[static_cast<std::size_t>(attend)])
        if (!context.cloned[static_cast<std::size_t>(inner)]) cluster.nodes.push_back(inner);
    } else {
      cluster.kernel_class = class_of(node);
      cluster.sweep_of = sweep_of(context, node);
      cluster.paired = paired_operand(graph, context.options, node);
      cluster.nodes.push_back(id);
    }
    complete(context, cluster, node.results[0]);
    clusters.push_back(std::move(cluster));
  }
  return clusters;
}

}  // namespace tenon::ir::fusion
