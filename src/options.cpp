// Options from the environment: the only place that reads it.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "src/search.h"
#include "tenon/compile.h"

namespace tenon {
namespace {

struct Variable {
  const char* name;
  const char* doc;
  void (*apply)(Options&, const std::string&);
};

std::set<std::string> words(const std::string& text) {
  std::set<std::string> result;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) result.insert(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

template <typename Number>
Number number(const char* name, const std::string& text) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size())
    throw Error(ErrorKind::argument, fmt::format("{}='{}' is no number", name, text), {},
                fmt::format("unset {} or give a number", name));
  return value;
}

constexpr Variable kVariables[] = {
    {"TENON_PRINT", "levels printed to stderr while compiling: graph, plan, schedule, kernel, source",
     [](Options& options, const std::string& text) { options.print = words(text); }},
    {"TENON_DISABLE", "what is switched off, to compare: names that `tenon switches` lists, with commas between them",
     [](Options& options, const std::string& text) { options.disable = words(text); }},
    {"TENON_REPLAY", "1 repeats runs of several kernels as CUDA graphs",
     [](Options& options, const std::string& text) { options.replay = text != "0"; }},
    {"TENON_TUNE", "1 tries several schedules for each kernel at its first run and keeps the fastest",
     [](Options& options, const std::string& text) { options.tune = text != "0"; }},
    {"TENON_CACHE", "0 keeps no kernels on disk",
     [](Options& options, const std::string& text) { options.cache = text != "0"; }},
    {"TENON_CACHE_DIR", "folder of compiled kernels",
     [](Options& options, const std::string& text) { options.cache_dir = text; }},
    {"TENON_CACHE_BYTES", "size limit of that folder",
     [](Options& options, const std::string& text) {
       options.cache_bytes = number<std::uint64_t>("TENON_CACHE_BYTES", text);
     }},
    {"NVTX_INJECTION64_PATH", "set by NVIDIA's profilers: the tool that is told of each run and kernel",
     [](Options& options, const std::string& text) { options.nvtx_tool = text; }},
    {"TENON_NVRTC_PATH", "libnvrtc, or the folder that holds it",
     [](Options& options, const std::string& text) { options.nvrtc_path = text; }},
    {"TENON_DEVICE", "CUDA device number",
     [](Options& options, const std::string& text) { options.device = number<int>("TENON_DEVICE", text); }},
    {"TENON_THREADS", "threads of the CPU target",
     [](Options& options, const std::string& text) { options.threads = number<int>("TENON_THREADS", text); }},
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Options default_options() {
  Options options;
  for (const Variable& row : kVariables)
    if (const std::string value = variable(row.name); !value.empty()) row.apply(options, value);
  if (options.cache_dir.empty()) {
    const std::string base = variable("XDG_CACHE_HOME"), home = variable("HOME");
    if (!base.empty()) {
      options.cache_dir = base + "/tenon";
    } else if (!home.empty()) {
      options.cache_dir = home + "/.cache/tenon";
    } else {
      options.cache = false;
    }
  }
  return options;
}

std::vector<EnvironmentVariable> environment() {
  std::vector<EnvironmentVariable> variables;
  for (const Variable& row : kVariables) variables.push_back({row.name, variable(row.name), row.doc});
  return variables;
}

namespace src {

runtime::cuda::NvrtcSearch nvrtc_search(const Options& options) {
  runtime::cuda::NvrtcSearch search;
  search.path = options.nvrtc_path;
  for (const std::string& prefix :
       {variable("VIRTUAL_ENV"), variable("HOME").empty() ? "" : variable("HOME") + "/.local",
        std::string("/usr/local"), std::string("/usr")})
    if (!prefix.empty()) search.python_prefixes.push_back(prefix);
  search.conda_prefix = variable("CONDA_PREFIX");
  for (const std::string& folder : {variable("CUDA_PATH"), variable("CUDA_HOME"), std::string("/usr/local/cuda")})
    if (!folder.empty()) search.toolkit_folders.push_back(folder);
  return search;
}

}  // namespace src
}  // namespace tenon
