// Options from the environment: the only place that reads it.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "src/driver/search.h"
#include "src/driver/switches.h"
#include "tenon/compile.h"

namespace tenon {
namespace {

// A variable's name and text, and the option that it sets.
struct Setting {
  const char* name;
  const std::string& text;
  Options& options;

  [[noreturn]] void refuse(const std::string& accepted) const {
    throw Error(ErrorKind::argument, fmt::format("{}='{}' is not understood", name, text), {},
                fmt::format("{} takes {}", name, accepted));
  }
};

struct Variable {
  const char* name;
  const char* doc;
  void (*apply)(const Setting&);
};

std::set<std::string> words(const Setting& setting) {
  std::set<std::string> result;
  const std::string& text = setting.text;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) result.insert(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

bool on(const Setting& setting) {
  std::string word = setting.text;
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* yes : {"1", "on", "true", "yes"})
    if (word == yes) return true;
  for (const char* no : {"0", "off", "false", "no"})
    if (word == no) return false;
  setting.refuse("1, on, true or yes, and 0, off, false or no");
}

template <typename Number>
Number number(const Setting& setting, Number most) {
  Number value{};
  const char* end = setting.text.data() + setting.text.size();
  const auto [stop, failure] = std::from_chars(setting.text.data(), end, value);
  if (failure != std::errc() || stop != end || value < 0 || value > most)
    setting.refuse(fmt::format("a whole number from 0 to {}", most));
  return value;
}

constexpr int kMostThreads = 4096, kMostDevices = 1024;

constexpr Variable kVariables[] = {
    {"TENON_PRINT", "levels printed to stderr while compiling: graph, plan, schedule, kernel, source",
     [](const Setting& s) { s.options.print = words(s); }},
    {"TENON_DISABLE", "what is switched off, to compare: names that `tenon switches` lists, with commas between them",
     [](const Setting& s) { s.options.disable = words(s); }},
    {"TENON_REPLAY", "1 repeats runs of several kernels as CUDA graphs",
     [](const Setting& s) { s.options.replay = on(s); }},
    {"TENON_TUNE", "1 tries several schedules for each kernel at its first run and keeps the fastest",
     [](const Setting& s) { s.options.tune = on(s); }},
    {"TENON_CACHE", "0 keeps no kernels on disk", [](const Setting& s) { s.options.cache = on(s); }},
    {"TENON_CACHE_DIR", "folder of compiled kernels", [](const Setting& s) { s.options.cache_dir = s.text; }},
    {"TENON_CACHE_BYTES", "size limit of that folder",
     [](const Setting& s) { s.options.cache_bytes = number(s, std::numeric_limits<std::uint64_t>::max()); }},
    {"NVTX_INJECTION64_PATH", "set by NVIDIA's profilers: the tool that is told of each run and kernel",
     [](const Setting& s) { s.options.nvtx_tool = s.text; }},
    {"TENON_NVRTC_PATH", "libnvrtc, or the folder that holds it",
     [](const Setting& s) { s.options.nvrtc_path = s.text; }},
    {"TENON_DEVICE", "CUDA device number", [](const Setting& s) { s.options.device = number(s, kMostDevices); }},
    {"TENON_THREADS", "threads of the CPU target, 0: as many as the process may use",
     [](const Setting& s) { s.options.threads = number(s, kMostThreads); }},
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Options default_options() {
  Options options;
  for (const Variable& row : kVariables)
    if (const std::string value = variable(row.name); !value.empty()) row.apply({row.name, value, options});
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
  src::check_options(options);
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
