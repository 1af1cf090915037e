// What the command says of itself: operators with examples, and what a shell completes.
#include <nlohmann/json.hpp>

#include "tests/cli/cli.h"

namespace tenon {
namespace {

TEST_F(Cli, EveryOperatorHasAnExample) {
  std::string all;
  for (const auto& op : nlohmann::json::parse(tenon("ops --json").text)) all += " " + op["name"].get<std::string>();
  const Outcome examples = tenon("ops --json" + all);
  ASSERT_EQ(examples.code, 0) << examples.text;
  for (const auto& op : nlohmann::json::parse(examples.text)) {
    const std::string text = op["example"], name = op["name"];
    EXPECT_TRUE(name == "input" || contains(text, name + "(")) << text;
    EXPECT_EQ(tenon("fmt --check " + file(name + ".tn", text)).code, 0) << text;
  }
}

TEST_F(Cli, AnOperatorIsShownWithNumbers) {
  const Outcome outcome = tenon("ops minimum argmax");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text.substr(0, outcome.text.find("\nargmax")),
            "minimum(a, b)\n"
            "  the smaller; NaN if either is NaN; -0 < +0\n"
            "  map, takes numbers, gives their dtype\n"
            "\n"
            "graph example(a: f32[3], b: f32[3]) {\n"
            "  y: f32[3] = minimum(a, b)\n"
            "  return y\n"
            "}\n"
            "\n"
            "  a = [-0.75, 0.5, 2]\n"
            "  b = [2, 0.5, -1]\n"
            "  y = [-0.75, 0.5, -1]\n");
  EXPECT_TRUE(contains(outcome.text, "takes numbers, gives i64")) << outcome.text;
  const Outcome unknown = tenon("ops softmx");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.text, "there is no operator 'softmx'\n  help: did you mean softmax?")) << unknown.text;
}

TEST_F(Cli, FilesAreFormattedWhereTheyLie) {
  const std::string good = gelu(), bad = file("bad.tn", "graph f(x: f32[2]) {\n y=neg( x )\n return y\n}\n");
  EXPECT_EQ(tenon("fmt --check " + good).text, "");
  const Outcome found = tenon("fmt --check " + good + " " + bad);
  EXPECT_EQ(found.code, 4);
  EXPECT_EQ(found.text, bad + "\n");
  EXPECT_EQ(tenon("fmt -i " + good + " " + bad).code, 0);
  EXPECT_EQ(tenon("fmt --check " + good + " " + bad).code, 0);
  EXPECT_TRUE(contains(tenon("fmt " + bad).text, "  y = neg(x)\n"));
  EXPECT_TRUE(contains(tenon("fmt " + good + " " + bad).text, "fmt: 2 files\n  help: add --in-place"));
  EXPECT_EQ(tenon("fmt -i - < " + good).code, 2);
}

TEST_F(Cli, TheManualPageHasEveryCommandAndOption) {
  const std::string page = tenon("man").text, help = tenon("help").text;
  for (const char* part :
       {".TH TENON 1 ", ".SH NAME\ntenon \\- Tenon: operator graphs", ".SS dump FILE\n", ".SS cache verify\n",
        ".SS ops [NAME…]\n", "\\fB\\-o,\\-\\-output\\fR\n", "Exit codes: 0 fine", "\\fBTENON_THREADS\\fR\n"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_TRUE(contains(help, "man")) << help;
  if (outcome_of("groff --version 2>/dev/null").code != 0) GTEST_SKIP() << "no groff to read it with";
  EXPECT_EQ(outcome_of(TENON_CLI " man | groff -k -man -Tutf8 -ww -z 2>&1").text, "");
}

// As bash asks: the words of the line, and which of them the cursor is at.
TEST_F(Cli, BashCompletesCommandsAndOptions) {
  const auto completed = [](const std::string& words, int at) {
    return outcome_of("bash -c 'source <(" TENON_CLI " completion bash); COMP_WORDS=(" + words +
                      "); COMP_CWORD=" + std::to_string(at) + "; _tenon; echo ${COMPREPLY[@]}'")
        .text;
  };
  EXPECT_EQ(completed("tenon ex", 1), "explain\n");
  EXPECT_EQ(completed("tenon sw", 1), "sweep switches\n");
  EXPECT_EQ(completed("tenon run --save", 2), "--save-inputs\n");
  EXPECT_EQ(completed("tenon cache ver", 2), "verify\n");
  EXPECT_EQ(tenon("completion csh").code, 2);
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_TRUE(contains(tenon(std::string("completion ") + shell).text, "explain")) << shell;
}

}  // namespace
}  // namespace tenon
