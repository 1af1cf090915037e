// The refusals of a plan as sentences, and what the planner expects of each kernel.
#include <fmt/format.h>

#include "ir/fusion/memory.h"
#include "ir/fusion/text.h"

namespace tenon::ir {
namespace {

std::string heading(const Refusal& refusal, const std::vector<std::string>& names) {
  if (refusal.launch) return fmt::format("kernels {} and {} are launched apart", refusal.producer, refusal.consumer);
  if (refusal.producer < 0)
    return fmt::format("{} is not an attention",
                       refusal.consumer < 0 ? "a matmul" : fmt::format("kernel {}", refusal.consumer));
  if (refusal.value < 0)
    return fmt::format("kernels {} and {} read the same and stay apart", refusal.producer, refusal.consumer);
  return fmt::format("{} passes through memory from kernel {} to kernel {}",
                     names[static_cast<std::size_t>(refusal.value)], refusal.producer, refusal.consumer);
}

// "2.1 GFLOP at 700 TFLOP/s": at the rate of the types that are multiplied, f64 at half of f32's, say.
std::string flops_text(const Estimate& estimate, const CostModel& cost) {
  if (estimate.flops <= 0) return "";
  const double us = estimate.tensor_flops / (cost.tensor_tflops * 1e6) + estimate.lane_flops / (cost.lane_tflops * 1e6);
  const char* by = cost.tensor_tflops == cost.lane_tflops ? ""
                   : estimate.lane_flops == 0             ? " of tensor cores"
                   : estimate.tensor_flops == 0           ? " of plain lanes"
                                                          : " of both kinds";
  return fmt::format(", {:.3g} GFLOP at {:.3g} TFLOP/s{}", estimate.flops / 1e9, estimate.flops / (us * 1e6), by);
}

std::string measured_text(double predicted_us, double us) {
  if (us <= 0) return "";
  return fmt::format("; measured {:.1f} us, {:.2f} of predicted", us, us / predicted_us);
}

}  // namespace

std::string explain(const Plan& plan) {
  const std::vector<std::string> names = fusion::memory_names(plan);
  std::string text;
  for (const Refusal& refusal : plan.refusals) {
    text += fmt::format("{} [{}]", heading(refusal, names), name_of(refusal.rule));
    if (refusal.bytes > 0) text += fmt::format(", {}", fusion::bytes_text(static_cast<double>(refusal.bytes)));
    text += fmt::format(": {}\n", refusal.reason);
  }
  return text.empty() ? "nothing was refused\n" : text;
}

double predicted_us(const Plan& plan) {
  double us = 0;
  for (const Group& group : plan.groups) us += group.estimate.us;
  for (const std::vector<int>& pack : plan.packs) us -= static_cast<double>(pack.size() - 1) * plan.cost.launch_us;
  return us;
}

std::string print_estimates(const Plan& plan, const std::vector<double>& measured_us) {
  const CostModel& cost = plan.cost;
  std::string text = fmt::format(
      "predicted for {}: copy {:.0f} GB/s, launch {:.1f} us, {} read again at {:.0f} GB/s, {:.0f} G instructions/s, "
      "{:.3g} TFLOP/s{}, overlap {:.2f}\n",
      cost.device, cost.bandwidth_gb_s, cost.launch_us, fusion::bytes_text(cost.l2_bytes), cost.l2_bandwidth_gb_s,
      cost.gigaslots_s, cost.tensor_tflops,
      cost.tensor_tflops == cost.lane_tflops ? ""
                                             : fmt::format(" of tensor cores, {:.3g} of plain lanes", cost.lane_tflops),
      cost.overlap);
  std::vector<bool> packed(plan.groups.size(), false);
  for (const std::vector<int>& pack : plan.packs)
    for (int member : pack) packed[static_cast<std::size_t>(member)] = true;
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const Estimate& estimate = plan.groups[i].estimate;
    text += fmt::format("kernel {} {}: {:.1f} us (memory {:.1f}, compute {:.1f}), {}{}{}\n", i,
                        name_of(plan.groups[i].kernel_class), estimate.us, estimate.memory_us, estimate.compute_us,
                        fusion::bytes_text(estimate.bytes), flops_text(estimate, cost),
                        measured_text(estimate.us, i < measured_us.size() && !packed[i] ? measured_us[i] : 0));
  }
  for (const std::vector<int>& pack : plan.packs) {
    const double saved = static_cast<double>(pack.size() - 1) * cost.launch_us;
    double us = -saved, measured = 0;
    for (int member : pack) {
      us += plan.groups[static_cast<std::size_t>(member)].estimate.us;
      if (!measured_us.empty()) measured += measured_us[static_cast<std::size_t>(member)];
    }
    text += fmt::format("kernels {} in one launch: {:.1f} us, {:.1f} us less{}\n", fmt::join(pack, " "), us, saved,
                        measured_text(us, measured));
  }
  return text + fmt::format("together {:.1f} us; at most {} of intermediates are alive at once\n", predicted_us(plan),
                            fusion::bytes_text(plan.live_bytes));
}

}  // namespace tenon::ir
