// Running a case on a target, and shrinking it.
#include "tests/harness/differential.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "codegen/kernel/kernel.h"
#include "ir/graph/build.h"
#include "ir/text/text.h"
#include "runtime/executable.h"
#include "tests/harness/random_schedule.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using ir::ValueId;

Verdict compare(const RandomCase& c, const std::vector<ir::HostArray>& actual) {
  Verdict verdict;
  const auto comparisons = ir::compare_with_interpreter(c.graph, c.inputs, actual, c.bindings);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const ir::Comparison& one = comparisons[i];
    verdict.elements += one.elements;
    verdict.undecided += one.undecided;
    if (one.equal || !verdict.same) continue;
    verdict.same = false;
    verdict.kind = "differs";
    const ir::HostArray& got = actual[i];
    const ir::HostArray expected = ir::interpret(c.graph, c.inputs, c.bindings)[i];
    verdict.difference = fmt::format(
        "output {}: {} of {} elements differ, error {} times the tolerance (absolute {}); element {}: got "
        "{:.9g}, expected {:.9g}",
        c.graph.outputs_names[i], one.mismatches, one.elements, one.max_tolerance_ratio, one.max_abs_error,
        one.first_mismatch, ir::get_real(got, one.first_mismatch), ir::get_real(expected, one.first_mismatch));
  }
  return verdict;
}

// The part of `graph` that `outputs` need when the values in `cuts` are inputs.
class Extract {
 public:
  Extract(const ir::Graph& graph, const std::set<ValueId>& cuts) : from_(graph), cuts_(cuts) {
    to_.name = graph.name;
    to_.symbols = graph.symbols;
  }

  RandomCase operator()(const std::vector<ValueId>& outputs, const std::vector<ir::HostArray>& values,
                        const Bindings& bindings) {
    std::set<ValueId> needed(outputs.begin(), outputs.end());
    for (std::size_t i = from_.values.size(); i-- > 0;)
      if (needed.count(static_cast<ValueId>(i)) && !is_input(static_cast<ValueId>(i)))
        for (ValueId operand : from_.producer(static_cast<ValueId>(i)).operands) needed.insert(operand);
    RandomCase result;
    for (ValueId value : needed) copy(value, values, result);
    for (std::size_t i = 0; i < outputs.size(); ++i) ir::append_output(to_, map_.at(outputs[i]), fmt::format("y{}", i));
    result.graph = std::move(to_);
    result.bindings = bindings;
    return result;
  }

 private:
  bool is_input(ValueId value) const { return cuts_.count(value) || from_.producer(value).op == ir::Op::input; }

  void copy(ValueId value, const std::vector<ir::HostArray>& values, RandomCase& result) {
    if (map_.count(value)) return;
    const ir::Type& type = from_.type(value);
    if (is_input(value)) {
      map_[value] = ir::append_input(to_, fmt::format("x{}", result.inputs.size()), type.dtype, type.shape);
      result.inputs.push_back(values[static_cast<std::size_t>(value)]);
      return;
    }
    const ir::Node& node = from_.producer(value);
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(map_.at(operand));
    const std::vector<ValueId> results = ir::append(to_, node.op, operands, node.attrs);
    for (std::size_t i = 0; i < results.size(); ++i) map_[node.results[i]] = results[i];
  }

  const ir::Graph& from_;
  const std::set<ValueId>& cuts_;
  ir::Graph to_;
  std::map<ValueId, ValueId> map_;
};

// Large cases have none: their kernels are built and not run. A number has an element, so no shape and no bytes are
// none.
bool has_data(const RandomCase& c) {
  if (c.inputs.empty()) return c.graph.inputs.empty();
  return !(c.inputs[0].shape.empty() && c.inputs[0].bytes.empty());
}

// What the interpreter computes for every value; nothing of a case without data.
std::vector<ir::HostArray> all_values(const RandomCase& c) {
  if (!has_data(c)) return std::vector<ir::HostArray>(c.graph.values.size());
  ir::Graph graph = c.graph;
  graph.outputs.clear();
  graph.outputs_names.clear();
  graph.updates.clear();
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    ir::append_output(graph, static_cast<ValueId>(i), fmt::format("value{}", i));
  return ir::interpret(graph, c.inputs, c.bindings);
}

// One step of shrinking: the first smaller case that still fails, or nothing.
std::optional<RandomCase> smaller(const RandomCase& c, const std::function<bool(const RandomCase&)>& fails) {
  const std::vector<ir::HostArray> values = all_values(c);
  const std::set<ValueId> outputs(c.graph.outputs.begin(), c.graph.outputs.end());
  const auto attempt = [&](const std::vector<ValueId>& results,
                           const std::set<ValueId>& cuts) -> std::optional<RandomCase> {
    try {
      RandomCase candidate = Extract(c.graph, cuts)(results, values, c.bindings);
      const bool progress = candidate.graph.nodes.size() < c.graph.nodes.size() ||
                            candidate.graph.outputs.size() < c.graph.outputs.size();
      return progress && fails(candidate) ? std::optional(std::move(candidate)) : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;  // an input cannot stand there (a symbol left undecided)
    }
  };
  for (std::size_t i = 0; i < c.graph.values.size(); ++i) {  // an earlier value alone as the result
    const auto value = static_cast<ValueId>(i);
    if (c.graph.producer(value).op == ir::Op::input) continue;
    if (auto found = attempt({value}, {})) return found;
  }
  for (std::size_t i = c.graph.values.size(); i-- > 0;) {  // a value as an input, the latest first
    const auto value = static_cast<ValueId>(i);
    if (c.graph.producer(value).op == ir::Op::input || outputs.count(value)) continue;
    if (auto found = attempt(c.graph.outputs, {value})) return found;
  }
  return std::nullopt;
}

}  // namespace

Array to_array(const ir::HostArray& array) {
  Array result;
  result.dtype = array.dtype;
  result.shape = array.shape;
  result.bytes = array.bytes;
  return result;
}

ir::HostArray to_host(const Array& array) { return {array.dtype, array.shape, array.bytes}; }

namespace {

Executable executable_of(const ir::Graph& graph, const std::string& target, const Options& options) {
  if (!is_variant(target)) return compile(Graph(graph), target, options);
  const auto backend = backend_of(target);
  return src::make_executable(src::plan(graph, *backend, options), backend, options);
}

// Finds the schedules of a launch, whose first group is given.
using FindFor = std::function<src::FindSchedule(int group, const codegen::Target& target)>;

Executable executable_with_schedules(const ir::Graph& graph, const std::string& target, const Options& options,
                                     const FindFor& find_for) {
  const auto backend = target.starts_with("sm_") ? src::open_backend(target, options) : backend_of(target);
  const auto plan = std::make_shared<const ir::Plan>(src::plan(graph, *backend, options));
  const auto build = [=](const std::vector<int>& groups, const codegen::Specialization& specialization) {
    std::vector<std::shared_ptr<const runtime::BuiltLaunch>> built;
    for (codegen::Launch& launch : src::make_launches(*plan, groups, specialization, backend->target(),
                                                      find_for(groups.front(), backend->target())))
      built.push_back(src::build_launch(std::move(launch), *backend));
    return built;
  };
  return Executable(std::make_shared<Executable::Impl>(*plan, backend, build));
}

// What a user can do something about: a limit that is exceeded, said with a remedy.
bool is_refusal(const Error& error) {
  const bool limit = error.kind() == ErrorKind::resource || error.kind() == ErrorKind::unsupported;
  return limit && !error.remedy().empty();
}

Verdict check(const RandomCase& c, const std::string& target,
              const std::function<Executable(const ir::Graph& graph)>& compiled) {
  try {
    const Executable executable = compiled(c.graph);
    if (target.starts_with("sm_")) {
      executable.impl().build(codegen::specialize(executable.impl().plan, c.bindings));
      return {};
    }
    std::vector<Array> inputs;
    for (const ir::HostArray& input : c.inputs) inputs.push_back(to_array(input));
    std::vector<ir::HostArray> actual;
    for (const Array& output : executable(inputs, c.bindings)) actual.push_back(to_host(output));
    return compare(c, actual);
  } catch (const Error& error) {
    return {is_refusal(error), is_refusal(error), name_of(error.kind()), error.what()};
  } catch (const std::exception& error) {
    return {false, false, "exception", error.what()};
  }
}

}  // namespace

Verdict check(const RandomCase& c, const std::string& target, const Options& options) {
  return check(c, target, [&](const ir::Graph& graph) { return executable_of(graph, target, options); });
}

Verdict check_other_schedules(const RandomCase& c, const std::string& target, const Options& options,
                              std::uint64_t choice, Schedules schedules) {
  const FindFor find_for = [&](int group, const codegen::Target& described) -> src::FindSchedule {
    return [&, engine =
                   std::mt19937_64(choice + static_cast<std::uint64_t>(group))](const codegen::Kernel& kernel) mutable {
      if (schedules == Schedules::legal) return std::optional(random_legal_schedule(kernel, described, engine));
      const std::vector<codegen::Schedule> candidates = codegen::candidate_schedules(kernel, described);
      return std::optional(candidates[engine() % candidates.size()]);
    };
  };
  return check(c, target,
               [&](const ir::Graph& graph) { return executable_with_schedules(graph, target, options, find_for); });
}

Verdict check_with_schedules(const RandomCase& c, const std::string& target, const Options& options,
                             const src::FindSchedule& find) {
  return check(c, target, [&](const ir::Graph& graph) {
    return executable_with_schedules(graph, target, options, [&](int, const codegen::Target&) { return find; });
  });
}

Verdict check_fused_and_unfused(const RandomCase& c, const std::string& target, const Options& options) {
  Verdict fused = check(c, target, options);
  if (!fused.same) {
    fused.difference = "fused: " + fused.difference;
    return fused;
  }
  Options apart = options;
  apart.fuse = false;
  Verdict unfused = check(c, target, apart);
  if (!unfused.same) {
    unfused.difference = "unfused: " + unfused.difference;
    return unfused;
  }
  if (unfused.refused) return unfused;
  return fused;
}

RandomCase shrink(RandomCase c, const std::function<bool(const RandomCase&)>& fails) {
  for (int step = 0; step < 60; ++step) {
    auto next = smaller(c, fails);
    if (!next) break;
    c = std::move(*next);
  }
  return c;
}

std::string report(const RandomCase& c, const std::string& difference) {
  std::string text = ir::print(c.graph);
  for (const auto& [symbol, value] : c.bindings) text += fmt::format("# {} = {}\n", symbol, value);
  return text + "# " + difference + "\n";
}

}  // namespace tenon::test
