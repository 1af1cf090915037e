// Large graphs, grown a motif at a time from the values of one shape.
#include "tests/harness/large_graph.h"

#include <fmt/format.h>

#include <random>

#include "ir/graph/build.h"

namespace tenon::test {
namespace {

using namespace ir;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kColumns[] = {256, 512, 1024};
constexpr std::size_t kShapes = std::size(kColumns);
constexpr std::size_t kRecent = 8;

class Grower {
 public:
  Grower(std::uint64_t seed, double far) : random_(seed), far_(far) {
    graph_.name = "large";
    graph_.symbols["rows"] = {1, 1 << 20, 1};
    for (std::size_t i = 0; i < kShapes; ++i)
      values_[i].push_back(append_input(graph_, fmt::format("x{}", i), DType::f32, {Dim::symbol("rows"), kColumns[i]}));
  }

  Graph run(int nodes) {
    while (static_cast<int>(graph_.nodes.size()) < nodes) motif();
    const auto users = users_of(graph_);
    int results = 0;
    for (std::size_t i = 0; i < users.size(); ++i)
      if (users[i].empty()) append_output(graph_, static_cast<ValueId>(i), fmt::format("y{}", results++));
    return std::move(graph_);
  }

 private:
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool chance(double share) { return static_cast<double>(random_() % 1000) < share * 1000; }

  ValueId last() { return values_[shape_].back(); }
  ValueId other() {
    const auto& values = values_[shape_];
    if (chance(far_)) return values[pick(values.size())];
    return values[values.size() - 1 - pick(std::min(values.size(), kRecent))];
  }
  ValueId grow(Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    const ValueId value = append_one(graph_, op, std::move(operands), std::move(attrs));
    values_[shape_].push_back(value);
    return value;
  }

  void motif() {
    if (chance(0.1)) shape_ = pick(kShapes);
    switch (pick(8)) {
      case 0:
      case 1: chain(); return;
      case 2:
      case 3: diamond(); return;
      case 4: normalise(); return;
      case 5: softmax(); return;
      case 6: chance(0.3) ? columns() : chain(); return;
      default: project(); return;
    }
  }

  void chain() {
    for (std::size_t i = 1 + pick(10); i > 0; --i) {
      if (chance(0.5)) {
        grow(chance(0.5) ? Op::tanh : Op::abs, {last()});
      } else {
        grow(chance(0.5) ? Op::add : Op::mul, {last(), other()});
      }
    }
  }

  void diamond() {
    const ValueId top = other();
    const ValueId left = grow(Op::exp, {top}), right = grow(Op::sin, {top});
    grow(Op::add, {left, right});
  }

  ValueId row(Op op, ValueId x) { return append_one(graph_, op, {x}, {{"axis", Ints{1}}, {"keepdims", true}}); }

  void normalise() {
    const ValueId x = last();
    const ValueId squares = append_one(graph_, Op::mul, {x, x});
    const ValueId scale = append_one(graph_, Op::rsqrt, {row(Op::sum, squares)});
    grow(Op::mul, {x, scale});
  }

  void softmax() {
    const ValueId x = last();
    const ValueId weights = append_one(graph_, Op::exp, {append_one(graph_, Op::sub, {x, row(Op::max, x)})});
    grow(Op::div, {weights, row(Op::sum, weights)});
  }

  void columns() {
    const ValueId x = other();
    grow(Op::sub, {x, append_one(graph_, Op::sum, {x}, {{"axis", Ints{0}}, {"keepdims", true}})});
  }

  void project() {
    const std::size_t to = pick(kShapes);
    const ValueId x = last();
    const ValueId weight =
        append_input(graph_, fmt::format("w{}", graph_.inputs.size()), DType::f32, {kColumns[shape_], kColumns[to]});
    const ValueId bias = append_input(graph_, fmt::format("b{}", graph_.inputs.size()), DType::f32, {kColumns[to]});
    shape_ = to;
    grow(Op::add, {append_one(graph_, Op::matmul, {x, weight}), bias});
  }

  Graph graph_;
  std::mt19937_64 random_;
  double far_;
  std::size_t shape_ = 0;
  std::vector<ValueId> values_[kShapes];
};

}  // namespace

Graph large_graph(std::uint64_t seed, int nodes, double far) { return Grower(seed, far).run(nodes); }

}  // namespace tenon::test
