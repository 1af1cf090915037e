// What every draw of a random graph works with: the graph so far, a random engine, and operands that fit. A draw is a
// free function that appends one operator or a small pattern of them (draws.h); inference judges whether it may.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ir/graph/build.h"
#include "tests/harness/random_graph.h"

namespace tenon::test {

using Ints = std::vector<std::int64_t>;

/// What the extents of one graph are like, drawn once for all of it.
struct Style {
  bool ones = false;      ///< axes of extent 1 everywhere
  bool zeros = false;     ///< and of extent 0 here and there
  bool long_row = false;  ///< one large axis, few operators
  bool large = false;     ///< a large axis or two in most shapes
  std::int64_t most_elements = 1 << 13;
};

class Generator {
 public:
  Generator(std::uint64_t seed, Sizes sizes);

  /// The case, without data.
  RandomCase make(std::uint64_t seed);

  // ---- randomness ----
  int uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool chance(double probability) { return std::uniform_real_distribution<double>(0, 1)(engine_) < probability; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(uniform(0, static_cast<int>(items.size()) - 1))];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    std::shuffle(items.begin(), items.end(), engine_);
  }

  // ---- shapes ----
  std::int64_t extent();
  Dim random_dim();
  Shape random_shape();
  /// Elements at the bindings; the greatest number where there are more.
  std::int64_t size(const Shape& shape) const;
  Ints random_axes(int rank);
  Ints permutation(int rank);

  // ---- dtypes ----
  DType any_dtype();
  DType usual_dtype() { return pick(dtypes_); }
  DType real_dtype();

  // ---- values ----
  const ir::Graph& graph() const { return graph_; }
  const ir::Type& type(ir::ValueId value) const { return graph_.type(value); }
  const Shape& shape(ir::ValueId value) const { return graph_.type(value).shape; }
  int rank(ir::ValueId value) const { return static_cast<int>(shape(value).size()); }
  ir::ValueId new_input(DType dtype, const Shape& shape);
  /// Later values more often, so that graphs grow deep.
  ir::ValueId random_value();
  std::optional<ir::ValueId> value_where(const std::function<bool(ir::ValueId)>& fits);
  /// A real value of at least `rank` axes: an old one, or a new input.
  ir::ValueId real_value(int rank);
  /// A value of `dtype` whose shape broadcasts with `shape`: an old one, a literal, or a new input.
  ir::ValueId partner(DType dtype, const Shape& shape);
  ir::ValueId operand_for(const ir::OpInfo& op);
  ir::ValueId literal(DType dtype);
  ir::ValueId literal(double value, DType dtype);

  // ---- growing ----
  /// Appends `op` unless a result would be too large.
  bool append(ir::Op op, const std::vector<ir::ValueId>& operands, ir::Attrs attrs = {});
  /// As append, for one result. A pattern that would grow too large ends there: throws Error(resource), which grow()
  /// takes for a draw that did not succeed.
  ir::ValueId make(ir::Op op, const std::vector<ir::ValueId>& operands, ir::Attrs attrs = {});
  /// `value` is to be among the results.
  void must_return(ir::ValueId value) { returned_.push_back(value); }
  const ir::OpInfo& random_op(ir::Kind kind);

 private:
  void choose_style(Sizes sizes);
  void enlarge(Shape& shape);
  void add_symbol(const std::string& name);
  void grow_one(RandomCase& result);
  void choose_outputs();
  ir::ValueId state_for(ir::ValueId result);

  std::mt19937_64 engine_;
  Sizes sizes_;
  Style style_;
  int favourite_ = -1;  ///< of kDraws: drawn more often in this graph
  ir::Graph graph_;
  Bindings bindings_;
  std::vector<DType> dtypes_;
  std::vector<ir::ValueId> values_, returned_;
};

}  // namespace tenon::test
