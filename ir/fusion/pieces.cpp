// See pieces.h.
#include "ir/fusion/pieces.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "ir/graph/build.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kShortPiece = 2048;  // bytes
constexpr double kLeastPieces = 32;   // of a row: what the columns leave in memory is then little beside what they read
constexpr double kLeastBetween = 512;  // bytes of pieces that lie one behind the other
constexpr double kVector = 16;         // bytes
constexpr double kLongPiece = 256;     // elements: vectors are peeled off rows of so many

constexpr std::size_t kMostNodes = 64;  // looked at before a reduction

using Axes = std::vector<std::int64_t>;

// A reduction whose rows are pieces.
struct Pieces {
  Shape merged;      // of what is reduced, with neighbouring axes joined where all or none of them are reduced
  Axes reduced;      // of these
  Shape shape;       // and with a long axis cut in two, where its rows are what is short
  Axes first, then;  // of `shape`, those of the two steps: from one short piece to the next, then along a piece; along
                     // long ones first
  double count = 1;  // elements that the first step makes one
  std::int64_t cut = -1, whole = 0;  // that long axis, of which so many elements are whole pieces
};

// Whether columns are so few bytes of a row that no vector divides. Of those that one does threads take row after row,
// which lie one behind the other.
bool are_few(double row) { return row < kShortPiece && std::fmod(row, kVector) != 0; }

class PiecesFirst {
 public:
  explicit PiecesFirst(const Graph& graph) : graph_(graph), rewrite_(graph) {}

  Graph run(bool& found) {
    for (const Node& node : graph_.nodes) {
      const std::optional<ValueId> x = deviates_from_mean(node);
      const std::optional<Pieces> pieces = pieces_of(node, x);
      found = found || pieces.has_value();
      if (!pieces)
        rewrite_.copy(node);
      else
        rewrite_.replace(node.results[0],
                         shaped(node, x ? squares_in_steps(*x, node, *pieces) : in_steps(node, *pieces)));
    }
    return rewrite_.finish();
  }

 private:
  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }
  ValueId append(Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    return append_one(rewrite_.graph, op, std::move(operands), std::move(attrs));
  }
  ValueId reduce(Op op, ValueId x, const Axes& axes) {
    return append(op, {x}, Attrs{{"axis", axes}, {"keepdims", true}});
  }

  // What maps make the elements of a value of.
  struct Made {
    double least = 0;     // bytes of the narrowest element: what is reduced of the same tensor is cut alike
    bool uniform = true;  // of nothing that some axes share, along which rows that were joined would come apart again
    std::vector<bool> apart;  // axis: something varies along it and not along the one before it, or the reverse
  };
  // Marks where an operand of `own` shape tells neighbouring axes of `all` apart.
  static void mark_apart(const Shape& own, const Shape& all, std::vector<bool>& apart) {
    std::optional<bool> before;
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
      if (all[axis].is(1)) continue;
      const std::size_t missing = all.size() - own.size();
      const bool varies = axis >= missing && !own[axis - missing].is(1);
      if (before && *before != varies) apart[axis] = true;
      before = varies;
    }
  }
  Made made_of(ValueId value) const {
    const Shape& all = shape(value);
    Made made{static_cast<double>(size_of(graph_.type(value).dtype)), true, std::vector<bool>(all.size(), false)};
    std::set<ValueId> seen;
    std::vector<ValueId> pending{value};
    while (!pending.empty() && seen.size() < kMostNodes) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (!seen.insert(next).second) continue;
      if (shape(next) != all) {
        made.uniform = made.uniform && element_count(shape(next)).is(1);
        mark_apart(shape(next), all, made.apart);
        continue;
      }
      made.least = std::min(made.least, static_cast<double>(size_of(graph_.type(next).dtype)));
      const Node& node = graph_.producer(next);
      if (kind_of(node.op) == Kind::map || node.op == Op::broadcast_to)
        pending.insert(pending.end(), node.operands.begin(), node.operands.end());
    }
    made.uniform = made.uniform && pending.empty();
    return made;
  }

  static bool goes_in_steps(Op op) { return op == Op::sum || op == Op::max || op == Op::min || op == Op::prod; }

  // With axes joined that are not `apart`, and those of extent 1 left out. Nothing for what has no elements.
  std::optional<Pieces> joined(const Node& node, const std::vector<bool>& apart) const {
    const Shape& all = shape(node.operands[0]);
    const std::vector<int> reduced = reduced_axes(node, static_cast<int>(all.size()));
    Pieces pieces;
    bool before = false;
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
      if (!all[axis].is_constant() || all[axis].is(0)) return std::nullopt;
      if (all[axis].is(1)) continue;
      const bool is_reduced = std::count(reduced.begin(), reduced.end(), static_cast<int>(axis)) > 0;
      if (!pieces.merged.empty() && is_reduced == before && !apart[axis]) {
        pieces.merged.back() = pieces.merged.back() * all[axis];
        continue;
      }
      if (is_reduced) pieces.reduced.push_back(static_cast<std::int64_t>(pieces.merged.size()));
      pieces.merged.push_back(all[axis]);
      before = is_reduced;
    }
    if (pieces.merged.size() < 2) return std::nullopt;
    pieces.shape = pieces.merged;
    return pieces;
  }

  // Of a reduction, of the squares of x less its mean where that is given.
  std::optional<Pieces> pieces_of(const Node& node, std::optional<ValueId> x) const {
    if (!goes_in_steps(node.op)) return std::nullopt;
    const Made made = made_of(x.value_or(node.operands[0]));
    std::optional<Pieces> pieces = short_pieces_of(node, made);
    return pieces ? pieces : long_pieces_of(node, made);
  }

  // A piece that no vector divides, as long as a row that one may be peeled off.
  std::optional<Pieces> long_pieces_of(const Node& node, const Made& made) const {
    std::optional<Pieces> pieces = joined(node, made.apart);
    const auto last = pieces ? static_cast<std::int64_t>(pieces->merged.size()) - 1 : 0;
    if (!pieces || pieces->reduced.size() < 2 || pieces->reduced.back() != last) return std::nullopt;
    pieces->count = static_cast<double>(pieces->merged.back().constant());
    if (pieces->count < kLongPiece || std::fmod(pieces->count * made.least, kVector) == 0) return std::nullopt;
    pieces->first = {last};
    pieces->then = pieces->reduced;
    pieces->then.pop_back();
    return pieces;
  }

  std::optional<Pieces> short_pieces_of(const Node& node, const Made& made) const {
    std::optional<Pieces> pieces = joined(node, std::vector<bool>(made.apart.size(), false));
    if (!pieces || pieces->reduced.empty()) return std::nullopt;
    const auto last = static_cast<std::int64_t>(pieces->merged.size()) - 1;
    const bool inside = pieces->reduced.back() == last;  // pieces, rather than few columns
    const auto extent = [&](std::int64_t axis) {
      return static_cast<double>(pieces->merged[static_cast<std::size_t>(axis)].constant());
    };
    pieces->first = pieces->reduced;
    if (inside) {
      pieces->then = {last};
      pieces->first.pop_back();
    }
    for (const std::int64_t axis : pieces->first) pieces->count *= extent(axis);
    const double row = made.least * extent(last);  // the piece, or what the columns take of a row
    if (!inside) return made.uniform ? cut_between(std::move(*pieces), row) : std::nullopt;
    if (row > kShortPiece || pieces->count < kLeastPieces || row * extent(last - 1) < kLeastBetween)
      return std::nullopt;
    return pieces;
  }

  // So many of `all` rows as vectors divide together: if there is such a number that leaves none over, for which two
  // more kernels would be launched.
  static std::int64_t rows_between(double row, std::int64_t all) {
    constexpr std::int64_t kTimes = 4;  // the least number
    const auto fits = [&](std::int64_t rows) {
      const double bytes = static_cast<double>(rows) * row;
      return bytes >= kLeastBetween && std::fmod(bytes, kVector) == 0;
    };
    std::int64_t least = 2;
    while (!fits(least)) ++least;
    for (std::int64_t rows = least; rows <= kTimes * least; ++rows)
      if (fits(rows) && all % rows == 0) return rows;
    return least;
  }

  // Few columns: several rows become one that vectors divide.
  static std::optional<Pieces> cut_between(Pieces pieces, double row) {
    if (!are_few(row)) return std::nullopt;
    pieces.cut = pieces.first.back();
    Dim& extent = pieces.shape[static_cast<std::size_t>(pieces.cut)];
    const std::int64_t rows = rows_between(row, extent.constant()), turns = extent.constant() / rows;
    pieces.count *= static_cast<double>(turns) / static_cast<double>(extent.constant());
    if (pieces.count < kLeastPieces) return std::nullopt;
    pieces.whole = turns * rows;
    extent = Dim(turns);
    pieces.shape.insert(pieces.shape.begin() + static_cast<std::ptrdiff_t>(pieces.cut) + 1, Dim(rows));
    pieces.then = {pieces.cut + 1};
    return pieces;
  }

  const Node& behind_views(ValueId value) const {
    const Node* node = &graph_.producer(value);
    while (node->op == Op::broadcast_to || node->op == Op::reshape) node = &graph_.producer(node->operands[0]);
    return *node;
  }

  // x, where `squares` adds those of x less its mean over the same axes, which is a sum by a literal.
  std::optional<ValueId> deviates_from_mean(const Node& squares) const {
    if (squares.op != Op::sum) return std::nullopt;
    const Node& square = graph_.producer(squares.operands[0]);
    if (square.op != Op::mul || square.operands[0] != square.operands[1]) return std::nullopt;
    const Node& deviation = graph_.producer(square.operands[0]);
    const DType dtype = graph_.type(square.results[0]).dtype;
    if (deviation.op != Op::sub || !is_real(dtype) || size_of(dtype) < 4) return std::nullopt;
    const ValueId x = deviation.operands[0];
    const Node& mean = behind_views(deviation.operands[1]);
    if (mean.op != Op::div && mean.op != Op::mul) return std::nullopt;
    const Node& sum = behind_views(mean.operands[0]);
    const auto rank = static_cast<int>(shape(x).size());
    if (sum.op != Op::sum || sum.operands[0] != x || behind_views(mean.operands[1]).op != Op::full ||
        reduced_axes(sum, rank) != reduced_axes(squares, rank))
      return std::nullopt;
    return x;
  }

  // What is reduced, in f32 where it is narrower: the first step must not round.
  ValueId wide(const Node& node) {
    const ValueId x = rewrite_[node.operands[0]];
    const DType dtype = graph_.type(node.results[0]).dtype;
    return is_real(dtype) && size_of(dtype) < 4 && node.op != Op::max && node.op != Op::min
               ? append(Op::cast, {x}, Attrs{{"dtype", DType::f32}})
               : x;
  }

  ValueId reshaped(ValueId value, const Shape& shape) {
    return rewrite_.graph.type(value).shape == shape ? value : append(Op::reshape, {value}, Attrs{{"shape", shape}});
  }

  // Of a long axis the part that is whole pieces, or what is behind it.
  ValueId part(ValueId x, std::int64_t axis, std::int64_t start, std::int64_t stop) {
    return append(Op::slice, {x},
                  Attrs{{"axis", Axes{axis}}, {"start", Shape{Dim(start)}}, {"stop", Shape{Dim(stop)}}});
  }
  ValueId whole_pieces(ValueId x, const Pieces& pieces) {
    const ValueId merged = reshaped(x, pieces.merged);
    return reshaped(pieces.cut < 0 ? merged : part(merged, pieces.cut, 0, pieces.whole), pieces.shape);
  }

  // `steps`, which reduces the whole pieces of `x`, together with the elements that are in none; with the axes of
  // `pieces.merged`.
  ValueId with_rest(Op op, ValueId steps, ValueId x, const Pieces& pieces) {
    Shape kept = pieces.merged;
    for (const std::int64_t axis : pieces.reduced) kept[static_cast<std::size_t>(axis)] = Dim(1);
    const ValueId first = reshaped(steps, kept);
    if (pieces.cut < 0) return first;
    const std::int64_t extent = pieces.merged[static_cast<std::size_t>(pieces.cut)].constant();
    if (extent == pieces.whole) return first;
    const ValueId rest = part(reshaped(x, pieces.merged), pieces.cut, pieces.whole, extent);
    return append(together(op), {first, reduce(op, rest, pieces.reduced)});
  }

  static Op together(Op op) {
    return op == Op::sum ? Op::add : op == Op::prod ? Op::mul : op == Op::max ? Op::maximum : Op::minimum;
  }

  ValueId in_steps(const Node& node, const Pieces& pieces) {
    const ValueId x = wide(node);
    const ValueId first = reduce(node.op, whole_pieces(x, pieces), pieces.first);
    return with_rest(node.op, reduce(node.op, first, pieces.then), x, pieces);
  }

  ValueId squares_in_steps(ValueId old, const Node& squares, const Pieces& pieces) {
    const ValueId x = whole_pieces(rewrite_[old], pieces);
    const Node& deviation = graph_.producer(graph_.producer(squares.operands[0]).operands[0]);
    const ValueId mean = rewrite_[behind_views(deviation.operands[1]).results[0]];
    const ValueId count = append_literal(rewrite_.graph, pieces.count, graph_.type(old).dtype);
    const ValueId own = append(Op::div, {reduce(Op::sum, x, pieces.first), count});
    const ValueId within = reduce(Op::sum, squared(append(Op::sub, {x, own})), pieces.first);
    Shape kept = pieces.shape;
    for (const Axes* axes : {&pieces.first, &pieces.then})
      for (const std::int64_t axis : *axes) kept[static_cast<std::size_t>(axis)] = Dim(1);
    const ValueId between = append(Op::mul, {squared(append(Op::sub, {own, reshaped(mean, kept)})), count});
    // Apart: in the first step nothing waits for the mean of all.
    const ValueId steps =
        append(Op::add, {reduce(Op::sum, within, pieces.then), reduce(Op::sum, between, pieces.then)});
    return with_rest(Op::sum, steps, rewrite_[squares.operands[0]], pieces);
  }

  ValueId squared(ValueId x) { return append(Op::mul, {x, x}); }

  // `value` as `node` had it: its dtype, and its axes.
  ValueId shaped(const Node& node, ValueId value) {
    const Type& type = graph_.type(node.results[0]);
    if (rewrite_.graph.type(value).dtype != type.dtype) value = append(Op::cast, {value}, Attrs{{"dtype", type.dtype}});
    return reshaped(value, type.shape);
  }

  const Graph& graph_;
  Rewrite rewrite_;
};

// Elements that lie one behind the other on axes of `inner`, from the digit `from` outwards, which then is the next.
double run_of(const Context& context, const Layout& layout, std::uint32_t inner, std::size_t& from) {
  double run = 1;
  for (; from > 0 && (layout[from - 1].depends & ~inner) == 0; --from) run *= context.extent(layout[from - 1].extent);
  return run;
}

// Times as long as whole rows take rows of pieces of so many bytes. On an H100: sums of pieces of 16, 98 and 1568 bytes
// 2.9, 1.5 and 1.2; norms, which hold their rows, of 16, 98, 196 and 784 bytes 6.7, 3.3, 2.2 and 1.4.
double slowdown_of_rows(double piece, bool again) {
  constexpr double kOnce = 45, kAgain = 150;  // bytes that the gap between two pieces costs
  return piece >= kShortPiece ? 1 : 1 + (again ? kAgain : kOnce) / piece;
}

// And columns that are so many bytes of a row which no vector divides: of 14, 30, 60, 300 bytes 4.2, 4.6, 1.8, 1.7.
double slowdown_of_columns(double row) {
  constexpr double kElements = 1.25, kRow = 50;
  return are_few(row) ? kElements + kRow / row : 1;
}

// The elements of a row that every layout has side by side, or has none of: those of the axis that a kernel's vectors
// lie along. Nothing where it is the whole row.
std::optional<double> innermost_piece(const Context& context, const Cluster& cluster, std::uint32_t reduced) {
  const Domain& domain = cluster.domain;
  const double row = context.points(domain, domain.kept, domain.rank());
  double piece = row;
  const auto behind = [&](int axis) { return context.points(domain, axis + 1, domain.rank()); };
  const auto cut = [&](const Layout& layout) {
    if ((depends_of(layout) & reduced) == 0 || !is_plain(layout)) return;
    double run = 1;
    for (std::size_t i = layout.size(); i-- > 0;) {
      const Digit& digit = layout[i];
      const double begin = digit.axis < domain.kept ? row : context.extent(digit.divisor) * behind(digit.axis);
      if (begin != run) {  // kept, or further out
        piece = std::min(piece, run > 1 ? run : begin);
        return;
      }
      run *= context.extent(digit.extent);
    }
    piece = std::min(piece, run);
  };
  for (const Read& read : cluster.reads) std::for_each(read.layouts.begin(), read.layouts.end(), cut);
  for (const Result& result : cluster.results) cut(result.layout);
  return piece < row ? std::optional(piece) : std::nullopt;
}

// Times as long as whole vectors take those of so many bytes. On an H100: sums by 8, 4, 2 bytes and 1
// take 1.1, 1.2, 1.4 and 2.4, norms, which hold their rows, by 4 and 2 bytes 2.0 and 2.5.
double slowdown_of_vectors(double bytes, bool again) {
  constexpr double kOnce = 0.07, kAgain = 0.4;
  return 1 + (again ? kAgain : kOnce) * (kVector / bytes - 1);
}

// The bytes of the widest vectors, up to 16, that divide pieces of so many.
double vector_that_divides(double piece) {
  double bytes = kVector;
  while (bytes > 1 && std::fmod(piece, bytes) != 0) bytes /= 2;
  return bytes;
}

}  // namespace

double slowdown_of_pieces(const Context& context, const Cluster& cluster) {
  if (cluster.kernel_class != KernelClass::reduce) return 1;
  const Domain& domain = cluster.domain;
  const std::uint32_t kept = axis_bits(domain, 0, domain.kept);
  const std::uint32_t reduced = axis_bits(domain, domain.kept, domain.rank());
  const std::optional<double> innermost = innermost_piece(context, cluster, reduced);
  const auto slowdown = [&](const Layout& layout, double element) {
    std::size_t next = layout.size();
    const double piece = run_of(context, layout, reduced, next);
    if (piece > 1) {
      const bool again = needs_rows_again(cluster);
      const bool many = points_along(context, domain, depends_of(layout) & reduced) >= kLeastPieces * piece;
      const double narrow = innermost && *innermost >= kLongPiece
                                ? slowdown_of_vectors(vector_that_divides(*innermost * element), again)
                                : 1;
      return std::max(narrow, many ? slowdown_of_rows(element * piece, again) : 1);
    }
    const double columns = run_of(context, layout, kept, next);
    return run_of(context, layout, reduced, next) < kLeastPieces ? 1 : slowdown_of_columns(element * columns);
  };
  double bytes = 0, slowed = 0;
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts) {
      const bool shared = kept != 0 && (depends_of(layout) & kept) == 0;  // by all rows
      if (shared || (depends_of(layout) & reduced) == 0) continue;
      const auto element = static_cast<double>(size_of(context.graph.type(read.value).dtype));
      const double all = element * points_along(context, domain, depends_of(layout));
      bytes += all;
      slowed += all * slowdown(layout, element);
    }
  return bytes > 0 ? slowed / bytes : 1;
}

Graph reduce_pieces_first(const Graph& graph, bool& found) { return PiecesFirst(graph).run(found); }

}  // namespace tenon::ir::fusion
