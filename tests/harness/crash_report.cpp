// Handlers on a stack of their own, since what ends a process may be the end of its stack. They write what was made
// ready before, and nothing else.
#include "tests/harness/crash_report.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "ir/graph/check.h"

namespace tenon::test {
namespace {

std::string& words() {
  static std::string text;
  return text;
}

void speak(int signal) {
  if (!words().empty() && ::write(STDERR_FILENO, words().data(), words().size()) < 0) _exit(1);
  ::raise(signal);  // SA_RESETHAND: the second time it ends the process
}

[[maybe_unused]] void install() {
  static char stack[1 << 16];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  TENON_CHECK(::sigaltstack(&alternate, nullptr) == 0, "no stack for signals");
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction action = {};
    action.sa_handler = speak;
    action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

CrashReport::CrashReport(const char* name, std::uint64_t number) {
#ifndef __SANITIZE_ADDRESS__  // which has last words of its own, and more of them
  static const bool installed = (install(), true);
  (void)installed;
#endif
  words() = fmt::format("{}={} ended the process\n", name, number);
}

CrashReport::~CrashReport() { words().clear(); }

}  // namespace tenon::test
