// How the interpreter rounds and, on request, disturbs the results of real operations (docs/numerics.md). The size of a
// disturbance is the error that a correct target may make; its sign and magnitude are drawn at random.
#pragma once

#include <cstdint>

#include "ir/interpret/interpret.h"
#include "tenon/dtype.h"

namespace tenon::ir {

/// Half units in the last place of the compute type by which a map op's result may be wrong on a target.
enum class Accuracy : std::uint8_t {
  correctly_rounded = 1,  ///< an instruction or an exact selection; no error where the exact result is representable
  routine = 4,            ///< a math library's routine
};

/// Whether a map or a reduction gives one of its elements, or that with another sign: it rounds nothing, and what
/// rounds its result has rounded the element, for all that use it.
bool selects(Op op);

class Numerics {
 public:
  /// For the node `node` of a run; each node draws its own disturbances.
  Numerics(const InterpretOptions& options, NodeId node);

  bool disturbs() const { return disturbs_; }

  /// `value` as a register of a target keeps it: in the range of the compute type, or rounded to `dtype` when every op
  /// rounds.
  double keep(DType dtype, double value) const;

  /// The result of a map op's element i: disturbed within `accuracy`, and by the rounding to a narrow dtype that a plan
  /// which stores it makes; then kept.
  double settle(DType dtype, double value, Accuracy accuracy, std::int64_t i) const;

  /// An f32 made by library functions that is about to be rounded to `dtype`, of 16 bits or fewer: disturbed by what
  /// such functions may err there, unless it is a number of `dtype`.
  double narrow(DType dtype, double value, std::int64_t i) const;

  /// A value with an absolute error of at most `error`: disturbed, then kept.
  double settle_within(DType dtype, double value, double error, std::int64_t i) const;

  /// A product of several factors, of which some order falls below the least normal number on the way: as it is, or
  /// with the few digits that were left, or none.
  double underflowed(double value, std::int64_t i) const;

  /// Of a sum of f32 (docs/numerics.md): a few blocks of at most 512 terms, which may err to the same side.
  static constexpr std::int64_t kLongestChain = 4096;

  /// The error that a sum of `terms` terms in `compute` may have, in the order of any target. `magnitudes` is the sum
  /// of |x|, `partial` the greatest |partial sum| met. Errors grow with the logarithm of the length in a tree, and with
  /// its square root, with high probability, along a chain (Higham & Mary, "A New Approach to Probabilistic Rounding
  /// Error Analysis", 2019); the chains of a target go through partial sums like those that the interpreter meets.
  /// `chain`: the longest that a target's may be, kLongestChain where it cuts long sums in blocks.
  static double sum_error(DType compute, std::int64_t terms, double magnitudes, double partial, std::int64_t chain);

  /// A random number in [-1, -1/2] or [1/2, 1].
  double noise(std::int64_t i) const;

  /// The storage bits of a result's element i, `value` of `dtype`. Those of a NaN are not specified, since a register
  /// may keep it in a wider type: of runs 4k to 4k + 3 each shows another, of either sign with the least mantissa of a
  /// quiet NaN and with the greatest.
  std::uint64_t storage_bits(DType dtype, double value, std::int64_t i) const;

 private:
  /// Whether a value that may be 0 is 0 exactly, in one run of each pair: terms that cancel in one order, or after one
  /// rounding, leave no noise, and what asks for 0 then gets another answer.
  bool cancels(std::int64_t i) const;
  /// What a sum or a product may be that leaves the range on the way: of four runs one is NaN where the next is
  /// `value`, and two are infinities of one sign for the whole node, which a maximum of many elements may need; in runs
  /// that choose, an infinity of either sign or `value`, drawn for each element.
  double overflowed(double value, std::int64_t i) const;

  bool round_every_op_;
  bool disturbs_;
  bool quiet_ = false;      // a run without noise whose values are those that registers of the compute type hold
  bool chooses_ = false;    // a run that rounds some values, as a plan that stores them, and has the others to the full
  bool overflows_ = false;  // this node's results as where a plan stores them, which it does with some, if out of range
  double sign_ = 1;  // runs 2k and 2k + 1 are disturbed by opposite amounts, so that a threshold is met from both sides
  std::uint64_t key_ = 0;
  std::uint64_t four_key_ = 0;  // what four runs have in common, of which
  bool second_pair_ = false;    // this is the third or fourth
};

/// Half the distance between 1 and the next number of the real dtype: the bound of one rounding's relative error.
double unit_roundoff(DType dtype);

}  // namespace tenon::ir
