// Operands by the hundred: concats, stacks and sums of many.
#include "tests/harness/random_graph/draws.h"

namespace tenon::test {
namespace {

using ir::Op;
using ir::ValueId;

std::vector<ValueId> inputs(Generator& g, int count, DType dtype, const Shape& shape) {
  std::vector<ValueId> all;
  for (int i = 0; i < count; ++i) all.push_back(g.new_input(dtype, shape));
  return all;
}

// Neighbours are added, then those sums: a tree as deep as the logarithm.
ValueId sum_of(Generator& g, std::vector<ValueId> terms) {
  while (terms.size() > 1) {
    std::vector<ValueId> sums;
    for (std::size_t i = 0; i + 1 < terms.size(); i += 2) sums.push_back(g.make(Op::add, {terms[i], terms[i + 1]}));
    if (terms.size() % 2 == 1) sums.push_back(terms.back());
    terms = std::move(sums);
  }
  return terms[0];
}

}  // namespace

// Many operands of one call are few kernels; many calls are many kernels when they are not fused, so fewer of them.
bool draw_many(Generator& g) {
  const DType dtype = g.chance(0.7) ? g.real_dtype() : DType::i32;
  const Shape shape = g.chance(0.5) ? Shape{Dim(g.uniform(1, 4))} : Shape{Dim(g.uniform(1, 3)), Dim(g.uniform(1, 5))};
  const int count = g.pick(std::vector<int>{20, 26, 40, 70, 130, 255, 257, 300});
  switch (g.uniform(0, 3)) {
    case 0: {
      std::vector<ValueId> terms = inputs(g, std::min(count, 40), dtype, shape);
      g.must_return(sum_of(g, std::move(terms)));
      return true;
    }
    case 1: return g.append(Op::stack, inputs(g, count, dtype, shape), {{"axis", std::int64_t{0}}});
    case 2: {  // one operand many times, and others
      std::vector<ValueId> pieces = inputs(g, g.uniform(1, 5), dtype, shape);
      while (static_cast<int>(pieces.size()) < count)
        pieces.push_back(pieces[static_cast<std::size_t>(g.uniform(0, static_cast<int>(pieces.size()) - 1))]);
      g.shuffle(pieces);
      return g.append(Op::concat, pieces, {{"axis", std::int64_t{0}}});
    }
    default: {
      const ValueId all = g.make(Op::concat, inputs(g, count, dtype, shape), {{"axis", std::int64_t{0}}});
      return g.chance(0.5) || g.append(Op::sum, {all}, {{"axis", Ints{0}}});
    }
  }
}

}  // namespace tenon::test
