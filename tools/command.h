// What the subcommands share: the exit codes, the options that several take, and reading and writing.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/interpret/interpret.h"
#include "tenon/compile.h"

namespace tenon::tools {

enum ExitCode : int { fine = 0, failed = 1, usage = 2, no_device = 3, different = 4 };

/// Options of every subcommand that compiles.
struct CompileArguments {
  std::string file;
  std::string target = "auto";
  std::vector<std::string> dims;  ///< name=value
  std::vector<std::string> disable;
  bool no_fuse = false;

  void add_to(CLI::App& command);
  Options options() const;    ///< the environment's options with these on top
  Bindings bindings() const;  ///< Error(argument) for malformed entries
};

/// Options of the subcommands that time graphs on a device.
struct TimingArguments {
  std::vector<std::string> files;
  CompileArguments compile;  ///< its FILE is not used
  bool json = false;
  std::string output;  ///< file of the JSON; empty: none

  void add_to(CLI::App& command, double& seconds);
};

/// "name=value" cut in two; Error(argument) when there is no '='.
std::pair<std::string, std::string> key_value(const std::string& text, const std::string& what);

/// Writes to the file (src/api/write_file.h), or to stdout for "-" or nothing. Error(io).
void write_output(const std::string& path, std::string_view content);

/// Writes to stdout. Error(io), as when its disk is full.
void print(std::string_view text);

/// Writes out what stdout still holds, and says where any of it was lost: Error(io). Every command ends with it.
void flush_stdout();

/// "1 kernel", "2 kernels".
std::string counted(std::int64_t count, const std::string& what);

/// What an option's number must be; `example` is how to write one.
CLI::Validator whole_number(const std::string& example);     ///< from 0 on
CLI::Validator positive_number(const std::string& example);  ///< real and finite

/// Says once on stderr where kernels cannot be kept, and why: the run goes on.
void warn_of_cache(const Options& options);

/// Every symbol bound: by `given`, else 1024 within its bounds.
Bindings assumed_bindings(const ir::Graph& graph, Bindings given);
/// The same, and what was not given is said on stderr.
Bindings complete_bindings(const ir::Graph& graph, Bindings given);

/// Standard normal reals and small integers for each input.
std::vector<ir::HostArray> random_inputs(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed);

Array to_array(ir::HostArray array);
ir::HostArray to_host(Array array);

// One function a subcommand: it adds its arguments to `app` and sets `action`, which returns the exit code.
using Action = std::function<int()>;
void add_dump(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_ops(CLI::App& app, Action& action);
void add_switches(CLI::App& app, Action& action);
void add_fmt(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_cache(CLI::App& app, Action& action);
void add_version(CLI::App& app, Action& action);

}  // namespace tenon::tools
