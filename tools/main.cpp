// The `tenon` command: one subcommand a file; this one parses, dispatches, and turns errors into exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <sstream>

#include "ir/ops/suggest.h"
#include "src/api/write_file.h"
#include "tenon/error.h"
#include "tenon_build.h"
#include "tools/command.h"
#include "tools/terminal.h"

namespace {

using namespace tenon::tools;
using tenon::Error;
using tenon::ErrorKind;
using Words = std::vector<std::string>;

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::no_device:
    case ErrorKind::device_lost: return no_device;
    case ErrorKind::argument: return usage;
    case ErrorKind::parse:
    case ErrorKind::type:
    case ErrorKind::unsupported:
    case ErrorKind::resource:
    case ErrorKind::compile:
    case ErrorKind::launch:
    case ErrorKind::out_of_memory:
    case ErrorKind::io:
    case ErrorKind::internal: return failed;
  }
  return failed;
}

// How the command says what the library calls by the API's name; empty where there is nothing to add.
std::string in_own_words(const std::string& argument) {
  if (argument.starts_with("bindings[")) return fmt::format("--dim {}=512", argument.substr(9, argument.size() - 10));
  if (argument == "symbols") return "bounds stand behind the graph's inputs: where rows in [1, 65536], rows % 16 == 0";
  if (argument == "options.disable") return "--disable NAME, or TENON_DISABLE=NAME; `tenon switches` says what each is";
  if (argument == "graph.outputs") return "end the graph with a line such as: return y";
  return "";
}

int report(const Error& error) {
  const std::string words = in_own_words(error.place().argument);
  std::fprintf(stderr, "%s %s\n%s", toned(Tone::bad, "tenon:", stderr).c_str(), error.what(),
               words.empty() ? "" : ("  here: " + words + "\n").c_str());
  return exit_code(error.kind());
}

std::vector<std::string_view> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string_view> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

[[noreturn]] void refuse_command(const CLI::App& parent, const std::string& word,
                                 const std::vector<std::string_view>& names) {
  const std::string_view meant = tenon::ir::nearest(word, names);
  throw Error(ErrorKind::argument,
              word.empty() ? fmt::format("{}: which command?", parent.get_name())
                           : fmt::format("'{}' is no command of {}", word, parent.get_name()),
              {},
              fmt::format("{}{} has {}; `tenon help` says what each does",
                          meant.empty() ? "" : fmt::format("did you mean {}? ", meant), parent.get_name(),
                          tenon::ir::join(names)));
}

// The words with "help run" turned into "run --help". Error(argument) where a command should stand and does not.
Words checked(const CLI::App& app, Words words) {
  const bool help = !words.empty() && words.front() == "help";
  if (help) words.erase(words.begin());
  const CLI::App* command = &app;
  std::size_t depth = 0;
  for (;; ++depth) {
    const auto below = command->get_subcommands([](const CLI::App*) { return true; });
    if (below.empty() || (help && depth == words.size())) break;
    const std::string word = depth < words.size() ? words[depth] : "";
    if (word == "-h" || word == "--help" || (depth == 0 && word == "--version")) break;
    const auto names = names_of(below);
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) refuse_command(*command, word, names);
    command = below[static_cast<std::size_t>(found - names.begin())];
  }
  if (!help) return words;
  words.resize(depth);
  words.emplace_back("--help");
  return words;
}

int run(CLI::App& app, const Action& action, Words words) {
  words = checked(app, std::move(words));
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  int code = fine;
  try {
    app.parse(words);
    code = action();
  } catch (const CLI::ParseError& error) {  // --help and --version too
    std::ostringstream text;
    code = app.exit(error, text, std::cerr) == 0 ? fine : usage;
    print(text.str());
  }
  flush_stdout();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Tenon: operator graphs to fused kernels.", "tenon"};
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("tenon {} ({})", TENON_VERSION, TENON_COMMIT));
  app.footer(
      "FILE is a graph as .tn text or .json; '-' is stdin or stdout.\n"
      "Exit codes: 0 fine, 1 invalid graph or failed compile, 2 usage, 3 no such device or toolchain, 4 results "
      "differ.");
  Action action;
  for (const auto add : {add_dump, add_run, add_explain, add_bench, add_tune, add_sweep, add_calibrate, add_ops,
                         add_switches, add_fmt, add_doctor, add_cache, add_completion, add_man, add_version})
    add(app, action);
  tenon::remove_temporary_on_signals();
  try {
    return run(app, action, Words(argv + std::min(argc, 1), argv + argc));
  } catch (const Error& error) {
    return report(error);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorKind::out_of_memory, "this machine's memory is exhausted", {}, "use smaller extents"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon: internal error: %s\n", error.what());
    return failed;
  }
}
