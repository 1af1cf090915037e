// Random graphs: whatever the graph, the plan must pass verify(), with fusion and without, and with limits that force
// cuts.
#include <gtest/gtest.h>

#include <random>

#include "ir/fusion/plan.h"
#include "ir/graph/build.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {
    graph_.name = "random";
    graph_.symbols["n"] = {1, 4096, 1};
    for (int i = 0; i < 3; ++i)
      append_input(graph_, "x" + std::to_string(i), DType::f32, shapes()[pick(shapes().size())]);
    append_input(graph_, "w", DType::f32, {6, 6});
    append_input(graph_, "tokens", DType::i32, {5});
  }

  Graph run(int nodes) {
    for (int i = 0; i < nodes; ++i) {
      const std::size_t values = graph_.values.size(), nodes_before = graph_.nodes.size();
      try {
        step();
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) throw;
        graph_.values.resize(values);  // an ill-typed choice adds nothing
        graph_.nodes.resize(nodes_before);
      }
    }
    std::vector<ValueId> real;
    for (std::size_t i = 0; i < graph_.values.size(); ++i)
      if (graph_.values[i].type.dtype == DType::f32) real.push_back(static_cast<ValueId>(i));
    append_output(graph_, real.back(), "last");
    append_output(graph_, real[pick(real.size())], "some");
    append_output(graph_, real[pick(real.size())], "other");
    return graph_;
  }

 private:
  static const std::vector<Shape>& shapes() {
    static const std::vector<Shape> all = {{Dim::symbol("n"), 6},    {6, 6}, {4, 6, 6}, {6}, {1, 6},
                                           {Dim::symbol("n"), 2, 3}, {0, 6}};
    return all;
  }

  std::size_t pick(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

  ValueId any() {
    while (true) {
      const auto recent = std::min<std::size_t>(graph_.values.size(), 8);
      const std::size_t i = pick(2) == 0 ? graph_.values.size() - 1 - pick(recent) : pick(graph_.values.size());
      if (graph_.values[i].type.dtype == DType::f32) return static_cast<ValueId>(i);
    }
  }

  std::int64_t axis_of(ValueId value) {
    return static_cast<std::int64_t>(pick(std::max<std::size_t>(1, graph_.type(value).shape.size())));
  }

  void step() {
    const ValueId a = any(), b = any();
    const Shape shape = graph_.type(a).shape;
    using Ints = std::vector<std::int64_t>;
    using Dims = std::vector<Dim>;
    switch (pick(17)) {
      case 0: append_one(graph_, Op::exp, {a}); return;
      case 1: append_one(graph_, Op::add, {a, b}); return;
      case 2: append_one(graph_, Op::mul, {a, b}); return;
      case 3: append_one(graph_, Op::sum, {a}, {{"axis", Ints{axis_of(a)}}, {"keepdims", pick(2) == 0}}); return;
      case 4: append_one(graph_, Op::max, {a}, {{"axis", Ints{axis_of(a)}}, {"keepdims", pick(2) == 0}}); return;
      case 5: append_one(graph_, Op::transpose, {a}); return;
      case 6: append_one(graph_, Op::reshape, {a}, {{"shape", Dims{element_count(shape)}}}); return;
      case 7: append_one(graph_, Op::slice, {a}, {{"axis", Ints{axis_of(a)}}, {"start", Dims{1}}}); return;
      case 8: append_one(graph_, Op::flip, {a}, {{"axis", Ints{axis_of(a)}}}); return;
      case 9: append_one(graph_, Op::concat, {a, b}, {{"axis", axis_of(a)}}); return;
      case 10: append_one(graph_, Op::softmax, {a}, {{"axis", Ints{axis_of(a)}}}); return;
      case 11: append_one(graph_, Op::layer_norm, {a}); return;
      case 12: append_one(graph_, Op::matmul, {a, b}); return;
      case 13: append_one(graph_, Op::matmul, {a, append_one(graph_, Op::transpose, {b})}); return;
      case 14: append_one(graph_, Op::take, {a, graph_.inputs[4]}, {{"axis", axis_of(a)}}); return;
      case 15:
        append_one(graph_, Op::pad, {a}, {{"low", Dims(shape.size(), Dim(1))}, {"high", Dims(shape.size(), Dim(0))}});
        return;
      case 16: attend(a, b); return;
      default: return;
    }
  }

  void attend(ValueId a, ValueId b) {
    const ValueId scores = append_one(graph_, Op::matmul, {a, append_one(graph_, Op::transpose, {b})});
    const ValueId weights = append_one(graph_, Op::softmax, {scores});
    append_one(graph_, Op::matmul, {weights, b});
  }

  Graph graph_;
  std::mt19937_64 random_;
};

TEST(RandomPlans, PassVerify) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Graph graph = Generator(seed).run(2 + static_cast<int>(seed % 30));
    PlanOptions unfused, tight, mixed;
    unfused.fuse = false;
    tight.max_operands = 5;
    tight.max_nodes = 6;
    tight.max_pointers = 3;
    tight.siblings = false;
    mixed.mixed_order = true;
    mixed.cost.bandwidth_gb_s = 1e-3;  // whatever is read twice is worth sharing
    for (const PlanOptions& options : {PlanOptions{}, unfused, tight, mixed}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(graph));
      try {
        verify(make_plan(graph, options));
      } catch (const Error& error) {
        FAIL() << error.what();
      }
    }
  }
}

TEST(RandomPlans, PassVerifyWhateverTheDeviceCosts) {
  std::vector<CostModel> devices{cpu_cost_model(2), {}, {}, {}};
  devices[1].launch_us = 100;   // fuse all that can be
  devices[2].launch_us = 1e-3;  // split where the least is saved
  devices[3].gigaslots_s = 10;  // nothing is computed twice
  devices[3].tensor_tflops = 1e-2;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Graph graph = Generator(seed).run(25);
    for (const CostModel& cost : devices) {
      PlanOptions options;
      options.mixed_order = true;
      options.cost = cost;
      EXPECT_NO_THROW(verify(make_plan(graph, options))) << print(graph);
    }
  }
}

TEST(RandomPlans, KeepWithinTheMemoryLimitOrSayThatTheyCannot) {
  int kept = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = Generator(seed).run(25);
    PlanOptions options;
    const double peak = make_plan(graph, options).live_bytes;
    if (peak == 0) continue;
    options.max_live_bytes = seed % 2 == 0 ? 0.7 * peak : peak;
    try {
      const Plan plan = make_plan(graph, options);
      verify(plan);
      EXPECT_LE(plan.live_bytes, options.max_live_bytes) << print(graph);
      ++kept;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::resource) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(refused, 5);
}

TEST(RandomPlans, AreTheSameEachTime) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Graph graph = Generator(seed).run(30);
    const Plan plan = make_plan(graph);
    EXPECT_EQ(print(plan), print(make_plan(graph)));
    EXPECT_EQ(explain(plan), explain(make_plan(graph)));
  }
}

TEST(RandomPlans, HaveNoMoreKernelsThanUnfused) {
  PlanOptions unfused;
  unfused.fuse = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = Generator(seed).run(25);
    EXPECT_LE(make_plan(graph).groups.size(), make_plan(graph, unfused).groups.size()) << print(graph);
  }
}

}  // namespace
}  // namespace tenon::ir
