// tenon_random_cases write FOLDER FIRST COUNT: the random graphs of these seeds, each in a folder of its own:
//   graph.tn, bindings.json (a value for every symbol), NAME.npy for each input.
// tenon_random_cases coverage FIRST COUNT LARGE: what these graphs hold, counted, as docs/coverage.md shows it, and
// which schedules large ones have.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "ir/text/text.h"
#include "src/api/npy.h"
#include "tests/cases/coverage.h"
#include "tests/harness/random_graph.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw Error(ErrorKind::io, fmt::format("cannot write {}", path.string()));
}

void write_case(const fs::path& folder, const RandomCase& c) {
  fs::create_directories(folder);
  write_text(folder / "graph.tn", ir::print(c.graph));
  std::string bindings;
  for (const auto& [symbol, value] : c.bindings)
    bindings += fmt::format("{}\"{}\": {}", bindings.empty() ? "" : ", ", symbol, value);
  write_text(folder / "bindings.json", "{" + bindings + "}\n");
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    write_npy((folder / (c.graph.value(c.graph.inputs[i]).name + ".npy")).string(), c.inputs[i]);
}

int usage() {
  fmt::print(stderr,
             "usage: tenon_random_cases write FOLDER FIRST COUNT\n"
             "       tenon_random_cases coverage FIRST COUNT LARGE\n");
  return 2;
}

int run(const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i) { return std::strtoull(arguments[i].c_str(), nullptr, 10); };
  if (arguments.size() == 4 && arguments[0] == "write") {
    for (std::uint64_t seed = number(2); seed < number(2) + number(3); ++seed)
      write_case(fs::path(arguments[1]) / std::to_string(seed), random_case(seed));
    return 0;
  }
  if (arguments.size() == 4 && arguments[0] == "coverage") {
    fmt::print("{}", coverage(number(1), number(2), number(3)));
    return 0;
  }
  return usage();
}

}  // namespace
}  // namespace tenon::test

int main(int count, char** arguments) {
  try {
    return tenon::test::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
