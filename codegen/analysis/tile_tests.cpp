// See tile_tests.h.
#include "codegen/analysis/tile_tests.h"

#include <algorithm>

#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

using ir::Op;
using Kind = TileTest::Kind;

bool is_comparison(Op op) {
  return op == Op::equal || op == Op::not_equal || op == Op::less || op == Op::less_equal || op == Op::greater ||
         op == Op::greater_equal;
}

class Builder {
 public:
  explicit Builder(const Kernel& kernel) : kernel_(kernel), i_(static_cast<int>(kernel.axes.size()) - 4) {}

  int add(const MaskCondition& mask) {
    const int test = add(mask.condition);
    return mask.holds ? test : join({.kind = Kind::inverted, .left = test});
  }
  int both(int left, int right) { return join({.kind = Kind::both, .left = left, .right = right}); }

  std::vector<TileTest> tests;

 private:
  // Along queries only, or along keys only, or neither.
  bool one_sided(InstrId id) const {
    const std::uint64_t batch = (std::uint64_t{1} << i_) - 1, depends = kernel_.instr(id).depends & ~batch;
    return depends == 0 || depends == std::uint64_t{1} << i_ || depends == std::uint64_t{1} << (i_ + 2);
  }

  int join(const TileTest& test) {
    tests.push_back(test);
    return static_cast<int>(tests.size()) - 1;
  }

  int add(InstrId id) {
    const Instr& instr = kernel_.instr(id);
    if (one_sided(id)) return join({.kind = Kind::truth, .a = id});
    if (instr.kind != InstrKind::map) return join({});
    if (instr.op == Op::logical_not) {
      const int left = add(instr.args[0]);
      return join({.kind = Kind::inverted, .left = left});
    }
    if (instr.op == Op::logical_and || instr.op == Op::logical_or) {
      const int left = add(instr.args[0]), right = add(instr.args[1]);
      return join({.kind = instr.op == Op::logical_and ? Kind::both : Kind::either, .left = left, .right = right});
    }
    if (!is_comparison(instr.op)) return join({});
    const InstrId a = instr.args[0], b = instr.args[1];
    const auto counts = [&](InstrId side) {
      return one_sided(side) && (is_integer(kernel_.instr(side).dtype) || kernel_.instr(side).dtype == DType::bool_);
    };
    return counts(a) && counts(b) ? join({.kind = Kind::compare, .op = instr.op, .a = a, .b = b}) : join({});
  }

  const Kernel& kernel_;
  int i_;
};

}  // namespace

std::vector<TileTest> tile_tests(const Kernel& kernel, const KeyMasks& masks) {
  Builder builder(kernel);
  int all = -1;
  for (const MaskCondition& mask : masks.others) {
    const int test = builder.add(mask);
    all = all < 0 ? test : builder.both(all, test);
  }
  const bool tells = std::any_of(builder.tests.begin(), builder.tests.end(), [](const TileTest& test) {
    return test.kind == Kind::truth || test.kind == Kind::compare;
  });
  return tells ? builder.tests : std::vector<TileTest>{};
}

std::vector<InstrId> tested_values(const std::vector<TileTest>& tests) {
  std::vector<InstrId> values;
  for (const TileTest& test : tests)
    for (const InstrId id : {test.a, test.b})
      if (id >= 0 && !contains(values, id)) values.push_back(id);
  return values;
}

bool is_steady(const Instr& instr) {
  return instr.kind == InstrKind::index &&
         std::all_of(instr.index.terms().begin(), instr.index.terms().end(),
                     [](const IndexTerm& term) { return term.atom->kind == IndexAtom::Kind::axis; });
}

}  // namespace tenon::codegen
