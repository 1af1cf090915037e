// Operands by the hundred: more than one kernel takes. Concats are cut, and unrolled recurrences end in one.
#include <gtest/gtest.h>

#include <string>

#include "ir/fusion/plan.h"
#include "ir/graph/build.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using namespace ir;
using ir::Graph;
using Ints = std::vector<std::int64_t>;

// Pieces of 1 to 3 rows, each an input or a value computed from one.
Graph joined(int pieces, bool computed) {
  Graph graph;
  std::vector<ValueId> operands;
  for (int i = 0; i < pieces; ++i) {
    const ValueId x = append_input(graph, "x" + std::to_string(i), DType::f32, {1 + i % 3, 4});
    operands.push_back(computed && i % 2 == 0 ? append_one(graph, Op::neg, {x}) : x);
  }
  append_output(graph, append_one(graph, Op::concat, operands, {{"axis", std::int64_t{0}}}), "y");
  return graph;
}

class Recurrence {
 public:
  Recurrence(int gates, int steps) : gates_(gates) {
    w_ = append_input(graph_, "w", DType::f32, {kWidth, gates * kWidth});
    u_ = append_input(graph_, "u", DType::f32, {kWidth, gates * kWidth});
    h_ = append_input(graph_, "h", DType::f32, {2, kWidth});
    c_ = append_input(graph_, "c", DType::f32, {2, kWidth});
    std::vector<ValueId> states;
    for (int i = 0; i < steps; ++i) {
      const ValueId x = append_input(graph_, "x" + std::to_string(i), DType::f32, {2, kWidth});
      gates == 4 ? lstm(x) : gru(x);
      states.push_back(append_one(graph_, Op::reshape, {h_}, {{"shape", Shape{1, 2, kWidth}}}));
    }
    append_output(graph_, append_one(graph_, Op::concat, states, {{"axis", std::int64_t{0}}}), "y");
  }
  Graph graph() { return std::move(graph_); }

 private:
  static constexpr std::int64_t kWidth = 4;

  ValueId op(Op op, std::vector<ValueId> operands) { return append_one(graph_, op, std::move(operands)); }
  ValueId gate(ValueId all, std::int64_t which) {
    return append_one(graph_, Op::slice, {all},
                      {{"axis", Ints{1}}, {"start", Shape{which * kWidth}}, {"stop", Shape{(which + 1) * kWidth}}});
  }

  void lstm(ValueId x) {
    const ValueId all = op(Op::add, {op(Op::matmul, {x, w_}), op(Op::matmul, {h_, u_})});
    const ValueId kept = op(Op::mul, {op(Op::sigmoid, {gate(all, 1)}), c_});
    c_ = op(Op::add, {kept, op(Op::mul, {op(Op::sigmoid, {gate(all, 0)}), op(Op::tanh, {gate(all, 2)})})});
    h_ = op(Op::mul, {op(Op::sigmoid, {gate(all, 3)}), op(Op::tanh, {c_})});
  }

  void gru(ValueId x) {
    const ValueId a = op(Op::matmul, {x, w_}), b = op(Op::matmul, {h_, u_});
    const ValueId reset = op(Op::sigmoid, {op(Op::add, {gate(a, 0), gate(b, 0)})});
    const ValueId update = op(Op::sigmoid, {op(Op::add, {gate(a, 1), gate(b, 1)})});
    const ValueId fresh = op(Op::tanh, {op(Op::add, {gate(a, 2), op(Op::mul, {reset, gate(b, 2)})})});
    h_ = op(Op::add, {fresh, op(Op::mul, {update, op(Op::sub, {h_, fresh})})});
  }

  Graph graph_;
  int gates_;
  ValueId w_ = -1, u_ = -1, h_ = -1, c_ = -1;
};

// Fused only, since unfused there are thousands of kernels.
void expect_right_fused(const Graph& graph, const std::string& target) {
  const std::vector<HostArray> inputs = data_for(graph, {}, 1, 0.3);
  GuardedProgram program(graph, target, true);
  for (const Comparison& output : compare_with_interpreter(graph, inputs, program(inputs)))
    EXPECT_TRUE(is_right(output)) << output.mismatches << " of " << output.elements << " elements";
}

class ManyOperands : public OnTarget {};

// 256 once wrote one pointer past the end of an array on the stack, 257 its return address.
TEST_P(ManyOperands, OfAConcat) {
  for (const int pieces : {255, 256, 257}) expect_right(joined(pieces, false), GetParam());
}

TEST_P(ManyOperands, OfAConcatOfComputedPieces) { expect_right(joined(600, true), GetParam()); }

TEST_P(ManyOperands, AsManyAsAFileMayHold) { expect_right_fused(joined(4096, false), GetParam()); }

TEST_P(ManyOperands, OfAnUnrolledLstm) { expect_right_fused(Recurrence(4, 512).graph(), GetParam()); }

TEST_P(ManyOperands, OfAnUnrolledGru) { expect_right_fused(Recurrence(3, 512).graph(), GetParam()); }

// Concats of concats, which views alone join, and an operator on several of them.
TEST_P(ManyOperands, ThroughViewsOfViews) {
  Graph graph;
  std::vector<ValueId> rows;
  for (int i = 0; i < 12; ++i) {
    std::vector<ValueId> pieces;
    for (int j = 0; j < 30; ++j)
      pieces.push_back(append_input(graph, "x" + std::to_string(i) + "_" + std::to_string(j), DType::f32, {2, 3}));
    rows.push_back(append_one(graph, Op::flip, {append_one(graph, Op::concat, pieces, {{"axis", std::int64_t{1}}})}));
  }
  const ValueId all = append_one(graph, Op::concat, rows, {{"axis", std::int64_t{0}}});
  append_output(graph, append_one(graph, Op::mul, {all, append_one(graph, Op::flip, {all})}), "y");
  expect_right(graph, GetParam());
}

// Lowering follows operators one inside the other: there are kernels between them before its stack ends.
TEST_P(ManyOperands, InTurn) {
  Graph graph;
  ValueId y = append_input(graph, "x", DType::f32, {4, 4});
  for (int i = 0; i < 6000; ++i)
    y = i % 50 == 0  ? append_one(graph, Op::sin, {y})
        : i % 2 == 0 ? append_one(graph, Op::transpose, {y})
                     : append_one(graph, Op::flip, {y}, {{"axis", Ints{0}}});
  append_output(graph, y, "y");
  expect_right_fused(graph, GetParam());
}

TENON_ON_EACH_TARGET(ManyOperands);

}  // namespace
}  // namespace tenon::test
