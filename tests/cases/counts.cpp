// Counts, and how they are printed.
#include "tests/cases/counts.h"

#include <fmt/format.h>

namespace tenon::test {

Counts::Counts(std::vector<std::string> rows) : rows_(std::move(rows)) {
  for (const std::string& row : rows_) counts_[row] = 0;
}

void Counts::add(const std::string& row, std::int64_t times) {
  if (counts_.emplace(row, 0).second) rows_.push_back(row);
  counts_[row] += times;
}

std::int64_t Counts::of(const std::string& row) const {
  const auto found = counts_.find(row);
  return found == counts_.end() ? 0 : found->second;
}

std::vector<std::string> Counts::empty_rows() const {
  std::vector<std::string> empty;
  for (const std::string& row : rows_)
    if (of(row) == 0) empty.push_back(row);
  return empty;
}

std::string table(const Counts& counts, const std::string& what, int across) {
  std::string text, rule;
  for (int i = 0; i < across; ++i) {
    text += fmt::format("| {} | count ", what);
    rule += "|---|---:";
  }
  text += "|\n" + rule + "|\n";
  const int total = static_cast<int>(counts.rows().size()), lines = (total + across - 1) / across;
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < across; ++i) {
      const int at = i * lines + line;
      if (at >= total) {
        text += "| | ";
        continue;
      }
      const std::string& row = counts.rows()[static_cast<std::size_t>(at)];
      text += fmt::format("| {} | {} ", row, counts.of(row));
    }
    text += "|\n";
  }
  return text;
}

std::string matrix(const Counts& counts, const std::vector<std::string>& names) {
  std::string text = "| |", rule = "|---|";
  for (const std::string& name : names) {
    text += fmt::format(" {} |", name);
    rule += "---:|";
  }
  text += "\n" + rule + "\n";
  for (const std::string& row : names) {
    text += fmt::format("| {} |", row);
    for (const std::string& column : names) text += fmt::format(" {} |", counts.of(row + " -> " + column));
    text += "\n";
  }
  return text;
}

}  // namespace tenon::test
