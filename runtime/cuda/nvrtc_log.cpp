// Reads NVRTC's log: what ptxas says a kernel takes, and the lines that must not go unseen.
// Relies on the wording of `ptxas -v`: "Used 22 registers, used 1 barriers, 512 bytes smem".
#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "runtime/cuda/nvrtc.h"

namespace tenon::runtime::cuda {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The number that stands right before `words` in `line`; 0 when the words are not there.
std::int64_t number_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return 0;
  std::size_t begin = at;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  std::int64_t number = 0;
  for (std::size_t i = begin; i < at; ++i) number = number * 10 + (line[i] - '0');
  return number;
}

// Functions that were not inlined into the kernel report their own frame and spills within its section.
void add_line(std::string_view line, ResourceUse& use) {
  use.spill_store_bytes += number_before(line, " bytes spill stores");
  use.spill_load_bytes += number_before(line, " bytes spill loads");
  use.stack_bytes = std::max({use.stack_bytes, number_before(line, " bytes stack frame"),
                              number_before(line, " bytes cumulative stack size")});
  use.registers = std::max(use.registers, static_cast<int>(number_before(line, " registers")));
  use.barriers = std::max(use.barriers, static_cast<int>(number_before(line, " barriers")));
  use.shared_bytes = std::max(use.shared_bytes, number_before(line, " bytes smem"));
}

bool is_warning(std::string_view line) {
  const bool remark = line.find("(C75") != std::string_view::npos;
  return remark || line.find(": warning") != std::string_view::npos || line.starts_with("ptxas warning") ||
         line.starts_with("nvrtc: warning");
}

}  // namespace

ResourceUse resources_in(const std::string& log, const std::string& entry) {
  ResourceUse use;
  const std::string mine = "Compiling entry function '" + entry + "'";
  bool inside = false;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Compiling entry function '") != std::string::npos) {
      inside = line.find(mine) != std::string::npos;
    } else if (inside) {
      add_line(line, use);
    }
  }
  return use;
}

std::vector<std::string> warnings_in(const std::string& log) {
  std::vector<std::string> warnings;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (is_warning(line)) warnings.push_back(line);
  }
  return warnings;
}

}  // namespace tenon::runtime::cuda
