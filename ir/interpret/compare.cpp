// Comparison by stochastic arithmetic (J. Vignes, "A Stochastic Arithmetic for Reliable Scientific Computation", 1993):
// runs of the interpreter whose every operation is disturbed show, element by element, how far correct results lie
// apart. A result is right when it is as near to the undisturbed run as those are. See docs/numerics.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/graph/check.h"
#include "ir/interpret/interpret.h"
#include "ir/ops/formats.h"
#include "ir/passes/passes.h"

namespace tenon::ir {
namespace {

constexpr double kUlps = 2;     // allowed whatever the spread: the output's own rounding, twice
constexpr double kSpreads = 4;  // times the largest distance among the disturbed runs
constexpr int kFewRuns = 32;    // from which on the distances' distribution can be judged
constexpr double kTail = 10;    // times the mean distance: beyond it the largest says nothing of the next
constexpr int kMoreRuns = 3;    // times as many runs again before anything is called different
constexpr int kManyRuns = 192;  // and so many in all: a few miss a rare rounding, on which an argmax or a cast turns

// What the disturbed runs said of one output.
struct Spread {
  std::vector<double> distance, total;  // of reals, the greatest and the sum; empty for integers and bool
  std::vector<char> undecided;
  std::vector<char> nan;    // of reals, whether some run is NaN there; empty for integers and bool
  std::vector<char> right;  // found right with fewer runs: more only widen the tolerance
  int runs = 0;

  // Near a pole, or where a rare rounding decides, no number of runs bounds what the next may give: the greatest
  // distance is far from the mean, or no digit of the value is left (Vignes's computational zero).
  bool says_nothing(std::size_t i, double expected) const {
    return runs >= kFewRuns && (distance[i] * runs > kTail * total[i] || distance[i] > std::fabs(expected));
  }
};

bool same_class(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

void widen(Spread& spread, const HostArray& expected, const HostArray& disturbed) {
  const std::int64_t n = element_count(expected);
  ++spread.runs;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!is_real(expected.dtype)) {
      spread.undecided[at] |= get_integer(expected, i) != get_integer(disturbed, i);
      continue;
    }
    const double a = get_real(expected, i), b = get_real(disturbed, i);
    spread.nan[at] |= std::isnan(b);
    if (!same_class(a, b)) {
      spread.undecided[at] = 1;
    } else if (std::isfinite(a)) {
      spread.distance[at] = std::max(spread.distance[at], std::fabs(a - b));
      spread.total[at] += std::fabs(a - b);
    }
  }
}

double smallest_normal(DType dtype) { return std::ldexp(1.0, real_format(dtype).min_exponent); }

void mismatch(Comparison& result, std::int64_t i) {
  result.equal = false;
  if (result.first_mismatch < 0) result.first_mismatch = i;
  ++result.mismatches;
}

bool judge_real(Comparison& result, const Spread& spread, DType dtype, std::int64_t i, double expected, double actual) {
  if (!same_class(expected, actual)) {
    result.max_tolerance_ratio = std::numeric_limits<double>::infinity();
    return false;
  }
  if (!std::isfinite(expected)) return true;
  const double error = std::fabs(actual - expected);
  const double tolerance = kUlps * ulp(dtype, expected) + kSpreads * spread.distance[static_cast<std::size_t>(i)];
  result.max_abs_error = std::max(result.max_abs_error, error);
  result.max_rel_error = std::max(result.max_rel_error, error / std::max(std::fabs(expected), smallest_normal(dtype)));
  result.max_tolerance_ratio = std::max(result.max_tolerance_ratio, error / tolerance);
  return error <= tolerance;
}

bool judge_integer(Comparison& result, std::int64_t expected, std::int64_t actual) {
  if (expected == actual) return true;
  const double error = std::fabs(static_cast<double>(expected) - static_cast<double>(actual));
  result.max_abs_error = std::max(result.max_abs_error, error);
  result.max_tolerance_ratio = std::numeric_limits<double>::infinity();
  return false;
}

// A NaN that neither the undisturbed run nor any other shows is one of no plan, however little they say of a number.
bool unexplained_nan(const Spread& spread, std::size_t i, double expected, double actual) {
  return std::isnan(actual) && !std::isnan(expected) && spread.nan[i] == 0;
}

bool is_undecided(const Spread& spread, const HostArray& expected, const HostArray& actual, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  if (!is_real(expected.dtype)) return spread.undecided[at] != 0;
  const double number = get_real(expected, i);
  return (spread.undecided[at] != 0 || spread.says_nothing(at, number)) &&
         !unexplained_nan(spread, at, number, get_real(actual, i));
}

Comparison judge(const HostArray& expected, const HostArray& actual, Spread& spread) {
  Comparison result;
  result.elements = element_count(expected);
  for (std::int64_t i = 0; i < result.elements; ++i) {
    char& right = spread.right[static_cast<std::size_t>(i)];
    if (right == 0 && is_undecided(spread, expected, actual, i)) {
      ++result.undecided;
      continue;
    }
    right = is_real(expected.dtype)
                ? judge_real(result, spread, expected.dtype, i, get_real(expected, i), get_real(actual, i))
                : judge_integer(result, get_integer(expected, i), get_integer(actual, i));
    if (right == 0) mismatch(result, i);
  }
  return result;
}

void check_outputs(const Graph& graph, const std::vector<HostArray>& expected, const std::vector<HostArray>& actual) {
  if (actual.size() != expected.size())
    throw Error(ErrorKind::argument,
                fmt::format("graph '{}' has {} results, {} given", graph.name, expected.size(), actual.size()), {},
                "give one array for each result, in the graph's order");
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (actual[i].dtype != expected[i].dtype || actual[i].shape != expected[i].shape ||
        actual[i].bytes.size() != expected[i].bytes.size())
      throw Error(
          ErrorKind::argument,
          fmt::format("result '{}' is {}[{}], the graph gives {}[{}]", graph.outputs_names[i], name_of(actual[i].dtype),
                      fmt::join(actual[i].shape, ", "), name_of(expected[i].dtype), fmt::join(expected[i].shape, ", ")),
          {}, "compare with the results of the same graph on the same inputs");
}

}  // namespace

std::vector<Comparison> compare_with_interpreter(const Graph& graph, const std::vector<HostArray>& inputs,
                                                 const std::vector<HostArray>& actual, const Bindings& bindings,
                                                 int runs) {
  const std::vector<HostArray> expected = interpret(graph, inputs, bindings);
  check_outputs(graph, expected, actual);
  std::vector<Spread> spreads;
  for (const HostArray& output : expected) {
    const auto n = static_cast<std::size_t>(element_count(output));
    const std::size_t reals = is_real(output.dtype) ? n : 0;
    const std::vector<double> zeros(reals);
    spreads.push_back({zeros, zeros, std::vector<char>(n), std::vector<char>(reals), std::vector<char>(n), 0});
  }
  // Pairs of opposite disturbances; every other pair also rounds every result to its dtype, as an unfused plan does,
  // and computes powers as plans do, by products and roots that it rounds.
  const Graph expanded = expand_powers(graph);
  const auto disturb = [&](int first, int last) {
    for (int run = first; run < last; ++run) {
      const InterpretOptions options{.round_every_op = run / 2 % 2 == 1,
                                     .perturb_seed = static_cast<std::uint64_t>(run)};
      const Graph& form = run / 2 % 2 == 1 ? expanded : graph;
      const std::vector<HostArray> disturbed = interpret(form, inputs, bindings, options);
      for (std::size_t i = 0; i < expected.size(); ++i) widen(spreads[i], expected[i], disturbed[i]);
    }
  };
  const auto judge_all = [&] {
    std::vector<Comparison> comparisons;
    for (std::size_t i = 0; i < expected.size(); ++i) comparisons.push_back(judge(expected[i], actual[i], spreads[i]));
    return comparisons;
  };
  disturb(0, runs);
  std::vector<Comparison> comparisons = judge_all();
  const auto all_equal = [&] {
    return std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return c.equal; });
  };
  if (all_equal()) return comparisons;
  const int more = runs * (1 + kMoreRuns);
  disturb(runs, more);
  // What a plan without fusion computes, exactly: a difference that is 0 there has no noise, and 0 / 0 is NaN.
  const std::vector<HostArray> apart = interpret(expanded, inputs, bindings, {.round_every_op = true});
  for (std::size_t i = 0; i < expected.size(); ++i) widen(spreads[i], expected[i], apart[i]);
  comparisons = judge_all();
  if (all_equal() || more >= kManyRuns) return comparisons;
  disturb(more, kManyRuns);
  return judge_all();
}

}  // namespace tenon::ir
