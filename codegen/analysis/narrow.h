// Values of which only numbers of 16 bits or fewer are made need not be computed to the last place of f32.
#pragma once

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Marks what may be computed for results of 16 bits (Instr::narrow), in fewer instructions and without a branch:
///
/// - The exponentials exp(x - shift) of a softmax (find_online in codegen/analysis/rounds.h) and their shares of the
/// sum,
///   where everything that they lead to is rounded to 16 bits or fewer, through products, quotients and sums of
///   positive terms only. A relative error of 2^-16 then stays far below that rounding.
/// - Quotients and square roots that nothing but products, quotients, selections and roundings to 16 bits take: two
///   units of the last place of f32.
/// - Library functions (exp, expm1, log, log2, log1p, tanh) that only these take, and all whose results have 16 bits or
///   fewer and are not seen in more. 1 + tanh(x), 1 + erf(x), quotients by 1 + exp(x) and tanh(softplus(x)) are then
///   one function each (Instr::composed).
/// - What f32 is made of is as near as before, but quotients by 1 + exp(x), tanh(softplus(x)) and log1p(exp(-|x|)) are
///   one function each there, too, without the branches of a division: composed and not narrow. So is tanh(softplus(x))
///   of f64.
/// - Hyperbolic tangents and quotients in the scores of an attention whose weights end so: an absolute error of 2^-21
///   there is a relative one of a weight.
void mark_narrow(Kernel& kernel);

/// Marks what is one function in place of several on a CPU, at full width: tanh(softplus(x)), log1p(exp(-|x|)) and
/// 1 + tanh(x) (Instr::composed).
void mark_composed(Kernel& kernel);

/// Whether the kernel has such exponentials: each element of its rows then takes half as many instructions.
bool has_narrow_weights(const Kernel& kernel);

}  // namespace tenon::codegen
