// What a sweep tells: a line for each graph, the distribution of their shares in all, by size and by class, the
// slowest, and all of it as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/sweep/measure.h"

namespace tenon::tools::sweep {

using Json = nlohmann::ordered_json;

/// What decides the drawings, beside their index, as the command line has it.
struct Recipe {
  std::uint64_t seed = 0;
  std::string bytes;
  std::vector<std::string> classes;
};

std::string table_head(bool tuned);
std::string table_row(const Row& row);
std::string summary_table(const std::vector<Row>& rows);
/// The slowest, up to `most`, and those that are wrong or failed: how each is drawn again alone.
std::string worst_table(const Recipe& recipe, const std::vector<Row>& rows, std::size_t most);

Json document_of(const Recipe& recipe, const std::vector<Row>& rows);

}  // namespace tenon::tools::sweep
