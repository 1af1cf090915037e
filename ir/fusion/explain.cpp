// The refusals of a plan as sentences.
#include <fmt/format.h>

#include "ir/fusion/text.h"

namespace tenon::ir {
namespace {

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 10000) return fmt::format("{} bytes", bytes);
  if (bytes < 10000000) return fmt::format("{:.1f} KB", static_cast<double>(bytes) * 1e-3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

std::string heading(const Refusal& refusal, const std::vector<std::string>& names) {
  if (refusal.producer < 0)
    return fmt::format("{} is not an attention",
                       refusal.consumer < 0 ? "a matmul" : fmt::format("kernel {}", refusal.consumer));
  if (refusal.value < 0)
    return fmt::format("kernels {} and {} read the same and stay apart", refusal.producer, refusal.consumer);
  return fmt::format("{} passes through memory from kernel {} to kernel {}",
                     names[static_cast<std::size_t>(refusal.value)], refusal.producer, refusal.consumer);
}

}  // namespace

std::string explain(const Plan& plan) {
  const std::vector<std::string> names = fusion::memory_names(plan);
  std::string text;
  for (const Refusal& refusal : plan.refusals) {
    text += fmt::format("{} [{}]", heading(refusal, names), refusal.rule);
    if (refusal.bytes > 0) text += fmt::format(", {}", bytes_text(refusal.bytes));
    text += fmt::format(": {}\n", refusal.reason);
  }
  return text.empty() ? "nothing was refused\n" : text;
}

}  // namespace tenon::ir
