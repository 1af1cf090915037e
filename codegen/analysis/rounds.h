// A Reduce kernel's body cut into sweeps over the reduced axes. A reduction's round is the number of reductions that it
// depends on along the longest chain; one sweep serves all reductions of a round, and what is stored for each element
// once they are known.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A sum of exp(x - shift), where `shift` follows from the maximum of x, taken in the same sweep as the maximum: the
/// sum so far is rescaled when the maximum grows (Milakov & Gimelshein, "Online normalizer calculation for softmax",
/// 2018).
struct Online {
  InstrId maximum = -1, sum = -1;
  InstrId shift = -1;
  std::vector<InstrId> shift_instrs;  ///< from the maximum to the shift, in definition order
  std::vector<InstrId> instrs;        ///< per element, what is summed
  bool guarded = false;               ///< the shift is 0 where the maximum is -inf; else it is the maximum itself
  bool at_most_one = false;           ///< or NaN: what is summed of each element, whatever the maximum; if guarded
  bool only_shifts = false;           ///< nothing but the shift uses the maximum
};

/// A sum of (x - mean)² beside the sum of x that the mean is made of: both are taken in one sweep, of tiles whose own
/// mean is subtracted (after Chan, Golub & LeVeque, "Algorithms for computing the sample variance", 1983).
struct Moments {
  InstrId sum = -1, squares = -1;
  InstrId mean = -1;            ///< the sum over the row's length
  std::vector<InstrId> instrs;  ///< per element, what is summed as `squares`
};

struct Sweep {
  std::vector<InstrId> before;   ///< per-row instructions that can be computed only now
  std::vector<InstrId> instrs;   ///< per element, in definition order
  std::vector<InstrId> reduces;  ///< without an online sum
  std::vector<InstrId> outer;    ///< reductions over the kept axes, whose elements are accumulated in this sweep
  std::optional<Online> online;
  std::optional<Moments> moments;  ///< whose sum is among `reduces`, its squares are not
  std::vector<int> stores;         ///< per element
};

struct Rounds {
  std::vector<Sweep> sweeps;
  std::vector<InstrId> after;     ///< per-row instructions behind the last sweep
  std::vector<int> row_stores;    ///< one element for each row
  std::vector<int> outer_stores;  ///< one element for each of a row, when all rows were walked
};

/// What shares a sweep with a reduction that it depends on.
struct SharedSweeps {
  bool online = false;   ///< the sum of find_online, with its maximum
  bool moments = false;  ///< the squares of find_moments, with their mean
};
Rounds rounds_of(const Kernel& kernel, SharedSweeps shared = {});

/// Whether a row may be split in parts: all is known after one sweep but what there is once for each row.
bool may_split(const Rounds& rounds);

/// The kernel's maximum and sum that can share a sweep. The shift is the maximum itself, or one that is 0 where the
/// maximum is -inf, and may be where it is inf.
std::optional<Online> find_online(const Kernel& kernel);

/// The kernel's sum and squares around its mean, all in f32, that can share a sweep.
std::optional<Moments> find_moments(const Kernel& kernel);

/// Whether `instr` is an exponential exp(x - maximum of x) in f32, whose argument is 0 at most, or NaN.
bool is_weight(const Kernel& kernel, InstrId instr);

/// Whether `instr` divides exp(x - shift) by its sum, or by 1 where that is 0, in f32: a number from 0 to 1 by one that
/// is 1 or more, where neither is NaN.
bool is_share(const Kernel& kernel, InstrId instr);

/// Whether `reduce` is the maximum that shifts the exponentials of a softmax, and nothing else of which the result
/// shows a NaN or a zero's sign: the sum of the exponentials is NaN too, and all that is stored of a row is divided by
/// that.
bool is_softmax_maximum(const Kernel& kernel, const Instr& reduce);

/// Whether `reduce` is a sum of reals.
bool adds_reals(const Instr& reduce);

/// Issue slots of what the sweep computes of an element, but for its reductions.
int element_cost(const Kernel& kernel, const Sweep& sweep);

/// What a sweep's reductions and stores use.
std::vector<InstrId> sweep_roots(const Kernel& kernel, const Sweep& sweep);

/// Whether the value varies along a reduced axis.
bool element_level(const Kernel& kernel, InstrId instr);

}  // namespace tenon::codegen
