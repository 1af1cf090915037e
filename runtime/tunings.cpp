// See tunings.h.
#include "runtime/tunings.h"

#include <fmt/format.h>

#include "codegen/schedule/schedule.h"
#include "tenon/error.h"

namespace tenon::runtime {
namespace {

// What decides which schedule is fastest, as far as kernels are written for it.
std::string device_of(const codegen::Target& target) {
  switch (target.kind) {
    case codegen::TargetKind::cpu: return fmt::format("{} {} threads", target.cpu, target.threads);
    case codegen::TargetKind::cuda: return fmt::format("{} {} multiprocessors", target.arch, target.multiprocessors);
  }
  return "";
}

}  // namespace

std::string Tunings::key_of(const Backend& backend, const codegen::Kernel& kernel) const {
  codegen::Kernel unscheduled = kernel;
  unscheduled.schedule = {};
  CacheKey key;
  key.tenon = tenon_;
  key.compiler = "tuned schedule";
  key.arch = device_of(backend.target());
  key.source = codegen::print(unscheduled);
  return key.text();
}

std::optional<codegen::Schedule> Tunings::find(const Backend& backend, const codegen::Kernel& kernel) const {
  const std::string key = key_of(backend, kernel);
  const std::lock_guard lock(mutex_);
  const auto [known, fresh] = winners_.try_emplace(key);
  if (fresh && disk_ && !anew_)
    if (const auto entry = disk_->load(key)) known->second = entry->metadata;
  if (known->second.empty()) return std::nullopt;
  try {
    const codegen::Schedule winner = codegen::parse_schedule(known->second);
    const codegen::Target& target = backend.target();
    if (codegen::respects(winner, target.may) && codegen::verify(winner, kernel, target).empty()) return winner;
  } catch (const Error&) {
  }  // a file that something else wrote
  return std::nullopt;
}

void Tunings::keep(const Backend& backend, const codegen::Kernel& kernel, const codegen::Schedule& winner) {
  const std::string key = key_of(backend, kernel), text = codegen::print(winner);
  const std::lock_guard lock(mutex_);
  winners_[key] = text;
  if (disk_) disk_->store(key, {text, {}});
}

}  // namespace tenon::runtime
