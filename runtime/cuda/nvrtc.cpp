// Compiles one kernel source with NVRTC: flags, the call, the results, and an Error that shows the offending lines.
// Relies on sources that include nothing, so no include path is ever passed.
#include "runtime/cuda/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

#include "ir/graph/check.h"
#include "tenon/error.h"

namespace tenon::runtime::cuda {
namespace {

constexpr int success = 0;
constexpr int error_out_of_memory = 1;
constexpr int error_invalid_option = 5;
constexpr int error_builtins = 7;
constexpr int context_lines = 2;
constexpr std::size_t shown_errors = 5;
constexpr const char* source_name = "kernel.cu";

// Owns one nvrtcProgram.
class Program {
 public:
  Program(const Nvrtc& nvrtc, const std::string& source) : nvrtc_(nvrtc) {
    check(nvrtc.create_program(&program_, source.c_str(), source_name, 0, nullptr, nullptr), "making a program");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { nvrtc_.destroy_program(&program_); }

  int compile(const std::vector<std::string>& flags) {
    std::vector<const char*> pointers;
    for (const auto& flag : flags) pointers.push_back(flag.c_str());
    return nvrtc_.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  std::string log() const { return text(nvrtc_.get_program_log_size, nvrtc_.get_program_log, "the log"); }
  std::string ptx() const { return text(nvrtc_.get_ptx_size, nvrtc_.get_ptx, "the PTX"); }

  std::vector<std::byte> cubin() const {
    std::size_t size = 0;
    check(nvrtc_.get_cubin_size(program_, &size), "asking for the cubin's size");
    std::vector<std::byte> bytes(size);
    if (size > 0) check(nvrtc_.get_cubin(program_, reinterpret_cast<char*>(bytes.data())), "reading the cubin");
    return bytes;
  }

 private:
  using GetSize = int (*)(NvrtcProgram, std::size_t*);
  using GetText = int (*)(NvrtcProgram, char*);

  void check(int result, const char* what) const {
    if (result == success) return;
    const auto kind = result == error_out_of_memory ? ErrorKind::out_of_memory : ErrorKind::compile;
    throw Error(kind, fmt::format("NVRTC: {}: {}", what, nvrtc_.get_error_string(result)));
  }

  // NVRTC counts the closing zero in sizes of text.
  std::string text(GetSize get_size, GetText get_text, const char* what) const {
    std::size_t size = 0;
    check(get_size(program_, &size), what);
    std::string value(size, '\0');
    if (size > 0) check(get_text(program_, value.data()), what);
    while (!value.empty() && value.back() == '\0') value.pop_back();
    return value;
  }

  const Nvrtc& nvrtc_;
  NvrtcProgram program_ = nullptr;
};

// Line numbers of the errors in the log, "kernel.cu(12): error: …" or "kernel.cu(12): catastrophic error: …".
std::set<std::size_t> error_lines(const std::string& log) {
  std::set<std::size_t> numbers;
  const std::string prefix = std::string(source_name) + "(";
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line) && numbers.size() < shown_errors;) {
    if (!line.starts_with(prefix) || line.find("error:") == std::string::npos) continue;
    numbers.insert(static_cast<std::size_t>(std::strtoul(line.c_str() + prefix.size(), nullptr, 10)));
  }
  return numbers;
}

// The lines around each error, numbered, with ">" before the one at fault and "…" between distant ones.
std::string excerpt(const std::string& source, const std::string& log) {
  const auto at_fault = error_lines(log);
  std::string text;
  std::size_t number = 0;
  std::size_t last_shown = 0;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto near = at_fault.lower_bound(number > context_lines ? number - context_lines : 0);
    if (near == at_fault.end() || *near > number + context_lines) continue;
    if (last_shown != 0 && number != last_shown + 1) text += "      …\n";
    text += fmt::format("{} {:>4} | {}\n", at_fault.contains(number) ? '>' : ' ', number, line);
    last_shown = number;
  }
  return text;
}

std::string without_trailing_newlines(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Error compile_error(const Nvrtc& nvrtc, int result, const std::string& log, const std::string& source,
                    const std::string& entry, const std::string& arch) {
  const auto head = fmt::format("NVRTC {}.{} could not compile {} for {}: {}", nvrtc.major, nvrtc.minor, entry, arch,
                                nvrtc.get_error_string(result));
  if (result == error_out_of_memory) return Error(ErrorKind::out_of_memory, head);
  if (result == error_builtins) {
    return Error(
        ErrorKind::no_device, head, {},
        fmt::format("put libnvrtc-builtins.so.{}.{} into the folder of {}", nvrtc.major, nvrtc.minor, nvrtc.path));
  }
  if (result == error_invalid_option) {
    return Error(ErrorKind::compile, without_trailing_newlines(head + "\n" + log), {},
                 "take the flag away, or use an NVRTC that knows it");
  }
  if (log.find("parameter space") != std::string::npos)  // 4,096 bytes up to CUDA 12.0, 32,764 since
    return Error(ErrorKind::resource, without_trailing_newlines(head + "\n" + log), {},
                 "use NVRTC and a driver of CUDA 12.1 or later, or a graph with fewer dimension names");
  return Error(ErrorKind::compile, without_trailing_newlines(head + "\n" + log + "\n" + excerpt(source, log)), {},
               "generated code must compile: please report it with the graph");
}

// "sm_90a" → 90; 0 for anything else.
int arch_number(const std::string& arch) {
  if (!arch.starts_with("sm_")) return 0;
  return static_cast<int>(std::strtol(arch.c_str() + 3, nullptr, 10));
}

std::string known_architectures(const Nvrtc& nvrtc) {
  std::vector<std::string> names;
  for (const int arch : nvrtc.architectures) names.push_back(fmt::format("sm_{}", arch));
  return fmt::format("{}", fmt::join(names, " "));
}

void check_arch(const Nvrtc& nvrtc, const std::string& arch) {
  const auto& known = nvrtc.architectures;
  if (std::find(known.begin(), known.end(), arch_number(arch)) != known.end()) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("NVRTC {}.{} does not compile for {}", nvrtc.major, nvrtc.minor, arch), {},
              "it knows " + known_architectures(nvrtc));
}

}  // namespace

std::string Nvrtc::identity() const { return fmt::format("nvrtc {}.{} build {}", major, minor, build_id); }

std::vector<std::string> compile_flags(const Nvrtc& nvrtc, const std::string& arch, const CompileOptions& options) {
  TENON_CHECK(options.standard == 17 || options.standard == 20, "C++ standard must be 17 or 20");
  std::vector<std::string> flags = {
      "--gpu-architecture=" + arch,
      fmt::format("--std=c++{}", options.standard),
      "--device-as-default-execution-space",
      fmt::format("--fmad={}", options.fmad),
      "--ftz=false",
      "--prec-div=true",
      "--prec-sqrt=true",
      "--ptxas-options=-v",
  };
  if (options.line_info) flags.push_back("--generate-line-info");
  // From 12.9 on NVRTC keeps its own cache, and a hit in it has no log. Tenon's cache makes it superfluous.
  if (nvrtc.major * 100 + nvrtc.minor >= 1209) flags.push_back("--no-cache");
  // Leaves out the runtime API's declarations, which generated code does not use: a sixth of a small kernel's time.
  if (nvrtc.major * 100 + nvrtc.minor >= 1204) flags.push_back("-minimal");
  flags.insert(flags.end(), options.extra.begin(), options.extra.end());
  return flags;
}

CompiledProgram compile(const Nvrtc& nvrtc, const std::string& source, const std::string& entry,
                        const std::string& arch, const CompileOptions& options) {
  check_arch(nvrtc, arch);
  const auto start = std::chrono::steady_clock::now();
  Program program(nvrtc, source);
  const int result = program.compile(compile_flags(nvrtc, arch, options));
  CompiledProgram compiled;
  compiled.log = program.log();
  if (result != success) throw compile_error(nvrtc, result, compiled.log, source, entry, arch);
  compiled.entry = entry;
  compiled.arch = arch;
  compiled.cubin = program.cubin();
  if (options.want_ptx) compiled.ptx = program.ptx();
  compiled.resources = resources_in(compiled.log, entry);
  compiled.warnings = warnings_in(compiled.log);
  compiled.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return compiled;
}

std::string arch_for(int major, int minor, const Nvrtc& nvrtc) {
  const int exact = 10 * major + minor;
  int best = 0;
  for (const int arch : nvrtc.architectures) {
    if (arch / 10 == major && arch <= exact) best = std::max(best, arch);
  }
  if (best == 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("NVRTC {}.{} does not compile for compute capability {}.{}", nvrtc.major, nvrtc.minor,
                            major, minor),
                {}, "install a newer NVRTC; this one knows " + known_architectures(nvrtc));
  }
  const bool specific = best == exact && major >= 9 && major <= 11;
  return fmt::format("sm_{}{}", best, specific ? "a" : "");
}

}  // namespace tenon::runtime::cuda
