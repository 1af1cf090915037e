// The demand-driven walk that fills a kernel's body. Equal demands (same value, coordinates and guards) share one
// instruction.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "codegen/analysis/key_bounds.h"
#include "codegen/lower/affine.h"
#include "codegen/lower/body.h"
#include "codegen/lower/body_builder.h"
#include "codegen/lower/masked_scores.h"
#include "ir/fusion/layout.h"
#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/graph/view.h"
#include "ir/interpret/numerics.h"
#include "ir/ops/formats.h"

namespace tenon::codegen {
namespace {

using ir::Op;

constexpr std::size_t kMostInstructions = 1 << 17;
constexpr std::size_t kMostCoordinateText = 1 << 16;  // bytes of one element's coordinates and guards
constexpr std::size_t kMostText = std::size_t{256} << 20;

class Demand {
 public:
  Demand(Kernel& kernel, const ir::Plan& plan, const ir::Group& group, const Domain& domain, const BodyOptions& options)
      : kernel_(kernel),
        graph_(plan.graph),
        domain_(domain),
        context_(kernel.context()),
        body_(kernel),
        options_(options),
        has_outer_(!group.outer.empty()),
        own_kernel_(group.kernel_class != ir::KernelClass::map) {
    if (group.kernel_class == ir::KernelClass::attend) {
      sums_of_score_ = sums_of_score(graph_, group.attention);
      lone_selection_ = lone_selection(graph_, group.attention);
    }
    for (ir::ValueId input : group.inputs) add_operand(input, false);
    for (ir::ValueId output : group.outputs) add_operand(output, true);
    for (const auto& [value, layouts] : ir::computed_layouts(graph_, group)) find_place(value, layouts);
  }

  void store(ir::ValueId output, const ir::Layout& layout) {
    const Index offset = offset_of(layout, domain_, context_);
    const Shape& shape = graph_.type(output).shape;
    const auto at = coordinates_of(layout, shape, domain_, context_);
    InstrId value = demand(output, at ? *at : delinearize(offset, shape, context_), {});
    if (kernel_.instr(value).kind == InstrKind::round) value = kernel_.instr(value).args[0];  // the store rounds
    Access access{written_.at(output), offset, {}};
    // A result smaller than the domain is written where the axes it does not vary along are 0, one of outer reductions
    // when they are known.
    const bool of_outer = has_outer_ && outer_values(kernel_)[static_cast<std::size_t>(value)];
    for (std::size_t axis = 0; axis < kernel_.axes.size(); ++axis)
      if (!of_outer && !kernel_.axes[axis].reduced && !access.offset.depends_on(static_cast<int>(axis)) &&
          !kernel_.axes[axis].extent.is(1))
        access.guards.push_back({Index::axis(static_cast<int>(axis)), Dim(1)});
    kernel_.stores.push_back({access, value});
  }

  // The instruction that combines axes to the value, put into the body if no store needs it.
  InstrId combine(ir::ValueId value) {
    InstrId id = unrounded(value, places_.at(value), {});
    while (kernel_.instr(id).axes.empty()) id = kernel_.instr(id).args.at(0);  // a cast of what was summed in f64
    return id;
  }

 private:
  void add_operand(ir::ValueId value, bool written) {
    const int number = static_cast<int>(kernel_.operands.size());
    (written ? written_ : read_)[value] = number;
    const int same_kind = static_cast<int>(written ? written_.size() : read_.size()) - 1;
    const bool given = std::find(graph_.inputs.begin(), graph_.inputs.end(), value) != graph_.inputs.end();
    kernel_.operands.push_back({graph_.type(value).dtype, graph_.type(value).shape, written,
                                fmt::format("{}{}", written ? "out" : "in", same_kind), !written && !given});
  }

  // A value that the group needs in one place has the coordinates that the plan knows, whichever views led to it: those
  // that index arithmetic finds behind views may say the same less simply, and seem to vary along more axes.
  void find_place(ir::ValueId value, const std::vector<ir::Layout>& layouts) {
    const ir::Layout* layout = only_place(value, layouts);
    if (layout == nullptr) return;
    const Shape& shape = graph_.type(value).shape;
    if (auto at = coordinates_of(*layout, shape, domain_, context_)) {
      places_[value] = std::move(*at);
    } else if (at_its_own_point(value)) {
      places_[value] = delinearize(offset_of(*layout, domain_, context_), shape, context_);
    }
  }

  // The one plain layout of a value. Beside it another says the same of what is made at its own points only: that of
  // views which cut it unevenly and put it together again.
  const ir::Layout* only_place(ir::ValueId value, const std::vector<ir::Layout>& layouts) const {
    const auto plain = [](const ir::Layout& layout) { return ir::fusion::is_plain(layout); };
    if (layouts.size() != 1 && !(own_kernel_ && at_its_own_point(value))) return nullptr;
    if (std::count_if(layouts.begin(), layouts.end(), plain) != 1) return nullptr;
    return &*std::find_if(layouts.begin(), layouts.end(), plain);
  }

  // Reductions and contractions are made at their own points whoever asks (ir/fusion/plan.h), so that guards of the
  // place where one is needed would only make a second of it.
  bool at_its_own_point(ir::ValueId value) const {
    const ir::Kind kind = ir::kind_of(graph_.producer(value).op);
    return read_.count(value) == 0 && (kind == ir::Kind::reduce || kind == ir::Kind::contract);
  }

  // A value that some kernel stores is the rounded one for all that use it here.
  InstrId demand(ir::ValueId value, const Coordinates& at, const std::vector<Guard>& wanted) {
    const InstrId id = unrounded(value, at, wanted);
    return options_.uses.settled[static_cast<std::size_t>(value)] ? body_.rounded(id) : id;
  }

  InstrId unrounded(ir::ValueId value, const Coordinates& found, const std::vector<Guard>& wanted) {
    const auto place = places_.find(value);
    const Coordinates& at = place == places_.end() ? found : place->second;
    const std::vector<Guard> guards = at_its_own_point(value) ? std::vector<Guard>{} : wanted;
    std::string key = std::to_string(value);
    for (const Index& index : at) key += "," + index.str();
    for (const Guard& guard : guards) key += ";" + guard.index.str() + "<" + guard.bound.str();
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    check_size(key.size());
    const InstrId id = compute(value, at, guards);
    known_.emplace(std::move(key), id);
    return id;
  }

  // The planner bounds what a kernel computes again at other places (PlanOptions::max_places). Where it was told not
  // to, or counts otherwise, this ends what would take all memory.
  void check_size(std::size_t coordinates) {
    written_out_ += coordinates;
    if (coordinates <= kMostCoordinateText && written_out_ <= kMostText && kernel_.body.size() <= kMostInstructions)
      return;
    throw Error(
        ErrorKind::resource,
        fmt::format("a kernel of '{}' needs its values at too many places: it has more than {} instructions, or "
                    "coordinates that would fill {} MB",
                    graph_.name, kMostInstructions, kMostText >> 20),
        {}, "leave 'places' switched on (tenon switches), or return a value on the way, which is then stored");
  }

  InstrId compute(ir::ValueId value, const Coordinates& at, const std::vector<Guard>& guards) {
    const ir::Type& type = graph_.type(value);
    if (const auto input = read_.find(value); input != read_.end())
      return body_.load(input->second, type.shape, at, guards);
    const ir::NodeId id = graph_.value(value).producer;
    const ir::Node& node = graph_.node(id);
    switch (ir::kind_of(node.op)) {
      case ir::Kind::map: {
        const InstrId made = map(node, type, at, guards);
        kernel_.body[static_cast<std::size_t>(made)].reused = options_.uses.reused[static_cast<std::size_t>(value)];
        return made;
      }
      case ir::Kind::reduce: return reduce(id, node, type, at, guards);
      case ir::Kind::contract: return contract(id, node, type, at, guards);
      case ir::Kind::random: return random(node, type, at, guards);
      case ir::Kind::source: return source(node, type, at);
      case ir::Kind::view: return view(node, type, at, guards);
      case ir::Kind::composite: break;
    }
    TENON_CHECK(false, "a plan holds the composite " + std::string(ir::name_of(node.op)));
    return -1;
  }

  // ---- nodes ----

  // A rounded value decides something here, so that fused and unfused plans decide alike (docs/numerics.md).
  static bool decides(const ir::OpInfo& op, DType from, DType to) {
    return (op.yields == ir::Yields::Boolean && is_real(from)) || op.op == Op::bitcast ||
           (op.op == Op::cast && is_real(from) && !is_real(to)) || op.yields == ir::Yields::Index;
  }

  InstrId map(const ir::Node& node, const ir::Type& type, const Coordinates& at, const std::vector<Guard>& guards) {
    std::vector<InstrId> args;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const Coordinates operand_at = operand_coordinates(graph_, node, i, at, {}, context_);
      InstrId arg = demand(node.operands[i], operand_at, guards);
      if (decides(ir::info(node.op), kernel_.instr(arg).dtype, type.dtype)) arg = body_.rounded(arg);
      args.push_back(arg);
    }
    if (graph_.value(node.results[0]).producer == lone_selection_) hide_wholly(type.dtype, args);
    if (sums_of_score_.count(graph_.value(node.results[0]).producer) != 0)
      if (const InstrId sum = masked_sum(type.dtype, args); sum >= 0) return sum;
    if (const InstrId fused = contracted(node.op, type.dtype, args, args); fused >= 0) return fused;
    return body_.map(node.op, type.dtype, std::move(args));
  }

  // A weight of the lowest number is 0 beside any other. So is one of -inf, and masks are one.
  void hide_wholly(DType dtype, std::vector<InstrId>& args) {
    for (const std::size_t side : {1, 2})
      if (is_lowest(kernel_, args[side]) && ir::real_format(dtype).has_infinity &&
          leaves_each_query_a_key(kernel_, {args[0], side == 2}))
        args[side] = body_.literal(dtype, -std::numeric_limits<double>::infinity());
  }

  // In a plan without fusion a product that a mask hides is rounded ahead of the sum.
  InstrId masked_sum(DType dtype, const std::vector<InstrId>& args) {
    const auto append = [&](Instr instr) { return body_.add(std::move(instr)); };
    return codegen::masked_sum(kernel_, args[0], args[1], append, [&](InstrId x, InstrId y) {
      const InstrId fused = contracted(Op::add, dtype, {x, y}, args);
      return fused >= 0 ? fused : body_.map(Op::add, dtype, {x, y});
    });
  }

  // As an fma, where the options allow it; -1 elsewhere.
  InstrId contracted(Op op, DType dtype, const std::vector<InstrId>& args, const std::vector<InstrId>& used) {
    return options_.contraction ? body_.contracted(op, dtype, args, used) : -1;
  }

  // The indices of a reduction's reduced dimensions. One that reduces only extents of 1 needs no loops of its kernel.
  std::vector<Index> reduced_indices(ir::NodeId id, const ir::Node& node) const {
    if (const auto found = domain_.reduced.find(id); found != domain_.reduced.end()) return found->second;
    const Shape& shape = graph_.type(node.operands[0]).shape;
    const std::vector<int> axes = ir::reduced_axes(node, static_cast<int>(shape.size()));
    for (int axis : axes)
      TENON_CHECK(shape[static_cast<std::size_t>(axis)].is(1),
                  fmt::format("reduction {} has no axes in its kernel", ir::name_of(node.op)));
    return std::vector<Index>(axes.size(), Index(0));
  }

  InstrId reduce(ir::NodeId id, const ir::Node& node, const ir::Type& type, const Coordinates& at,
                 const std::vector<Guard>& guards) {
    const std::vector<Index> reduced = reduced_indices(id, node);
    InstrId arg = demand(node.operands[0], operand_coordinates(graph_, node, 0, at, reduced, context_), guards);
    if (decides(ir::info(node.op), kernel_.instr(arg).dtype, type.dtype)) arg = body_.rounded(arg);
    if (node.attrs.has("dtype") && kernel_.instr(arg).dtype != type.dtype) arg = body_.map(Op::cast, type.dtype, {arg});
    const std::vector<int> axes = body_.axes_in(reduced);
    if (axes.empty()) {  // of one element: itself, at index 0; but 0 + -0 is +0
      if (node.op == Op::sum && is_real(type.dtype))
        return body_.map(Op::add, type.dtype, {arg, body_.literal(type.dtype, 0.0)});
      return ir::info(node.op).yields == ir::Yields::Index ? body_.literal(type.dtype, std::int64_t{0}) : arg;
    }
    Instr instr;
    instr.kind = InstrKind::reduce;
    instr.dtype = type.dtype;
    instr.op = node.op;
    instr.args = {arg};
    instr.axes = axes;
    instr.note = ir::name_of(node.op);
    return body_.add(std::move(instr));
  }

  InstrId contract(ir::NodeId id, const ir::Node& node, const ir::Type& type, const Coordinates& at,
                   const std::vector<Guard>& guards) {
    const std::vector<Index>& k = domain_.reduced.at(id);
    Instr instr;
    instr.kind = InstrKind::contract;
    // f64 operands are summed in f64, whatever the result.
    const bool in_double = graph_.type(node.operands[0]).dtype == DType::f64;
    instr.dtype = in_double ? DType::f64 : type.dtype;
    for (std::size_t i = 0; i < 2; ++i)
      instr.args.push_back(demand(node.operands[i], operand_coordinates(graph_, node, i, at, k, context_), guards));
    instr.axes = body_.axes_in(k);
    instr.tf32 = node.attrs.get_or<bool>("tf32", false);
    instr.block = static_cast<int>(node.attrs.get_or<std::int64_t>("block", 0));
    // One number for each point of its tile, also where its operands stand still: copies of one key, or no depth.
    for (const Index& index : at) instr.depends |= body_.axes_of(index);
    instr.note = ir::name_of(node.op);
    const InstrId sum = body_.add(std::move(instr));
    return in_double && type.dtype != DType::f64 ? body_.map(Op::cast, type.dtype, {sum}) : sum;
  }

  InstrId random(const ir::Node& node, const ir::Type& type, const Coordinates& at, const std::vector<Guard>& guards) {
    Instr instr;
    instr.kind = InstrKind::random;
    instr.dtype = type.dtype;
    instr.args = {demand(node.operands[0], {}, guards)};
    instr.index = linearize(at, type.shape);
    instr.stream = node.attrs.get_or<std::int64_t>("stream", 0);
    instr.word = static_cast<int>(node.attrs.get_or<std::int64_t>("word", -1));
    instr.note = ir::name_of(node.op);
    return body_.add(std::move(instr));
  }

  InstrId source(const ir::Node& node, const ir::Type& type, const Coordinates& at) {
    if (node.op == Op::full) return body_.literal(type.dtype, node.attrs.get<ir::Scalar>("value"));
    if (node.op == Op::dim_value)
      return body_.index(type.dtype, Index(node.attrs.get<std::vector<Dim>>("value").at(0)), "dim");
    TENON_CHECK(node.op == Op::iota, "a graph input must be among the group's inputs");
    const auto rank = static_cast<std::int64_t>(at.size());
    const std::int64_t axis = node.attrs.get_or<std::int64_t>("axis", 0);
    return body_.index(type.dtype, at[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)], "iota");
  }

  // ---- views ----

  InstrId view(const ir::Node& node, const ir::Type& type, const Coordinates& at, const std::vector<Guard>& guards) {
    if (node.op == Op::pad) return pad(node, type, at, guards);
    if (node.op == Op::concat) return concat(node, type, at, guards);
    if (node.op == Op::take) return take(node, at, guards);
    return demand(node.operands[0], operand_coordinates(graph_, node, 0, at, {}, context_), guards);
  }

  // The place `index` of a view along an axis of its operand: one of 1 has no other place than 0.
  static Index place(const Index& index, const Dim& extent) { return extent.is(1) ? Index(0) : index; }

  // Appends the guard unless it always holds.
  void require(std::vector<Guard>& guards, const Index& index, const Dim& bound) const {
    if (!proven_inside(index, bound, context_)) guards.push_back({index, bound});
  }

  static std::vector<Guard> both(std::vector<Guard> a, const std::vector<Guard>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  InstrId pad(const ir::Node& node, const ir::Type& type, const Coordinates& at, const std::vector<Guard>& guards) {
    const auto& low = node.attrs.get<std::vector<Dim>>("low");
    const Shape& shape = graph_.type(node.operands[0]).shape;
    Coordinates inner = at;
    std::vector<Guard> condition;
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const Index moved = at[i] - Index(low[i]);
      require(condition, moved, shape[i]);
      inner[i] = place(moved, shape[i]);
    }
    const InstrId value = demand(node.operands[0], inner, both(guards, condition));
    if (condition.empty()) return value;
    const InstrId fill = body_.literal(type.dtype, node.attrs.get_or<ir::Scalar>("value", std::int64_t{0}));
    return body_.select(condition, type.dtype, value, fill);
  }

  InstrId concat(const ir::Node& node, const ir::Type& type, const Coordinates& at, const std::vector<Guard>& guards) {
    const auto rank = static_cast<std::int64_t>(at.size());
    const std::int64_t given = node.attrs.get_or<std::int64_t>("axis", 0);
    const auto axis = static_cast<std::size_t>(given < 0 ? given + rank : given);
    InstrId result = -1;
    Dim end = type.shape[axis];
    for (std::size_t i = node.operands.size();
         i-- > 0;) {  // from the last: each earlier piece is chosen before the rest
      const Dim extent = graph_.type(node.operands[i]).shape[axis];
      const Dim begin = end - extent;
      end = begin;
      if (extent.is(0)) continue;
      const Index moved = at[axis] - Index(begin);
      Coordinates inner = at;
      inner[axis] = place(moved, extent);
      std::vector<Guard> condition;
      require(condition, moved, extent);
      const InstrId value = demand(node.operands[i], inner, both(guards, condition));
      result = result < 0 || condition.empty() ? value : body_.select(condition, type.dtype, value, result);
    }
    return result < 0 ? body_.literal(type.dtype, std::int64_t{0}) : result;
  }

  InstrId take(const ir::Node& node, const Coordinates& at, const std::vector<Guard>& guards) {
    const Shape& table = graph_.type(node.operands[0]).shape;
    const std::size_t index_rank = graph_.type(node.operands[1]).shape.size();
    const std::int64_t given = node.attrs.get_or<std::int64_t>("axis", 0);
    const auto axis = static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(table.size()) : given);
    const auto first = at.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto last = first + static_cast<std::ptrdiff_t>(index_rank);
    Coordinates inner(at.begin(), first);
    if (table[axis].is(1)) {  // wherever the index points, there is one element
      inner.push_back(Index(0));
    } else {
      const std::size_t before = kernel_.body.size();
      const InstrId index = demand(node.operands[1], Coordinates(first, last), guards);
      const std::optional<Index> affine = affine_value(kernel_, index);
      if (affine && proven_inside(*affine, table[axis], context_)) {
        inner.push_back(*affine);
        forget_from(before);
      } else {
        inner.push_back(Index::value(element_position(index, table[axis]), table[axis]));
      }
    }
    inner.insert(inner.end(), last, at.end());
    if (table[axis].bounds(kernel_.symbols).min >= 1) return demand(node.operands[0], inner, guards);
    // An empty table has no element: nothing is read of it, and what is computed of what was not read is 0.
    const std::vector<Guard> there = {{Index(0), table[axis]}};
    const InstrId id = demand(node.operands[0], inner, both(guards, there));
    if (kernel_.instr(id).kind == InstrKind::load) return id;
    const DType dtype = graph_.type(node.operands[0]).dtype;
    return body_.select(there, dtype, id, body_.literal(dtype, std::int64_t{0}));
  }

  // Instructions that nobody has asked for but who just did.
  void forget_from(std::size_t first) {
    kernel_.body.erase(kernel_.body.begin() + static_cast<std::ptrdiff_t>(first), kernel_.body.end());
    std::erase_if(known_, [&](const auto& one) { return one.second >= static_cast<InstrId>(first); });
  }

  // take's rule: negative indices count from the end, then all are clamped.
  InstrId element_position(InstrId index, const Dim& extent) {
    InstrId position = kernel_.instr(index).dtype == DType::i64 ? index : body_.map(Op::cast, DType::i64, {index});
    const InstrId zero = body_.literal(DType::i64, std::int64_t{0});
    const InstrId from_end =
        body_.map(Op::add, DType::i64, {position, body_.index(DType::i64, Index(extent), "extent")});
    position =
        body_.map(Op::where, DType::i64, {body_.map(Op::less, DType::bool_, {position, zero}), from_end, position});
    return body_.map(Op::clamp, DType::i64, {position, zero, body_.index(DType::i64, Index(extent - 1), "last")});
  }

  Kernel& kernel_;
  const ir::Graph& graph_;
  const Domain& domain_;
  IndexContext context_;
  BodyBuilder body_;
  const BodyOptions& options_;
  bool has_outer_;
  bool own_kernel_;  ///< its reductions and contractions are loops: a map has those over extents of 1, anywhere
  ir::NodeId lone_selection_ = -1;      ///< attend: it may select the lowest number in place of -inf
  std::set<ir::NodeId> sums_of_score_;  ///< attend: a mask that one adds is a selection
  std::map<ir::ValueId, int> read_, written_;
  std::map<ir::ValueId, Coordinates> places_;  ///< of values computed here that are needed in one place only
  std::unordered_map<std::string, InstrId> known_;
  std::size_t written_out_ = 0;  // bytes of its keys
};

}  // namespace

void build_body(Kernel& kernel, const ir::Plan& plan, const ir::Group& group, const Domain& domain,
                const BodyOptions& options) {
  Demand demand(kernel, plan, group, domain, options);
  // An output without elements is not written: its place on the domain means nothing. (Where all are empty, the launch
  // is.)
  const auto empty = [&](ir::ValueId output) {
    return element_count(plan.graph.type(output).shape).bounds(kernel.symbols).max <= 0;
  };
  const bool all_empty = std::all_of(group.outputs.begin(), group.outputs.end(), empty);
  for (std::size_t i = 0; i < group.outputs.size(); ++i)
    if (all_empty || !empty(group.outputs[i])) demand.store(group.outputs[i], group.layouts[i]);
  // Values without columns leave an attention its rows: its parts are there all the same.
  if (group.kernel_class == ir::KernelClass::attend)
    kernel.attention =
        attention_in(kernel, plan.graph, group.attention, [&](ir::ValueId value) { return demand.combine(value); });
}

}  // namespace tenon::codegen
