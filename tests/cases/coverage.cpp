// Graphs are made, planned, lowered and scheduled, and none is run.
#include "tests/cases/coverage.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "codegen/kernel/kernel.h"
#include "ir/ops/op.h"
#include "src/driver/pipeline.h"
#include "tests/cases/counts.h"
#include "tests/cases/schedule_fields.h"
#include "tests/harness/random_graph.h"
#include "tests/harness/random_graph/draws.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using ir::Kind;
using ir::Op;

std::vector<std::string> names_of_rules() {
  std::vector<std::string> names;
  for (const ir::RuleInfo& row : ir::all_rules()) names.push_back(name_of(row.rule));
  return names;
}

std::vector<std::string> names_of_draws() {
  std::vector<std::string> names;
  for (const Draw& draw : all_draws()) names.push_back(draw.name);
  return names;
}

std::vector<std::string> names_of_ops() {
  std::vector<std::string> names;
  for (const ir::OpInfo& row : ir::all_ops())
    if (row.op != Op::input) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> names_of_dtypes() {
  std::vector<std::string> names;
  for (DType dtype : kAllDTypes) names.emplace_back(name_of(dtype));
  return names;
}

// What neighbours are told apart by: each view and source by itself, the rest by what planning makes of it.
std::string family_of(Op op) {
  static const std::map<Op, std::string> kFamilies{{Op::where, "where"},
                                                   {Op::cast, "cast"},
                                                   {Op::bitcast, "cast"},
                                                   {Op::sum, "sum"},
                                                   {Op::prod, "sum"},
                                                   {Op::max, "max"},
                                                   {Op::min, "max"},
                                                   {Op::any, "any"},
                                                   {Op::all, "any"},
                                                   {Op::argmax, "argmax"},
                                                   {Op::argmin, "argmax"},
                                                   {Op::mean, "mean"},
                                                   {Op::var, "mean"},
                                                   {Op::softmax, "softmax"},
                                                   {Op::log_softmax, "softmax"},
                                                   {Op::logsumexp, "softmax"},
                                                   {Op::cross_entropy, "softmax"},
                                                   {Op::layer_norm, "norm"},
                                                   {Op::rms_norm, "norm"},
                                                   {Op::linear, "matmul"},
                                                   {Op::attention, "attention"},
                                                   {Op::expand_dims, "reshape"},
                                                   {Op::squeeze, "reshape"},
                                                   {Op::split, "slice"},
                                                   {Op::stack, "concat"},
                                                   {Op::random_uniform, "random"},
                                                   {Op::random_normal, "random"},
                                                   {Op::random_bits, "random"},
                                                   {Op::dropout, "random"}};
  if (const auto found = kFamilies.find(op); found != kFamilies.end()) return found->second;
  if (ir::kind_of(op) == Kind::map) return ir::info(op).yields == ir::Yields::Boolean ? "compare" : "map";
  if (ir::kind_of(op) == Kind::composite) return "activation";
  return std::string(ir::name_of(op));
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const ir::OpInfo& row : ir::all_ops())
    if (std::find(names.begin(), names.end(), family_of(row.op)) == names.end()) names.push_back(family_of(row.op));
  return names;
}

// Dtypes that may come out of an op, by the table.
bool may_yield(const ir::OpInfo& op, DType dtype) {
  if (op.kind == Kind::contract || op.kind == Kind::composite) return is_real(dtype);
  if (op.kind == Kind::view || op.kind == Kind::source) return true;
  if (op.kind == Kind::random) return dtype == DType::i32;
  switch (op.yields) {
    case ir::Yields::Same: return ir::accepts(op.accepts, dtype);
    case ir::Yields::Boolean: return dtype == DType::bool_;
    case ir::Yields::Index: return dtype == DType::i64;
    case ir::Yields::Special: return true;
  }
  return true;
}

bool may_take(const ir::OpInfo& op, DType dtype) {
  if (op.kind == Kind::source) return false;
  if (op.kind == Kind::random || op.op == Op::random_uniform || op.op == Op::random_normal) return dtype == DType::i64;
  if (op.kind == Kind::contract || op.kind == Kind::composite) return is_real(dtype);
  return op.kind == Kind::view || ir::accepts(op.accepts, dtype);
}

class Coverage {
 public:
  Coverage() : cpu_(backend_of("cpu")), options_(default_options()) { options_.cache = false; }

  void add(const RandomCase& c) {
    ++graphs_;
    for (const std::string& draw : std::set<std::string>(c.draws.begin(), c.draws.end())) draws_.add(draw);
    for (const ir::Node& node : c.graph.nodes) add_node(c.graph, node);
    try {
      add_plans(c, cuda_fields_, cpu_fields_);
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  // Of a large graph, only what is planned.
  void add_large(const RandomCase& c) {
    ++large_;
    try {
      add_plans(c, large_cuda_fields_, large_cpu_fields_);
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  std::string text(std::uint64_t first) const {
    std::string text =
        fmt::format("{} graphs from seed {} on, and {} large ones: `tenon_random_cases coverage {} {} {}`.\n", graphs_,
                    first, large_, first, graphs_, large_);
    for (const std::string& kind : failed_.rows())
      text += fmt::format("{} of them were not planned or lowered: {}.\n", failed_.of(kind), kind);
    text += "\n## Draws\n\nGraphs that a kind of draw had a part in.\n\n" + table(draws_, "draw", 3);
    text += "\n## Operators\n\nAs recorded, before composites are decomposed.\n\n" + table(ops_, "operator", 5);
    text += "\n## Dtypes\n\nOf results.\n\n" + table(dtypes_, "dtype", 6);
    text += fmt::format(
        "\n## Neighbours\n\nThe operator of the row makes an operand of the column's. Of {} pairs of single operators "
        "that "
        "the dtypes of the\ntable allow, {} were drawn.\n\n{}",
        possible_pairs(), pairs_.size(), matrix(families_, families()));
    text +=
        "\n## Rules of the planner\n\nRefusals in the plans for both kinds of target.\n\n" + table(rules_, "rule", 4);
    text += "\n## Kernels and schedules\n\n" + table(classes_, "kernels", 4);
    return text +
           "\nFields of the schedules chosen first, where they are not at their default, with the values met.\n\n" +
           fields_table();
  }

 private:
  void add_node(const ir::Graph& graph, const ir::Node& node) {
    if (node.op == Op::input) return;
    ops_.add(std::string(ir::name_of(node.op)));
    for (ir::ValueId result : node.results) dtypes_.add(std::string(name_of(graph.type(result).dtype)));
    for (ir::ValueId operand : node.operands) {
      const Op producer = graph.producer(operand).op;
      families_.add(family_of(producer) + " -> " + family_of(node.op));
      if (producer != Op::input) pairs_.insert({producer, node.op});
    }
  }

  static std::size_t possible_pairs() {
    std::size_t count = 0;
    for (const ir::OpInfo& from : ir::all_ops())
      for (const ir::OpInfo& to : ir::all_ops()) {
        bool possible = false;
        for (DType dtype : kAllDTypes) possible = possible || (may_yield(from, dtype) && may_take(to, dtype));
        count += possible && from.op != Op::input && to.op != Op::input;
      }
    return count;
  }

  void fail(const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    const std::string message = known == nullptr ? error.what() : known->message();
    failed_.add(message.substr(0, message.find(':')));  // what follows names values
  }

  using Values = std::map<std::string, std::map<std::string, int>>;  // field, value, kernels

  void add_plans(const RandomCase& c, Values& cuda_fields, Values& cpu_fields) {
    add_plan(c, codegen::TargetKind::cuda, codegen::cuda_target("sm_90a"), cuda_fields);
    if (cpu_) add_plan(c, codegen::TargetKind::cpu, cpu_->target(), cpu_fields);
  }

  void add_plan(const RandomCase& c, codegen::TargetKind kind, const codegen::Target& target, Values& fields) {
    Options options = options_;
    options.typical = c.bindings;
    const ir::Plan plan = src::plan(c.graph, kind, options);
    for (const ir::Refusal& refusal : plan.refusals) rules_.add(name_of(refusal.rule));
    if (!plan.packs.empty()) classes_.add("packs", static_cast<std::int64_t>(plan.packs.size()));
    const codegen::Specialization specialization = codegen::specialize(plan, c.bindings);
    for (std::size_t group = 0; group < plan.groups.size(); ++group) {
      const codegen::Kernel kernel = test::scheduled_kernel(plan, static_cast<int>(group), specialization, target);
      classes_.add(fmt::format("{}, {}", ir::name_of(plan.groups[group].kernel_class),
                               kind == codegen::TargetKind::cpu ? "CPU" : "sm_90a"));
      for (const Field& field : fields_of(kernel.schedule))
        if (field.value != field.fallback) ++fields[field.name][field.value];
    }
  }

  static std::string values_text(const Values& fields, const std::string& name) {
    constexpr std::size_t kShown = 6;
    const auto found = fields.find(name);
    if (found == fields.end()) return "0 | ";
    int total = 0;
    std::string text;
    std::size_t shown = 0;
    for (const auto& [value, count] : found->second) {
      total += count;
      if (shown++ < kShown) text += (text.empty() ? "" : ", ") + value;
    }
    if (shown > kShown) text += fmt::format(" and {} more", shown - kShown);
    return fmt::format("{} | {}", total, text);
  }

  std::string fields_table() const {
    std::string text =
        "| field | sm_90a | values | sm_90a, large | values | CPU | values | CPU, large | values |\n"
        "|---|---:|---|---:|---|---:|---|---:|---|\n";
    for (const std::string& name : all_fields())
      text += fmt::format("| {} | {} | {} | {} | {} |\n", name, values_text(cuda_fields_, name),
                          values_text(large_cuda_fields_, name), values_text(cpu_fields_, name),
                          values_text(large_cpu_fields_, name));
    return text;
  }

  std::shared_ptr<const runtime::Backend> cpu_;
  Options options_;
  std::uint64_t graphs_ = 0, large_ = 0;
  Counts draws_{names_of_draws()}, ops_{names_of_ops()}, dtypes_{names_of_dtypes()}, families_,
      rules_{names_of_rules()}, classes_, failed_;
  std::set<std::pair<Op, Op>> pairs_;
  Values cuda_fields_, cpu_fields_, large_cuda_fields_, large_cpu_fields_;
};

}  // namespace

std::string coverage(std::uint64_t first, std::uint64_t count, std::uint64_t large) {
  Coverage coverage;
  for (std::uint64_t seed = first; seed < first + count; ++seed) coverage.add(random_case(seed));
  for (std::uint64_t seed = first; seed < first + large; ++seed) coverage.add_large(random_case(seed, Sizes::large));
  return coverage.text(first);
}

}  // namespace tenon::test
