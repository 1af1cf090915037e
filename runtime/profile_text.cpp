// A profile beside its plan, and the two forms it is shown in: a table, and a trace.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/fusion/text.h"
#include "runtime/profile.h"

namespace tenon::runtime {
namespace {

using Json = nlohmann::ordered_json;

void append(std::vector<std::string>& list, const std::vector<std::string>& names,
            const std::vector<ir::ValueId>& values) {
  for (const ir::ValueId value : values) list.push_back(names[static_cast<std::size_t>(value)]);
}

// From the first kernel's begin to the last one's end.
double run_us(const Profile& profile) {
  if (profile.kernels.empty()) return 0;
  const KernelTimes& last = profile.kernels.back().kernel;
  return last.begin_us + last.duration_us;
}

Json name_event(const char* what, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", name}}}};
}

Json facts_of(const KernelProfile& kernel) {
  const Times& times = kernel.kernel.times;
  return {{"group", kernel.kernel.groups.front()},
          {"groups", kernel.kernel.groups},
          {"class", kernel.kernel_class},
          {"operators", kernel.operators},
          {"reads", kernel.reads},
          {"writes", kernel.writes},
          {"launches", times.samples},
          {"mean_us", kernel.kernel.mean_us()},
          {"min_us", 1e3 * times.min},
          {"max_us", 1e3 * times.max},
          {"bytes", kernel.bytes},
          {"gb_s", kernel.gb_s()},
          {"of_roof", kernel.roof_share()},
          {"bound_by", kernel.roof.bound()}};
}

Json kernel_event(const KernelProfile& kernel) {
  return {{"name", kernel.kernel.name},       {"cat", "kernel"}, {"ph", "X"}, {"ts", kernel.kernel.begin_us},
          {"dur", kernel.kernel.duration_us}, {"pid", 1},        {"tid", 1},  {"args", facts_of(kernel)}};
}

}  // namespace

Profile describe(const ir::Plan& plan, std::vector<KernelTimes> kernels, const ir::CostModel& peaks,
                 const std::string& device) {
  const std::vector<std::string> names = ir::fusion::memory_names(plan);
  Profile profile{plan.graph.name, device, peaks, {}};
  for (KernelTimes& times : kernels) {
    KernelProfile kernel;
    ir::Estimate estimate;
    for (const int number : times.groups) {
      const ir::Group& group = plan.groups[static_cast<std::size_t>(number)];
      kernel.kernel_class = ir::name_of(group.kernel_class);
      kernel.operators += (kernel.operators.empty() ? "" : "; ") + ir::fusion::operators_text(plan, group);
      append(kernel.reads, names, group.inputs);
      append(kernel.writes, names, group.outputs);
      ir::add_work(estimate, group.estimate);
    }
    if (times.groups.size() > 1) kernel.kernel_class = "pack";
    kernel.kernel = std::move(times);
    kernel.bytes = estimate.bytes;
    kernel.roof = ir::roofline(peaks, estimate);
    profile.kernels.push_back(std::move(kernel));
  }
  return profile;
}

std::string profile_table(const Profile& profile) {
  const ir::CostModel& peaks = profile.peaks;
  std::string text =
      fmt::format("roof: copy {:.1f} GB/s, measured now; {:.4g} G instructions/s and {:.3g} TFLOP/s, of {}\n",
                  peaks.bandwidth_gb_s, peaks.gigaslots_s, peaks.tensor_tflops, peaks.device);
  text += fmt::format("{:<32} {:>8} {:>11} {:>11} {:>11} {:>6} {:>14} {:>9} {:>8}  {}\n", "kernel", "launches",
                      "mean us", "min us", "max us", "share", "bytes", "GB/s", "of roof", "bound by");
  double sum = 0;
  for (const KernelProfile& kernel : profile.kernels) sum += kernel.kernel.mean_us();
  for (const KernelProfile& kernel : profile.kernels) {
    const Times& times = kernel.kernel.times;
    text += fmt::format("{:<32} {:>8} {:>11.3f} {:>11.3f} {:>11.3f} {:>5.1f}% {:>14.0f} {:>9.1f} {:>7.1f}%  {}\n",
                        fmt::format("{} {}", fmt::join(kernel.kernel.groups, " "), kernel.kernel.name), times.samples,
                        kernel.kernel.mean_us(), 1e3 * times.min, 1e3 * times.max, 100 * kernel.kernel.mean_us() / sum,
                        kernel.bytes, kernel.gb_s(), 100 * kernel.roof_share(), kernel.roof.bound());
  }
  return text + fmt::format("together {:.3f} us; one whole run {:.3f} us\n", sum, run_us(profile));
}

Json profile_json(const Profile& profile) {
  const ir::CostModel& peaks = profile.peaks;
  Json kernels = Json::array();
  for (const KernelProfile& kernel : profile.kernels) {
    Json row{{"name", kernel.kernel.name}};
    row.update(facts_of(kernel));
    kernels.push_back(std::move(row));
  }
  return {{"device", profile.device},
          {"roof",
           {{"copy_gb_s", peaks.bandwidth_gb_s},
            {"gigaslots_s", peaks.gigaslots_s},
            {"tensor_tflops", peaks.tensor_tflops},
            {"arithmetic_of", peaks.device}}},
          {"run_us", run_us(profile)},
          {"kernels", kernels}};
}

std::string chrome_trace(const Profile& profile) {
  Json events = Json::array();
  events.push_back(name_event("process_name", profile.graph + " on " + profile.device));
  events.push_back(name_event("thread_name", "kernels"));
  for (const KernelProfile& kernel : profile.kernels) events.push_back(kernel_event(kernel));
  return Json{{"traceEvents", events}, {"displayTimeUnit", "ns"}}.dump(1) + "\n";
}

}  // namespace tenon::runtime
