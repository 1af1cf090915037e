// What a reader says of a bad graph file, word for word. The cases lie in text/*.cases and json/*.cases:
//
//     == what the case shows
//     the file's text
//     -- message
//     the whole message, with the file named "g"
//
// TENON_UPDATE_EXPECTED=1 rewrites the messages; read the difference before committing it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "ir/text/text.h"

namespace tenon::ir {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string file, title, input, expected;
};

fs::path folder(const std::string& form) { return fs::path(TENON_SOURCE_DIR) / "tests/errors" / form; }

std::vector<Case> read_cases(const fs::path& path) {
  std::vector<Case> cases;
  std::ifstream stream(path);
  bool in_message = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("== ")) {
      cases.push_back({path.filename(), line.substr(3), "", ""});
      in_message = false;
    } else if (line == "-- message") {
      in_message = true;
    } else if (!cases.empty()) {
      (in_message ? cases.back().expected : cases.back().input) += line + "\n";
    }
  }
  return cases;
}

std::vector<Case> all_cases(const std::string& form) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder(form))) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const fs::path& file : files)
    for (Case& one : read_cases(file)) cases.push_back(std::move(one));
  return cases;
}

template <typename Parse>
std::string message_of(Parse parse_form, const std::string& text) {
  try {
    parse_form(text, "g");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

template <typename Parse>
void check_cases(const std::string& form, Parse parse_form) {
  const bool update = std::getenv("TENON_UPDATE_EXPECTED") != nullptr;
  std::vector<Case> cases = all_cases(form);
  EXPECT_FALSE(cases.empty());
  for (Case& one : cases) {
    const std::string message = message_of(parse_form, one.input) + "\n";
    if (!update) {
      EXPECT_EQ(message, one.expected) << one.file << ": " << one.title;
    }
    one.expected = message;
  }
  for (std::size_t i = 0; update && i < cases.size(); ++i) {
    const bool first = i == 0 || cases[i].file != cases[i - 1].file;
    std::ofstream stream(folder(form) / cases[i].file, first ? std::ios::trunc : std::ios::app);
    stream << "== " << cases[i].title << "\n" << cases[i].input << "-- message\n" << cases[i].expected;
  }
}

TEST(ParseErrors, TextSaysWhereAndWhatToDo) { check_cases("text", parse); }
TEST(ParseErrors, JsonSaysWhereAndWhatToDo) { check_cases("json", parse_json); }

// Files beyond the limits, too long to be written out.

std::string repeat(const std::string& piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

std::string returning(const std::string& expression) {
  return "graph g(x: f32[4]) {\n  return " + expression + "\n}\n";
}

TEST(ParseLimits, CallsNestedTooDeep) {
  EXPECT_EQ(message_of(parse, returning(repeat("exp(", 100000) + "x" + repeat(")", 100000))),
            "resource error: calls nested more than 200 deep\n  at g:2:806\n  help: give inner results names, on lines "
            "of their own");
  EXPECT_EQ(message_of(parse, returning(repeat("exp(", 199) + "x" + repeat(")", 199))), "no error");
}

TEST(ParseLimits, DimensionExpressionsTooLong) {
  EXPECT_EQ(message_of(parse, "graph g(x: f32[" + repeat("(", 100000) + "n" + repeat(")", 100000) + "]) { return x }"),
            "resource error: a dimension expression of more than 128 parts\n  at g:1:144\n"
            "  help: name the dimension with a symbol of its own");
  EXPECT_EQ(message_of(parse, "graph g(x: f32[" + repeat("-", 100000) + "n]) { return x }").substr(0, 60),
            "resource error: a dimension expression of more than 128 part");
  EXPECT_EQ(message_of(parse, "graph g(x: f32[" + repeat("n*", 100000) + "n]) { return x }").substr(0, 60),
            "resource error: a dimension has a term of more than 32 facto");
}

TEST(ParseLimits, NamesStringsAndNumbersTooLong) {
  EXPECT_EQ(message_of(parse, returning(std::string(65, 'a'))),
            "parse error: a name of 65 characters\n  at g:2:10\n  help: use at most 64");
  EXPECT_EQ(message_of(parse, returning("gelu(x, approximate=\"" + std::string(65, 'a') + "\")")),
            "parse error: a string of 65 characters\n  at g:2:30\n  help: use at most 64");
  EXPECT_EQ(message_of(parse, returning("add(x, " + std::string(1000000, '1') + ")")),
            "parse error: a number of 1000000 characters\n  at g:2:17\n  help: use at most 512");
}

TEST(ParseLimits, ListsAndOperandsTooLong) {
  EXPECT_EQ(message_of(parse, returning("sum(x, axis=[" + repeat("0,", 5000) + "])")),
            "resource error: a list of more than 4096 items\n  at g:2:8215\n  help: split the operation into several");
  EXPECT_EQ(message_of(parse, returning("concat(" + repeat("x,", 5000) + ")")),
            "resource error: concat has more than 4096 operands\n  at g:2:8209\n  help: split it into several");
}

TEST(ParseLimits, FilesTooLarge) {
  const std::string text(static_cast<std::size_t>(64 << 20) + 1, ' ');
  const std::string message =
      "resource error: a graph file of 67108865 bytes; at most 67108864 are read\n  at g\n  help: split the graph";
  EXPECT_EQ(message_of(parse, text), message);
  EXPECT_EQ(message_of(parse_json, text), message);
}

TEST(ParseLimits, JsonNestedTooDeep) {
  EXPECT_EQ(message_of(parse_json, repeat("[", 1000000)),
            "resource error: JSON nested more than 200 deep\n  at g\n  help: a graph needs no more than 6 levels");
}

}  // namespace
}  // namespace tenon::ir
