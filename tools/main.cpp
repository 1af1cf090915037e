// The `tenon` command: one subcommand a file; this one parses, dispatches, and turns errors into exit codes.
#include <cstdio>
#include <exception>

#include "tenon/error.h"
#include "tools/command.h"

namespace {

using namespace tenon::tools;

int exit_code(tenon::ErrorKind kind) {
  switch (kind) {
    case tenon::ErrorKind::no_device:
    case tenon::ErrorKind::device_lost: return no_device;
    case tenon::ErrorKind::argument: return usage;
    case tenon::ErrorKind::parse:
    case tenon::ErrorKind::type:
    case tenon::ErrorKind::unsupported:
    case tenon::ErrorKind::resource:
    case tenon::ErrorKind::compile:
    case tenon::ErrorKind::launch:
    case tenon::ErrorKind::out_of_memory:
    case tenon::ErrorKind::io:
    case tenon::ErrorKind::internal: return failed;
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Tenon: operator graphs to fused kernels.", "tenon"};
  app.require_subcommand(1);
  app.footer(
      "FILE is a graph as .tn text or .json; '-' is stdin or stdout.\n"
      "Exit codes: 0 fine, 1 invalid graph or failed compile, 2 usage, 3 no such device or toolchain, 4 results "
      "differ.");
  Action action;
  for (const auto add : {add_dump, add_run, add_explain, add_bench, add_tune, add_calibrate, add_ops, add_switches,
                         add_fmt, add_doctor, add_cache, add_version})
    add(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? fine : usage;
  }
  try {
    return action();
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "tenon: %s\n", error.what());
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon: internal error: %s\n", error.what());
    return failed;
  }
}
