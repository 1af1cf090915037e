// Fused against unfused against the interpreter, and what to do with a case on which they differ: make it small.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "src/driver/pipeline.h"
#include "tenon/compile.h"
#include "tests/harness/random_graph.h"

namespace tenon::test {

/// What a target made of a case.
struct Verdict {
  bool same = true;
  bool refused = false;    ///< nothing was computed: an error says that this is over a limit, and what to do
  std::string kind;        ///< of what went wrong, for shrinking: "differs", or the kind of error
  std::string difference;  ///< which output, how far off, or the error that was thrown
  std::int64_t elements = 0;
  std::int64_t undecided = 0;  ///< elements on which perturbed interpretations disagree, and so nothing is demanded
};

/// Compiles `c` for `target` and compares the results with the interpreter's. For an architecture ("sm_90a") every
/// kernel is built and none is run. Whatever is thrown is a finding (an internal error, a schedule's text that does not
/// compile, bad_alloc), but for the refusals of graphs that are over a limit.
Verdict check(const RandomCase& c, const std::string& target, const Options& options);

/// `check` with fusion on and off: the first difference, or the fused verdict.
Verdict check_fused_and_unfused(const RandomCase& c, const std::string& target, const Options& options);

/// Which schedules kernels get: what the heuristics choose, one of those that a tuner tries, or any that is legal.
enum class Schedules : std::uint8_t { chosen, candidates, legal };

/// `check` with another schedule for each kernel: which, `choice` says.
Verdict check_other_schedules(const RandomCase& c, const std::string& target, const Options& options,
                              std::uint64_t choice, Schedules schedules);

/// `check` with the schedules that `find` gives; the kernels for which it gives none have what the heuristics choose.
Verdict check_with_schedules(const RandomCase& c, const std::string& target, const Options& options,
                             const src::FindSchedule& find);

/// A smaller case on which `fails` still holds: results dropped, and values replaced by inputs that hold what the
/// interpreter computes for them.
RandomCase shrink(RandomCase c, const std::function<bool(const RandomCase&)>& fails);

/// The case as text to paste into a test: the graph, the sizes, and the difference.
std::string report(const RandomCase& c, const std::string& difference);

Array to_array(const ir::HostArray& array);
ir::HostArray to_host(const Array& array);

}  // namespace tenon::test
