// The Kernel: one group lowered to a domain of axes and a body of SSA instructions over it. It knows nothing of
// threads that the Schedule does not say.
//
// An instruction has one value for each point of the axes it depends on. Reductions and contractions are instructions
// that combine some axes away, so every kernel class has the same form; the class says which loop structure the
// emitters give it:
//   map       no reduced axis
//   reduce    reductions over one set of reduced axes, in rounds (a round may use the results of earlier ones), and
//             beside them outer reductions over the kept axes, which only their own epilogue uses
//   contract  one contraction with prologues on its operands and an epilogue on its result
//   attend    contract -> maps -> max, exp, sum over the key axis -> contract
//
// Values: a real instruction computes in compute_type(dtype) and is not rounded to `dtype` until a store or a `round`
// instruction (docs/numerics.md); a load converts to the compute type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel/index.h"
#include "codegen/schedule/schedule.h"
#include "ir/fusion/plan.h"
#include "ir/graph/graph.h"

namespace tenon::codegen {

using InstrId = std::int32_t;

/// 0 <= index < bound.
struct Guard {
  Index index;
  Dim bound;
};

/// An element of an operand: operand[offset], taken only where every guard holds (a guarded load gives 0 elsewhere).
struct Access {
  int operand = -1;
  Index offset;               ///< in elements, row-major in the operand's own shape
  std::vector<Guard> guards;  ///< those that could not be proven
};

enum class InstrKind : std::uint8_t {
  literal,   ///< `literal`, as `dtype`
  load,      ///< `access`
  index,     ///< the value of `index` (an integer), as `dtype`
  inside,    ///< bool: every one of `guards` holds
  map,       ///< `op` on `args`
  round,     ///< args[0] rounded to `dtype`, kept in the compute type
  random,    ///< random_bits: args[0] is the seed; `index` the element's (or block's) number; `stream`, `word`
  reduce,    ///< `op` over `axes` of args[0]; argmax/argmin give the row-major index over `axes`
  contract,  ///< sum over `axes` of args[0] * args[1], accumulated in f32 (f64 for f64)
};

constexpr int kRandomCost = 80;  ///< issue slots of InstrKind::random, as OpInfo::cost of a map

/// What a narrow map is made of beyond its own op, as one function of `args` (codegen/analysis/narrow.h).
enum class Composed : std::uint8_t {
  none,
  logistic,          ///< div: args[0] / (1 + exp(args[1])); reciprocal: 1 / (1 + exp(args[0]))
  one_plus,          ///< tanh, erf: 1 + op(args[0])
  tanh_of_softplus,  ///< tanh: tanh(log(1 + exp(args[0])))
  of_share,          ///< log1p: args[0] is from 0 to 1
};

struct Instr {
  InstrKind kind = InstrKind::literal;
  DType dtype = DType::f32;  ///< the graph's dtype of the value
  ir::Op op = ir::Op::add;   ///< map, reduce
  std::vector<InstrId> args;
  Access access;              ///< load
  Index index;                ///< index, random
  std::vector<Guard> guards;  ///< inside
  std::vector<int> axes;      ///< reduce, contract: combined away, in row-major order
  ir::Scalar literal = 0.0;
  std::int64_t stream = 0;  ///< random
  int word = -1;            ///< random
  bool tf32 = false;        ///< contract
  int block = 0;            ///< contract: of how many terms tensor cores may add up the products; 0: any number
  bool narrow = false;      ///< map: computed for results of 16 bits (codegen/analysis/narrow.h)
  Composed composed = Composed::none;  ///< map (codegen/analysis/narrow.h)
  bool reused = false;                 ///< map: the graph has several uses of the value, in this kernel or in others
  bool rounded = false;       ///< a real mul: no compiler may contract it with a sum (codegen/lower/one_rounding.h)
  std::string note;           ///< the graph value it computes, for comments ("h = matmul"); sanitised
  std::uint64_t depends = 0;  ///< bit a: the value varies along axis a
};

struct Store {
  Access access;  ///< every element of the operand is written by exactly one point of the store's axes
  InstrId value = -1;
};

/// The parts of softmax(scores) v, as the planner found them (ir::Attention), in the body of an attend kernel. With s a
/// function of the scores and of positions, c of a row's maximum:
///     maximum = max over j of s
///     weight  = exp(s - c)             (casts aside; exp(s) without a maximum)
///     sum     = sum over j of weight
///     mix     = sum over j of p * v, where p is the weight behind `scaling`
/// What follows mix, maximum and sum varies along batch, i and e only.
struct Attention {
  InstrId scores = -1;   ///< contraction of queries and keys
  InstrId score = -1;    ///< s
  InstrId maximum = -1;  ///< -1 when there is none
  InstrId shift = -1;    ///< c; -1 without a maximum
  InstrId weight = -1;   ///< the exponential
  InstrId sum = -1;
  std::vector<InstrId> scaling;  ///< from weight to p, each of the one before it: casts, products, quotients and
                                 ///< selections against 0, by values of the row or of positions
  InstrId mix = -1;              ///< contraction of weights and values
};

/// A buffer argument: in the order of Kernel::operands, of a value that the group reads (Group::inputs) or writes
/// (Group::outputs). Which values they are, a kernel does not know: equal layers of a model have equal kernels.
struct Operand {
  DType dtype = DType::f32;
  Shape shape;
  bool written = false;
  std::string name;     ///< "in0", "out1": generated, never the user's
  bool of_run = false;  ///< read, and written by a kernel ahead in the same run: not constant while this one runs,
                        ///< which may begin before that one has ended
};

struct Kernel {
  std::string name;  ///< "k3_reduce": generated
  ir::KernelClass kernel_class = ir::KernelClass::map;
  std::vector<Axis> axes;         ///< outermost first; reduced axes after the kept ones
  std::vector<Operand> operands;  ///< inputs, then outputs: also the order of the kernel's pointer parameters
  std::vector<std::string> dims;  ///< symbols that the kernel takes as 64-bit integer parameters, after the pointers
  std::vector<Instr> body;        ///< definition order
  std::vector<Store> stores;
  Attention attention;       ///< attend only
  Symbols symbols;           ///< with the bounds and divisors of this specialisation
  bool wide_index = false;   ///< some offset may leave 31 bits: compute offsets in 64 bits
  bool wide_random = false;  ///< some random number's place may, which is no offset: compute these in 64 bits
  Schedule schedule;

  const Instr& instr(InstrId id) const { return body[static_cast<std::size_t>(id)]; }
  IndexContext context() const { return {&axes, &symbols}; }
};

/// The dimension class for which a kernel is generated: what is known of each symbol, and whether offsets fit 31 bits,
/// and the places of random numbers.
struct Specialization {
  Symbols symbols;
  bool wide_index = true, wide_random = true;
  std::string key() const;  ///< equal keys, equal kernels
  bool operator==(const Specialization&) const = default;
};

/// Classifies the symbol values: 0, 1, else the largest power of two up to 16 that divides; where the result of a
/// contraction has such a symbol also by size, up to 16, 64, 512 or more; 31-bit offsets when every value of the plan
/// has fewer than 2^31 elements.
Specialization specialize(const ir::Plan& plan, const Bindings& bindings);
/// Nothing known but the graph's own bounds.
Specialization unspecialized(const ir::Plan& plan);

/// True if the group has no element to write at these sizes: it needs no kernel.
bool writes_nothing(const ir::Plan& plan, int group, const Symbols& symbols);

/// One group as a kernel, whose schedule is not chosen.
Kernel lower(const ir::Plan& plan, int group, const Specialization& specialization, const Target& target);

/// A size to plan with: 1024 where it may be, else the nearest that `symbols` allow; of a constant extent its own.
std::int64_t typical(const Dim& extent, const Symbols& symbols);

/// Whether `axis` is of constant extent, and no guard asks for it, in a kernel that gathers nothing and finds no index.
bool can_unroll(const Kernel& kernel, int axis);
/// Each value that varies along `axis` becomes one for each place on it, stores too, or what reductions combine; it
/// goes.
void unroll_axis(Kernel& kernel, int axis);

/// Axes in loop order with equal strides collapsed, so that most kernels keep one to three
/// (codegen/kernel/collapse.cpp).
void collapse_axes(Kernel& kernel);
/// Joins an innermost axis of a few bytes with its neighbour, for the sake of the stores' width, although some indices
/// are then divided by its extent (codegen/kernel/collapse.cpp). Map kernels only.
void lengthen_inner_axis(Kernel& kernel);
/// Axis order[i] as number i. Reduced axes stay behind the kept ones, in their order.
void reorder_axes(Kernel& kernel, const std::vector<int>& order);

/// Whether some reduction combines the kept axes.
bool has_outer(const Kernel& kernel);
/// For each instruction whether it is a reduction over the kept axes, or made of one: known at the end of all rows
/// only.
std::vector<bool> outer_values(const Kernel& kernel);

/// Throws Error(internal) with the kernel printed when it breaks an invariant.
void verify(const Kernel& kernel);
/// The part of it for Kernel::attention: that the body computes what its parts are named for
/// (codegen/kernel/attention.cpp).
void verify_attention(const Kernel& kernel);

/// The kernel as text: axes, operands, schedule, one instruction a line.
std::string print(const Kernel& kernel);

}  // namespace tenon::codegen
