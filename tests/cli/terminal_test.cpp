// What a person sees at a terminal, and no file or pipe holds: colour, and what is waited for.
#include <pty.h>

#include "tests/cli/cli.h"

namespace tenon {
namespace {

// The same as tenon(), with a terminal as its input and output.
std::string at_terminal(const std::string& arguments, const std::string& environment = "") {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const std::string command = "TERM=xterm NO_COLOR= " + environment + " " + TENON_CLI + " " + arguments;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = ::read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  ::close(terminal);
  ::waitpid(child, nullptr, 0);
  return text;
}

TEST_F(Cli, ErrorsAreInColourAtATerminalAlone) {
  EXPECT_TRUE(at_terminal("explain none.tn").starts_with("\033[1;31mtenon:\033[0m "));
  EXPECT_TRUE(at_terminal("explain none.tn", "NO_COLOR=1").starts_with("tenon: "));
  EXPECT_TRUE(at_terminal("explain none.tn", "TERM=dumb").starts_with("tenon: "));
  EXPECT_TRUE(tenon("explain none.tn").text.starts_with("tenon: "));
}

#ifdef TENON_WITH_CPU
TEST_F(Cli, VerdictsAreInColourAtATerminalAlone) {
  const std::string command = "run " + gelu() + " --target cpu --random 1 --dim rows=4 --check";
  EXPECT_TRUE(contains(at_terminal(command), "check y: \033[32mok\033[0m, ")) << at_terminal(command);
  EXPECT_FALSE(contains(at_terminal(command, "NO_COLOR=1"), "\033"));
  EXPECT_FALSE(contains(tenon(command).text, "\033"));
}

// The interpreter takes about a microsecond for each operator of an element.
TEST_F(Cli, ALongWaitIsSaidAtATerminalAndErased) {
  const std::string graph =
      file("slow.tn", "graph slow(x: f32[4000000]) {\n  y = exp(sin(exp(sin(x))))\n  return y\n}\n");
  const std::string command = "run " + graph + " --target cpu --random 1 --check";
  const std::string text = at_terminal(command);
  const std::size_t said = text.find("\r\033[Kslow: checking with the interpreter, 1 s");
  ASSERT_NE(said, std::string::npos) << text;
  EXPECT_TRUE(text.substr(text.rfind("\r\033[K")).starts_with("\r\033[Kcheck y: ")) << text;
  EXPECT_FALSE(contains(tenon("run " + gelu() + " --target cpu --random 1 --dim rows=4").text, "\r"));
}
#endif

}  // namespace
}  // namespace tenon
