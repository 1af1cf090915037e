// Counts by name, with rows that are there before anything is counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::test {

class Counts {
 public:
  /// Rows of 0, in this order, ahead of those that are only met.
  explicit Counts(std::vector<std::string> rows = {});
  void add(const std::string& row, std::int64_t times = 1);
  std::int64_t of(const std::string& row) const;
  const std::vector<std::string>& rows() const { return rows_; }
  std::vector<std::string> empty_rows() const;

 private:
  std::vector<std::string> rows_;
  std::map<std::string, std::int64_t> counts_;
};

/// A Markdown table of rows and counts, `across` pairs of columns side by side.
std::string table(const Counts& counts, const std::string& what, int across);

/// A Markdown table of pairs "row -> column", each named in `names`.
std::string matrix(const Counts& counts, const std::vector<std::string>& names);

}  // namespace tenon::test
