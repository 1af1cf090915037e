// The pieces that several subcommands use.
#include "tools/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "runtime/disk_cache.h"
#include "src/api/write_file.h"
#include "src/driver/switches.h"
#include "tools/terminal.h"

namespace tenon::tools {

namespace {

void add_common(CLI::App& command, CompileArguments& arguments) {
  command.add_option("--dim", arguments.dims, "value of a dimension: rows=512 (repeatable)");
  command.add_option("--disable", arguments.disable, "what to switch off, a name of `tenon switches` (repeatable)");
  command.add_flag("--no-fuse", arguments.no_fuse, "one kernel for each operator, to compare");
}

[[noreturn]] void lost_output(int error) {
  throw Error(ErrorKind::io, fmt::format("cannot write to standard output: {}", std::strerror(error)), {},
              "check what it is redirected to, and the space left there");
}

}  // namespace

void CompileArguments::add_to(CLI::App& command) {
  command.add_option("FILE", file, "graph (.tn or .json; - for stdin)")->required();
  command.add_option("--target", target, "cpu, cuda, auto, or an architecture such as sm_90a")->capture_default_str();
  add_common(command, *this);
}

void TimingArguments::add_to(CLI::App& command, double& seconds) {
  command.add_option("FILES", files, "graphs (.tn or .json)")->required();
  command.add_option("--target", compile.target, "cpu, cuda or auto")->capture_default_str();
  add_common(command, compile);
  command.add_option("--seconds", seconds, "time for each measurement")
      ->check(positive_number("--seconds 0.5"))
      ->capture_default_str();
  command.add_flag("--json", json, "as JSON");
  command.add_option("-o,--output", output, "file to write the JSON to as well");
}

Options CompileArguments::options() const {
  Options options = default_options();
  options.disable.insert(disable.begin(), disable.end());
  if (no_fuse) options.fuse = false;
  options.typical = bindings();
  src::check_options(options);
  return options;
}

Bindings CompileArguments::bindings() const {
  Bindings bindings;
  for (const std::string& text : dims) {
    const auto [name, value] = key_value(text, "--dim");
    std::int64_t number = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (failure != std::errc() || end != value.data() + value.size() || number < 0)
      throw Error(ErrorKind::argument, fmt::format("--dim {}: '{}' is no extent", text, value), {},
                  "write --dim rows=512");
    bindings[name] = number;
  }
  return bindings;
}

std::pair<std::string, std::string> key_value(const std::string& text, const std::string& what) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorKind::argument, fmt::format("{} {}: no name=value", what, text), {},
                fmt::format("write {} name=value", what));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void write_output(const std::string& path, std::string_view content) {
  if (!path.empty() && path != "-") return write_file(path, content);
  print(content);
  flush_stdout();
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) lost_output(errno);
}

void flush_stdout() {
  if (std::fflush(stdout) != 0) lost_output(errno);
  if (std::ferror(stdout)) lost_output(EIO);  // the reason of an earlier failure is gone
}

std::string counted(std::int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

CLI::Validator whole_number(const std::string& example) {
  return {[example](std::string& text) {
            std::int64_t number = 0;
            const char* end = text.data() + text.size();
            const auto [stop, failure] = std::from_chars(text.data(), end, number);
            if (failure == std::errc() && stop == end && number >= 0) return std::string();
            return fmt::format("'{}' is no whole number from 0 on; write {}", text, example);
          },
          ""};
}

CLI::Validator positive_number(const std::string& example) {
  return {[example](std::string& text) {
            double number = 0;
            const char* end = text.data() + text.size();
            const auto [stop, failure] = std::from_chars(text.data(), end, number);
            if (failure == std::errc() && stop == end && number > 0 && std::isfinite(number)) return std::string();
            return fmt::format("'{}' is no number above 0; write {}", text, example);
          },
          ""};
}

void warn_of_cache(const Options& options) {
  if (!options.cache) return;
  const auto stats =
      runtime::DiskCache({.folder = options.cache_dir, .max_bytes = options.cache_bytes, .log = {}}).stats();
  if (stats.state == runtime::DiskCacheState::usable) return;
  std::fprintf(stderr, "%s compiled kernels are not kept in %s: %s\n",
               toned(Tone::warning, "tenon: warning:", stderr).c_str(), stats.folder.c_str(), stats.reason.c_str());
}

Bindings assumed_bindings(const ir::Graph& graph, Bindings given) {
  for (const auto& [name, bounds] : graph.symbols)
    given.try_emplace(name, std::clamp<std::int64_t>(1024 / bounds.divisor * bounds.divisor, bounds.min, bounds.max));
  return given;
}

Bindings complete_bindings(const ir::Graph& graph, Bindings given) {
  const Bindings all = assumed_bindings(graph, given);
  for (const auto& [name, value] : all)
    if (!given.contains(name))
      std::fprintf(stderr, "tenon: %s = %lld (choose with --dim %s=N)\n", name.c_str(), static_cast<long long>(value),
                   name.c_str());
  return all;
}

std::vector<ir::HostArray> random_inputs(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<std::int64_t> small(0, 9);
  std::vector<ir::HostArray> arrays;
  for (ir::ValueId input : graph.inputs) {
    const ir::Type& type = graph.type(input);
    std::vector<std::int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(extent.evaluate(bindings));
    ir::HostArray array = ir::make_array(type.dtype, shape);
    const std::int64_t count = ir::element_count(array);
    for (std::int64_t i = 0; i < count; ++i) {
      if (is_real(type.dtype)) {
        ir::set_real(array, i, normal(engine));
      } else {
        ir::set_integer(array, i, type.dtype == DType::bool_ ? small(engine) & 1 : small(engine));
      }
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Array to_array(ir::HostArray array) {
  Array result;
  result.dtype = array.dtype;
  result.shape = std::move(array.shape);
  result.bytes = std::move(array.bytes);
  return result;
}

ir::HostArray to_host(Array array) { return {array.dtype, std::move(array.shape), std::move(array.bytes)}; }

}  // namespace tenon::tools
