// See products.h.
#include "ir/fusion/products.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/fusion/halves.h"
#include "ir/fusion/product_costs.h"
#include "ir/fusion/product_masks.h"
#include "ir/graph/build.h"
#include "ir/graph/view.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kUnaligned = 8;     // times as long as from boxes: measured on an H200 at 4095 x 4097 x 4093
constexpr double kSlowerTf32 = 12;   // than f16: warps multiply it, measured on an H200 at 4096 cubed
constexpr std::int64_t kBlock = 64;  // products that tensor cores add up of f32's high parts
constexpr double kOddSums = 3;       // times as long as rows of whole vectors (2432 x 2845 x 192, H200)
constexpr double kLeastFed = 2;      // launches that bringing an operand takes, where a copy is thought of
constexpr double kFewAcross = 1.4;   // times as long beside few that lie across the depth (24178 x 30 x 8384, H100)

bool constant(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& extent) { return extent.is_constant(); });
}

double count(const Shape& shape) {
  double product = 1;
  for (const Dim& extent : shape) product *= static_cast<double>(extent.constant());
  return product;
}

class ArrangeProducts {
 public:
  ArrangeProducts(const Graph& graph, const PlanOptions& options, std::set<NodeId> of_attention)
      : graph_(graph),
        options_(options),
        of_attention_(std::move(of_attention)),
        rewrite_(graph),
        users_(users_of(graph)) {}

  // `apart`: why products are none of attention.
  Products run(std::vector<Refusal> apart) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const auto id = static_cast<NodeId>(i);
      if (!cut(id, node) && !arrange(id, node)) rewrite_.copy(node);
    }
    for (Refusal& refusal : apart) refusal.value = rewrite_[refusal.value];
    std::vector<ValueId> stored = std::move(stored_);
    return {rewrite_.finish(), std::move(stored), std::move(parts_), std::move(apart)};
  }

 private:
  // A product of which nothing is needed but two halves of its columns, which meet again (a gate and what it scales),
  // becomes the products of the halves: a pair. Whether `node` is such a product, or one of its halves.
  bool cut(NodeId id, const Node& node) {
    if (node.op == Op::slice) {
      const NodeId maker = graph_.value(node.operands[0]).producer;
      if (cut_.count(maker) == 0) return false;
      const Node& product = graph_.node(maker);
      Attrs columns = node.attrs;
      columns.set("axis", std::vector<std::int64_t>{-1});
      const ValueId half = append(Op::slice, {rewrite_[product.operands[1]]}, columns, node.place);
      rewrite_.replace(node.results[0],
                       append(product.op, {rewrite_[product.operands[0]], half}, product.attrs, product.place));
      return true;
    }
    if (of_attention_.count(id) != 0 || paired_operand(graph_, options_, node) < 0) return false;
    const std::vector<NodeId>& users = users_[static_cast<std::size_t>(node.results[0])];
    const bool aligned = in_whole_boxes(graph_.type(node.operands[0]).shape.back()) &&
                         in_whole_boxes(graph_.type(node.operands[1]).shape.back());
    if (!aligned || is_output(node.results[0]) || users.size() != 2 || !halves_of_columns(users[0], users[1]))
      return false;
    cut_.insert(id);
    return true;
  }

  // Whether rows of 16-bit elements that begin at multiples of `extent` begin at 16-byte boundaries.
  bool in_whole_boxes(const Dim& extent) const { return extent.bounds(graph_.symbols).divisor % (kRowBytes / 2) == 0; }

  bool is_output(ValueId value) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
  }

  // Whether these are slices of as many columns that some map needs both of.
  bool halves_of_columns(NodeId first, NodeId second) const {
    for (const NodeId id : {first, second}) {
      const Node& node = graph_.node(id);
      const auto rank = static_cast<std::int64_t>(graph_.type(node.operands[0]).shape.size());
      if (node.op != Op::slice || !node.attrs.has("axis")) return false;
      const auto axes = node.attrs.get<std::vector<std::int64_t>>("axis");
      const bool columns = axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1);
      const auto step = node.attrs.get_or<std::vector<std::int64_t>>("step", {1});
      if (!columns || step != std::vector<std::int64_t>{1}) return false;
      const auto start = node.attrs.get_or<Shape>("start", {Dim(0)});
      if (start.size() != 1 || !(start[0].is(0) || in_whole_boxes(start[0]))) return false;
    }
    const auto half = [&](NodeId id) { return graph_.node(id).results[0]; };
    if (graph_.type(half(first)).shape != graph_.type(half(second)).shape) return false;
    const std::set<NodeId> of_first = maps_behind(half(first)), of_second = maps_behind(half(second));
    return std::any_of(of_first.begin(), of_first.end(), [&](NodeId id) { return of_second.count(id) != 0; });
  }

  // The maps that need the value, one behind the other: as many as an activation has, or some more.
  std::set<NodeId> maps_behind(ValueId value) const {
    constexpr std::size_t kMost = 64;
    std::set<NodeId> found;
    std::vector<ValueId> pending{value};
    while (!pending.empty() && found.size() < kMost) {
      const ValueId next = pending.back();
      pending.pop_back();
      for (const NodeId id : users_[static_cast<std::size_t>(next)])
        if (kind_of(graph_.node(id).op) == Kind::map && found.insert(id).second)
          pending.push_back(graph_.node(id).results[0]);
    }
    return found;
  }

  static std::vector<std::vector<NodeId>> users_of(const Graph& graph) {
    std::vector<std::vector<NodeId>> users(graph.values.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      for (const ValueId operand : graph.nodes[i].operands)
        users[static_cast<std::size_t>(operand)].push_back(static_cast<NodeId>(i));
    return users;
  }

  bool arrange(NodeId id, const Node& node) {
    if (kind_of(node.op) != Kind::contract) return false;
    const bool of_attention = of_attention_.count(id) != 0;
    const Shape &a = graph_.type(node.operands[0]).shape, &b = graph_.type(node.operands[1]).shape,
                &result = graph_.type(node.results[0]).shape;
    if (a.size() < 2 || b.size() < 2) return false;  // a vector streams as it is
    if (!constant(a) || !constant(b) || count(result) == 0 || count(a) == 0) return false;
    ProductShape problem{1, a[a.size() - 2].constant(), b.back().constant(), a.back().constant()};
    problem.batch = count(result) / static_cast<double>(problem.m) / static_cast<double>(problem.n);
    const ContractionElement element = contraction_element(
        graph_.type(node.operands[0]).dtype, graph_.type(node.operands[1]).dtype, graph_.type(node.results[0]).dtype,
        node.attrs.get_or("tf32", false), options_.cost.tensor_cores);
    std::vector<ValueId> operands = rewrite_.mapped(node.operands);
    bool changed = false;
    if (options_.turn_f8) changed = turn_f8(node, operands, problem);
    if (of_attention) {
      if (changed)
        rewrite_.replace(node.results[0], append_one(rewrite_.graph, node.op, operands, node.attrs, node.place));
      return changed;
    }
    if (options_.turn_few) changed = turn_few(operands, problem, element, node.place) || changed;
    if (options_.pad_rows && element.tensor_cores && size_of(element.dtype) == 2)
      for (const bool left : {true, false})
        changed = pad_rows(operands[left ? 0 : 1], left, problem, node.place) || changed;
    problem.in_boxes = size_of(element.dtype) == 2 && come_in_boxes(operands);
    problem.along_depth = lies_along(operands[0], static_cast<std::int64_t>(a.size()) - 1) ||
                          lies_along(operands[1], static_cast<std::int64_t>(b.size()) - 2);
    if (options_.split_f32 && in_halves(id, node, operands, problem, element)) return true;
    const DepthDivision division = division_of(options_, problem, element);
    if (division.parts > 1) {
      rewrite_.replace(node.results[0], split(node, operands, division));
    } else if (changed) {
      rewrite_.replace(node.results[0], append_one(rewrite_.graph, node.op, operands, node.attrs, node.place));
    }
    return changed || division.parts > 1;
  }

  // f32: high high + (high low + low high) / kLowScale; what low low would add is below 2^-22 of each product. tf32:
  // the high parts have as many bits.
  bool in_halves(NodeId id, const Node& node, const std::vector<ValueId>& operands, const ProductShape& problem,
                 const ContractionElement& element) {
    for (const ValueId operand : node.operands)
      if (graph_.type(operand).dtype != DType::f32) return false;
    if (graph_.type(node.results[0]).dtype != DType::f32 || !options_.cost.tensor_cores.f16) return false;
    const bool both = !element.tensor_cores;
    const CostModel& cost = options_.cost;
    const double elements = count(graph_.type(node.operands[0]).shape) + count(graph_.type(node.operands[1]).shape);
    // Bytes: stored, and read again. Rows that begin off vectors go element by element.
    const double odd = problem.n % 4 == 0 ? 1 : kOddSums;
    const double sums = both ? 8 * odd * count(graph_.type(node.results[0]).shape) : 0;
    double exact_us = undivided_us(options_, problem, element) * (both ? 1 : kSlowerTf32);
    if (both && problem.batch == 1) exact_us = std::min(exact_us, division_of(options_, problem, element).us);
    const double halves_us = (both ? 3 : 1) * undivided_us(options_, problem, f16_element()) +
                             (both ? 5 : 4) * cost.launch_us +
                             ((both ? 16 : 12) * elements + sums) / (cost.bandwidth_gb_s * 1e3);
    if (std::min(problem.m, problem.n) <= kStreamedRows || halves_us * kGain > exact_us) return false;

    const std::int64_t rank_a = static_cast<std::int64_t>(rewrite_.graph.type(operands[0]).shape.size());
    const std::int64_t rank_b = static_cast<std::int64_t>(rewrite_.graph.type(operands[1]).shape.size());
    Graph& graph = rewrite_.graph;
    const bool along = rows_along(graph, operands[0], rank_a - 1) || rows_along(graph, operands[1], rank_b - 2);
    const std::int64_t zeros = along ? zeros_behind(problem.k) : 0, depth = problem.k + zeros;
    const Halves a = halves_of(graph, operands[0], {rank_a - 1, zeros, both, false}, node.place);
    const Halves b = halves_of(graph, operands[1], {rank_b - 2, zeros, both, true}, node.place);
    stored_.insert(stored_.end(), {a.stored, b.stored});
    const auto product = [&](ValueId left, ValueId right, std::int64_t block) {
      parts_.push_back(append(node.op, {left, right}, {{"dtype", DType::f32}, {"block", block}}, node.place));
      return parts_.back();
    };
    ValueId sum = -1;
    if (both) {
      const ValueId scale = append_literal(rewrite_.graph, Scalar(1 / kLowScale), DType::f32, node.place);
      const ValueId low = masked_alike(id, node, product(a.values, b.values, 2 * depth));
      const ValueId small = append(Op::mul, {low, scale}, {}, node.place);
      const ValueId great = product(part_of_depth(graph, a.values, rank_a - 1, 0, depth, node.place),
                                    part_of_depth(graph, b.values, rank_b - 2, depth, 2 * depth, node.place), kBlock);
      sum = append(Op::add, {great, small}, {}, node.place);
    } else {
      sum = product(a.values, b.values, depth);
    }
    // The smaller first: no product of the other with the sums overflows where the whole does not.
    const ValueId less = append(Op::minimum, {a.unscale, b.unscale}, {}, node.place);
    const ValueId more = append(Op::maximum, {a.unscale, b.unscale}, {}, node.place);
    rewrite_.replace(node.results[0],
                     append(Op::mul, {append(Op::mul, {sum, less}, {}, node.place), more}, {}, node.place));
    return true;
  }

  // The low parts' sums are stored: what a mask of positions hides of the whole is not multiplied for them either.
  ValueId masked_alike(NodeId id, const Node& node, ValueId sums) {
    if (!options_.cost.product_bounds) return sums;
    const auto mask = result_mask(Context(graph_, options_), id);
    const bool known = mask && graph_.value(mask->condition).producer < id &&  // else it is not rewritten yet
                       graph_.type(mask->condition).shape == graph_.type(node.results[0]).shape;
    if (!known) return sums;
    const ValueId zero = append(Op::broadcast_to, {append_literal(rewrite_.graph, Scalar(0.0), DType::f32, node.place)},
                                {{"shape", graph_.type(node.results[0]).shape}}, node.place);
    const ValueId condition = rewrite_[mask->condition];
    return append(Op::where, mask->holds ? std::vector{condition, sums, zero} : std::vector{condition, zero, sums}, {},
                  node.place);
  }

  ContractionElement f16_element() const {
    return contraction_element(DType::f16, DType::f16, DType::f32, false, options_.cost.tensor_cores);
  }

  ValueId append(Op op, std::vector<ValueId> operands, Attrs attrs, const Place& place) {
    return append_one(rewrite_.graph, op, std::move(operands), std::move(attrs), place);
  }

  // The sum over batches, each the product of a part of the depth, and what the parts leave.
  ValueId split(const Node& node, const std::vector<ValueId>& operands, const DepthDivision& division) {
    const Type a = rewrite_.graph.type(operands[0]), b = rewrite_.graph.type(operands[1]);
    const auto axis_a = static_cast<std::int64_t>(a.shape.size()) - 1;
    const auto axis_b = static_cast<std::int64_t>(b.shape.size()) - 2;
    const std::int64_t depth = a.shape.back().constant(), divided = division.parts * division.depth;
    const Dim m = a.shape[a.shape.size() - 2], n = b.shape.back(), parts(division.parts), part(division.depth);
    const bool rest = divided < depth;
    const auto ahead = [&](ValueId operand, std::int64_t axis) {
      return rest ? part_of_depth(rewrite_.graph, operand, axis, 0, divided, node.place) : operand;
    };
    const ValueId rows =
        append(Op::reshape, {ahead(operands[0], axis_a)}, {{"shape", Shape{m, parts, part}}}, node.place);
    const ValueId left = append(Op::transpose, {rows}, {{"perm", std::vector<std::int64_t>{1, 0, 2}}}, node.place);
    const ValueId right =
        append(Op::reshape, {ahead(operands[1], axis_b)}, {{"shape", Shape{parts, part, n}}}, node.place);
    const DType dtype = graph_.type(node.results[0]).dtype;
    const DType wide = is_real(dtype) && size_of(dtype) < 4 ? DType::f32 : dtype;
    Attrs attrs = node.attrs;
    attrs.set("dtype", wide);
    const ValueId products = append(node.op, {left, right}, attrs, node.place);
    ValueId sum = append(Op::sum, {products}, {{"axis", std::vector<std::int64_t>{0}}}, node.place);
    if (rest) {
      const ValueId behind = append(node.op,
                                    {part_of_depth(rewrite_.graph, operands[0], axis_a, divided, depth, node.place),
                                     part_of_depth(rewrite_.graph, operands[1], axis_b, divided, depth, node.place)},
                                    attrs, node.place);
      sum = append(Op::add, {sum, append(Op::reshape, {behind}, {{"shape", Shape{m, n}}}, node.place)}, {}, node.place);
    }
    if (dtype != wide) sum = append(Op::cast, {sum}, {{"dtype", dtype}}, node.place);
    return append(Op::reshape, {sum}, {{"shape", graph_.type(node.results[0]).shape}}, node.place);
  }

  // Puts a copy with aligned rows in the place of an operand that lies in memory, perhaps seen transposed.
  bool pad_rows(ValueId& operand, bool left, const ProductShape& problem, const Place& place) {
    const Node& maker = rewrite_.graph.producer(operand);
    const bool transposed = maker.op == Op::transpose;
    const ValueId rows = transposed ? maker.operands[0] : operand;
    if (std::find(stored_.begin(), stored_.end(), operand) != stored_.end()) return false;  // a copy already
    const Attrs attrs = maker.attrs;
    const Kind kind = kind_of(rewrite_.graph.producer(rows).op);
    if (kind != Kind::contract && kind != Kind::reduce && rewrite_.graph.producer(rows).op != Op::input) return false;
    const Type type = rewrite_.graph.type(rows);
    const std::int64_t extent = type.shape.back().constant();
    if (size_of(type.dtype) != 2 || zeros_behind(extent) == 0 || extent < kRowBytes / 2) return false;
    const CostModel& cost = options_.cost;
    const double copy_us = cost.launch_us + 2 * count(type.shape) * 2 / (cost.bandwidth_gb_s * 1e3);
    const double product_us = problem.flops() / (cost.tensor_tflops * 1e6);
    const double read_us = count(type.shape) * 2 / (cost.bandwidth_gb_s * 1e3);
    const bool pays = (kUnaligned - 1) / 2 * product_us >= kGain * copy_us ||  // each operand's half of what is lost
                      fed_us(options_.cost, problem, left, extent) >=
                          std::max(kGain * (copy_us + read_us), kLeastFed * cost.launch_us);
    if (!pays) return false;
    const ValueId original = operand;
    if (const auto known = aligned_.find(original); known != aligned_.end()) {
      operand = known->second;
      return true;
    }
    const auto last = static_cast<std::int64_t>(type.shape.size()) - 1;
    ValueId& padded = padded_.try_emplace(rows, -1).first->second;
    if (padded < 0) {
      padded = with_zeros(rewrite_.graph, rows, last, zeros_behind(extent), place);
      stored_.push_back(padded);
    }
    operand = part_of_depth(rewrite_.graph, padded, last, 0, extent, place);
    if (transposed) operand = append(Op::transpose, {operand}, attrs, place);
    aligned_.emplace(original, operand);
    return true;
  }

  // Whether neighbours along the axis are neighbours in memory, where the value is stored as it is made.
  bool lies_along(ValueId value, std::int64_t axis) const {
    const Node& maker = rewrite_.graph.producer(value);
    const auto last = static_cast<std::int64_t>(rewrite_.graph.type(value).shape.size()) - 1;
    if (maker.op == Op::transpose) {
      const auto perm = maker.attrs.get<std::vector<std::int64_t>>("perm");
      return lies_along(maker.operands[0], perm[static_cast<std::size_t>(axis)]);
    }
    if (maker.op == Op::slice || maker.op == Op::broadcast_to) {
      const auto before = static_cast<std::int64_t>(rewrite_.graph.type(maker.operands[0]).shape.size()) - 1;
      return lies_along(maker.operands[0], axis - last + before);
    }
    if (maker.op == Op::reshape && axis == last) {
      const Shape& before = rewrite_.graph.type(maker.operands[0]).shape;
      return !before.empty() && lies_along(maker.operands[0], static_cast<std::int64_t>(before.size()) - 1);
    }
    return axis == last;
  }

  // Whether rows of its 16-bit elements begin at 16-byte boundaries, where it is stored as it is made.
  bool lies_in_boxes(ValueId operand) const {
    const Node& maker = rewrite_.graph.producer(operand);
    if (maker.op == Op::transpose || maker.op == Op::slice) return lies_in_boxes(maker.operands[0]);
    return in_whole_boxes(rewrite_.graph.type(operand).shape.back());
  }

  // Whether boxes bring both to warpgroups.
  bool come_in_boxes(const std::vector<ValueId>& operands) const {
    return options_.cost.paired_products && lies_in_boxes(operands[0]) && lies_in_boxes(operands[1]);
  }

  // The operand, stored along the depth, its axis `along`: a copy of it, with rows that begin at 16-byte boundaries,
  // seen as it was.
  ValueId turned(ValueId operand, std::int64_t along, const Place& place) {
    ValueId& result = turned_.try_emplace({operand, along}, -1).first->second;
    if (result >= 0) return result;
    const auto rank = static_cast<std::int64_t>(rewrite_.graph.type(operand).shape.size());
    std::vector<std::int64_t> perm;
    for (std::int64_t axis = 0; axis < rank; ++axis) perm.push_back(axis);
    std::swap(perm[static_cast<std::size_t>(along)], perm[static_cast<std::size_t>(rank - 1)]);
    ValueId copy = along == rank - 1 ? operand : append(Op::transpose, {operand}, {{"perm", perm}}, place);
    const std::int64_t depth = rewrite_.graph.type(copy).shape.back().constant(),
                       more = (kRowBytes - depth % kRowBytes) % kRowBytes;
    copy = with_zeros(rewrite_.graph, copy, rank - 1, more, place);
    stored_.push_back(copy);
    if (more > 0) copy = part_of_depth(rewrite_.graph, copy, rank - 1, 0, depth, place);
    return result = along == rank - 1 ? copy : append(Op::transpose, {copy}, {{"perm", perm}}, place);
  }

  // Tensor cores take f8 as it is stored along the depth only; what lies across it would be multiplied as f16.
  bool turn_f8(const Node& node, std::vector<ValueId>& operands, const ProductShape& problem) {
    const auto dtype = [&](ValueId value) { return rewrite_.graph.type(value).dtype; };
    if (!options_.cost.tensor_cores.f8 ||
        !may_multiply_f8(dtype(operands[0]), dtype(operands[1]), graph_.type(node.results[0]).dtype,
                         node.attrs.get_or<std::int64_t>("block", 0)) ||
        problem.m <= kStreamedRows || problem.n <= kStreamedRows)
      return false;
    const auto rank = [&](ValueId value) { return static_cast<std::int64_t>(rewrite_.graph.type(value).shape.size()); };
    const std::int64_t along[] = {rank(operands[0]) - 1, rank(operands[1]) - 2};
    const bool across[] = {!lies_along(operands[0], along[0]), !lies_along(operands[1], along[1])};
    if (!across[0] && !across[1]) return false;
    double copies_us = 0;
    for (const int i : {0, 1})
      if (across[i])
        copies_us += options_.cost.launch_us +
                     2 * count(rewrite_.graph.type(operands[i]).shape) / (options_.cost.bandwidth_gb_s * 1e3);
    if (problem.flops() / (options_.cost.tensor_tflops * 1e6) / 2 < kGain * copies_us) return false;
    for (const int i : {0, 1})
      if (across[i]) operands[i] = turned(operands[i], along[i], node.place);
    return true;
  }

  // Each block of a stream reads the few rows beside its own of the matrix, two bytes at a time where they lie across
  // the depth.
  bool turn_few(std::vector<ValueId>& operands, const ProductShape& problem, const ContractionElement& element,
                const Place& place) {
    const std::int64_t few = std::min(problem.m, problem.n), many = std::max(problem.m, problem.n);
    if (few == 1 || few > kStreamedRows || !element.tensor_cores || size_of(element.dtype) != 2) return false;
    ValueId& operand = operands[problem.m <= problem.n ? 0 : 1];
    const Type type = rewrite_.graph.type(operand);
    const auto rank = static_cast<std::int64_t>(type.shape.size());
    const std::int64_t along = problem.m <= problem.n ? rank - 1 : rank - 2;
    if (lies_along(operand, along)) return false;
    if (few >= kLeastOfBoxes && come_in_boxes(operands)) return false;
    const CostModel& cost = options_.cost;
    const auto us = [&](double elements) { return elements * size_of(element.dtype) / (cost.bandwidth_gb_s * 1e3); };
    const double copy_us = cost.launch_us + 2 * us(count(type.shape));
    const double matrix_us = us(problem.batch * static_cast<double>(many) * static_cast<double>(problem.k));
    if ((kFewAcross - 1) * matrix_us < kGain * copy_us) return false;
    operand = turned(operand, along, place);
    return true;
  }

  const Graph& graph_;
  const PlanOptions& options_;
  const std::set<NodeId> of_attention_;
  Rewrite rewrite_;
  const std::vector<std::vector<NodeId>> users_;  // of each value
  std::set<NodeId> cut_;                          // products that their halves stand for
  std::vector<ValueId> stored_, parts_;
  std::map<ValueId, ValueId> padded_;                           // by what they are copies of
  std::map<std::pair<ValueId, std::int64_t>, ValueId> turned_;  // by what they are copies of, and the axis
  std::map<ValueId, ValueId> aligned_;  // by the operands that they stand for: two products of one stay products of one
};

bool has_contraction(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return kind_of(node.op) == Kind::contract; });
}

}  // namespace

Products arrange_products(Graph graph, const PlanOptions& options, bool wide) {
  const bool any = options.pad_rows || options.turn_f8 || options.turn_few || options.split_depth ||
                   options.split_f32 || options.pair_products;
  if (!any || !has_contraction(graph)) return {std::move(graph), {}, {}, {}};
  AttentionSearch attention;
  if (options.fuse && options.find_attention) attention = find_attention(Context(graph, options), wide);
  std::set<NodeId> of_attention;
  for (const std::vector<NodeId>& nodes : attention.nodes) of_attention.insert(nodes.begin(), nodes.end());
  std::vector<Refusal> apart;
  std::copy_if(attention.refusals.begin(), attention.refusals.end(), std::back_inserter(apart),
               [](const Refusal& refusal) { return refusal.rule == Rule::attention_apart; });
  return ArrangeProducts(graph, options, std::move(of_attention)).run(std::move(apart));
}

}  // namespace tenon::ir::fusion
