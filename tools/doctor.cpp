// tenon doctor: what was found, where, what is missing and how to get it. tenon cache: the folder of compiled kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "codegen/target/target.h"
#include "runtime/cuda/device.h"
#include "runtime/disk_cache.h"
#include "src/driver/pipeline.h"
#include "src/driver/search.h"
#include "tenon_build.h"
#include "tools/command.h"
#include "tools/terminal.h"

namespace tenon::tools {
namespace {

struct Finding {
  std::string what;
  bool found = false;
  std::string detail;  ///< where and which, or why not
  std::string remedy;  ///< how to get it
};

Finding attempt(const std::string& what, const std::function<std::string()>& look) {
  try {
    return {what, true, look(), ""};
  } catch (const Error& error) {
    return {what, false, error.message(), error.remedy()};
  }
}

std::string nvrtc_detail(const Options& options) {
  const auto nvrtc = runtime::cuda::open_nvrtc(src::nvrtc_search(options));
  std::vector<std::string> names;  // that --target takes
  for (const std::string& name : codegen::cuda_architectures())
    if (std::count(nvrtc->architectures.begin(), nvrtc->architectures.end(), codegen::cuda_target(name).sm) > 0)
      names.push_back(name);
  return fmt::format("{}.{} at {} ({})", nvrtc->major, nvrtc->minor, nvrtc->path, fmt::join(names, " "));
}

std::string gpu_detail(const Options& options) {
  const auto driver = runtime::cuda::open_driver();
  const auto device = runtime::cuda::Device::open(driver, options.device);
  const auto& info = device->info();
  return fmt::format(
      "{} (compute capability {}.{}, {} SMs of {} threads and {} KiB of shared memory, {} MiB of L2, {:.0f} GiB at "
      "{:.0f} GB/s)",
      info.name, info.major, info.minor, info.sm_count, info.max_threads_per_sm, info.shared_bytes_per_sm >> 10,
      info.l2_bytes >> 20, static_cast<double>(info.memory_bytes) / (1 << 30), runtime::cuda::bandwidth_gb_s(info));
}

std::string cpu_detail(const Options& options) {
  const auto backend = src::open_backend("cpu", options);
  return fmt::format("{}, {} threads, {}-byte vectors", backend->target().cpu, backend->target().threads,
                     backend->target().vector_bytes);
}

// Of the cache: kernels, plans, measured costs and tuned schedules.
std::string counted_entries(std::uint64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "entry" : "entries");
}

std::string cache_detail(const Options& options) {
  if (!options.cache && options.cache_dir.empty())
    throw Error(ErrorKind::unsupported, "no folder: neither TENON_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set", {},
                "set one of them");
  if (!options.cache) throw Error(ErrorKind::unsupported, "switched off", {}, "unset TENON_CACHE");
  const auto stats =
      runtime::DiskCache({.folder = options.cache_dir, .max_bytes = options.cache_bytes, .log = {}}).stats();
  if (stats.state != runtime::DiskCacheState::usable)
    throw Error(ErrorKind::io, stats.reason, {}, "set TENON_CACHE_DIR to a folder of your own");
  return fmt::format("{}: {}, {:.1f} MiB", stats.folder, counted_entries(stats.entries),
                     static_cast<double>(stats.bytes) / (1 << 20));
}

int doctor(bool json) {
  const Options options = default_options();
  const std::vector<Finding> findings{
      attempt("NVRTC", [&] { return nvrtc_detail(options); }),
      attempt("GPU", [&] { return gpu_detail(options); }),
      attempt("CPU target", [&] { return cpu_detail(options); }),
      attempt("kernel cache", [&] { return cache_detail(options); }),
  };
  if (json) {
    nlohmann::ordered_json document{{"version", TENON_VERSION}, {"commit", TENON_COMMIT}};
    for (const Finding& f : findings)
      document["found"].push_back({{"what", f.what}, {"found", f.found}, {"detail", f.detail}, {"remedy", f.remedy}});
    for (const EnvironmentVariable& v : environment())
      document["environment"].push_back({{"name", v.name}, {"value", v.value}, {"doc", v.doc}});
    write_output("-", document.dump(2) + "\n");
    return fine;
  }
  std::string text = fmt::format("tenon {} ({})\n\n", TENON_VERSION, TENON_COMMIT);
  for (const Finding& f : findings) {
    text += fmt::format("{:<13} {} {}\n", f.what,
                        f.found ? toned(Tone::good, "found:") + "  " : toned(Tone::warning, "missing:"), f.detail);
    if (!f.remedy.empty()) text += fmt::format("{:<23} {}\n", "", f.remedy);
  }
  text += toned(Tone::heading, "\nenvironment variables\n");
  for (const EnvironmentVariable& v : environment())
    text += fmt::format("  {:<21} {:<12} {}\n", v.name, v.value.empty() ? "(unset)" : v.value, v.doc);
  write_output("-", text);
  return fine;
}

// ", 1 larger than all may be", where there are such entries.
std::string too_large_text(std::uint64_t entries) {
  return entries == 0 ? "" : fmt::format(", {} larger than all may be (not read)", entries);
}

runtime::DiskCache open_disk(const Options& options) {
  return runtime::DiskCache({.folder = options.cache_dir, .max_bytes = options.cache_bytes, .log = {}});
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Say what was found, where, and what is missing");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, &action] { action = [json] { return doctor(*json); }; });
}

void add_cache(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("cache", "The folder of compiled kernels");
  command->require_subcommand(1);
  const auto json = std::make_shared<bool>(false);
  CLI::App* stats = command->add_subcommand("stats", "Show its size");
  stats->add_flag("--json", *json, "as JSON");
  stats->callback([json, &action] {
    action = [json] {
      const auto s = open_disk(default_options()).stats();
      const nlohmann::ordered_json document{
          {"folder", s.folder}, {"entries", s.entries}, {"bytes", s.bytes}, {"max_bytes", s.max_bytes}};
      write_output(
          "-", *json ? document.dump() + "\n"
                     : fmt::format("{}\n{}, {} of {} bytes{}{}\n", s.folder, counted_entries(s.entries), s.bytes,
                                   s.max_bytes, too_large_text(s.too_large), s.reason.empty() ? "" : "\n" + s.reason));
      return fine;
    };
  });
  command->add_subcommand("verify", "Check every entry and remove damaged ones")->callback([&action] {
    action = [] {
      const auto report = open_disk(default_options()).verify();
      write_output("-", fmt::format("{} good, {} removed, {} unreadable{}\n", report.good, report.removed,
                                    report.unreadable, too_large_text(report.too_large)));
      return fine;
    };
  });
  command->add_subcommand("clear", "Remove every entry")->callback([&action] {
    action = [] {
      write_output("-", fmt::format("{} removed\n", counted_entries(open_disk(default_options()).clear())));
      return fine;
    };
  });
}

}  // namespace tenon::tools
