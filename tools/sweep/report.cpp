// See report.h.
#include "tools/sweep/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/text/text.h"
#include "tools/command.h"
#include "tools/sweep/distribution.h"
#include "tools/verdict.h"

namespace tenon::tools::sweep {
namespace {

constexpr const char* kHead = "{:>6} {:<14} {:>9} {:>10} {:>7} {:>8} {:>8}{}\n";

// How a graph is drawn again alone.
std::string again(const Recipe& recipe, std::uint64_t index) {
  std::string text = fmt::format("tenon sweep --seed {} --bytes {}", recipe.seed, recipe.bytes);
  if (!recipe.classes.empty()) text += fmt::format(" --classes '{}'", fmt::join(recipe.classes, ","));
  return text + fmt::format(" --only {}", index);
}

Json as_json(const Recipe& recipe, const Row& row) {
  Json json{{"seed", recipe.seed},
            {"index", row.index},
            {"class", row.drawn.kind->name},
            {"bytes", row.drawn.bytes},
            {"text", ir::print(row.drawn.graph)},
            {"graph", Json::parse(ir::print_json(row.drawn.graph))}};
  if (!row.error.empty()) {
    json["error"] = row.error;
  } else {
    json.update({{"kernels", row.kernels}, {"compiles", row.compiles}, {"build_ms", row.build_ms}});
    if (row.of_copy > 0)
      json.update({{"ms", row.times.median},
                   {"p10_ms", row.times.p10},
                   {"p90_ms", row.times.p90},
                   {"copy_ms", row.copy.median},
                   {"of_copy", row.of_copy},
                   {"memory_us", row.prediction.memory_us},
                   {"compute_us", row.prediction.compute_us},
                   {"floor_us", row.prediction.floor_us},
                   {"why", why_slow(row)}});
    if (row.first_choice) json["first_choice"] = *row.first_choice;
  }
  if (row.checked || !row.right())
    json.update({{"check", row.equal ? "ok" : "differs"}, {"undecided", row.undecided}, {"unwritten", row.unwritten}});
  return json;
}

// What is told of some rows: the shares of a copy, and those of the first choice.
struct Shares {
  std::string name;
  std::vector<double> of_copy, first_choice;

  void add(const Row& row) {
    if (row.of_copy == 0) return;  // not timed
    of_copy.push_back(row.of_copy);
    if (row.first_choice) first_choice.push_back(*row.first_choice);
  }
};

std::string size_of(const Row& row) {
  constexpr std::int64_t kMega = 1 << 20;
  if (row.drawn.bytes <= 16 * kMega) return "to 16 MB";
  return row.drawn.bytes <= 256 * kMega ? "to 256 MB" : "beyond";
}

std::vector<Shares> shares_of(const std::vector<Row>& rows) {
  std::vector<Shares> all{{"all", {}, {}}, {"to 16 MB", {}, {}}, {"to 256 MB", {}, {}}, {"beyond", {}, {}}};
  for (const sweep::Class& kind : sweep::all_classes()) all.push_back({kind.name, {}, {}});
  for (const Row& row : rows)
    for (Shares& shares : all)
      if (shares.name == "all" || shares.name == row.drawn.kind->name || shares.name == size_of(row)) shares.add(row);
  std::erase_if(all, [](const Shares& shares) { return shares.of_copy.empty(); });
  return all;
}

Json as_json(const std::vector<double>& shares) {
  const sweep::Distribution d = sweep::distribution(shares);
  return {{"graphs", d.count}, {"median", d.median}, {"p5", d.p5}, {"worst", d.worst}};
}

std::vector<Row> worst_of(std::vector<Row> rows, std::size_t most) {
  std::erase_if(rows, [](const Row& row) { return row.of_copy == 0; });
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.of_copy < b.of_copy; });
  rows.resize(std::min(rows.size(), most));
  return rows;
}

// How many graphs are far from a copy, and what the plan says of them.
std::string causes(const std::vector<Row>& rows) {
  constexpr double kFar = 0.8;
  int far = 0, computes = 0, moves = 0;
  for (const Row& row : rows) {
    if (row.of_copy == 0 || row.of_copy >= kFar) continue;
    const std::string why = why_slow(row);
    ++far;
    computes += why.starts_with("computes");
    moves += why.starts_with("moves");
  }
  if (far == 0) return "";
  return fmt::format(
      "below {:.0f}%: {}, of which {} by their instructions, {} by what else they move, and {} by neither\n",
      100 * kFar, counted(far, "graph"), computes, moves, far - computes - moves);
}

}  // namespace

std::string table_head(bool tuned) {
  return fmt::format(fmt::runtime(kHead), "index", "class", "MB", "ms", "kernels", "built", "of copy",
                     tuned ? " first choice" : "");
}

std::string table_row(const Row& row) {
  const std::string megabytes = fmt::format("{:.1f}", static_cast<double>(row.drawn.bytes) / 1e6);
  if (!row.error.empty())
    return fmt::format("{:>6} {:<14} {:>9} {}\n", row.index, row.drawn.kind->name, megabytes,
                       row.error.substr(0, row.error.find('\n')));
  if (row.of_copy == 0)
    return fmt::format(fmt::runtime(kHead), row.index, row.drawn.kind->name, megabytes, "-", row.kernels,
                       fmt::format("{:.0f} ms", row.build_ms), "-", "");
  std::string tail = row.first_choice ? fmt::format(" {:>12.3f}", *row.first_choice) : "";
  if (row.checked)
    tail += "  " + toned(verdict(row.equal, row.undecided, row.elements));
  else if (!row.equal)
    tail += "  A SCHEDULE DIFFERS";
  if (row.unwritten > 0) tail += fmt::format("  {} ELEMENTS UNWRITTEN", row.unwritten);
  return fmt::format(fmt::runtime(kHead), row.index, row.drawn.kind->name, megabytes,
                     fmt::format("{:.4f}", row.times.median), row.kernels, fmt::format("{:.0f} ms", row.build_ms),
                     fmt::format("{:.1f}%", 100 * row.of_copy), tail);
}

std::string summary_table(const std::vector<Row>& rows) {
  std::string text = fmt::format("\n{:<14} {:>7} {:>9} {:>7} {:>7}", "of copy", "graphs", "median", "5th", "worst");
  const std::vector<Shares> all = shares_of(rows);
  const bool tuned = !all.empty() && !all[0].first_choice.empty();
  if (tuned) text += fmt::format("   {:>12} {:>7} {:>7}", "first choice", "5th", "worst");
  text += "\n";
  for (const Shares& shares : all) {
    const sweep::Distribution d = sweep::distribution(shares.of_copy), first = sweep::distribution(shares.first_choice);
    text += fmt::format("{:<14} {:>7} {:>8.1f}% {:>6.1f}% {:>6.1f}%", shares.name, d.count, 100 * d.median, 100 * d.p5,
                        100 * d.worst);
    if (tuned) text += fmt::format("   {:>12.3f} {:>7.3f} {:>7.3f}", first.median, first.p5, first.worst);
    text += "\n";
  }
  return text + causes(rows);
}

std::string worst_table(const Recipe& recipe, const std::vector<Row>& rows, std::size_t most) {
  std::string text;
  for (const Row& row : worst_of(rows, most)) {
    const std::string why = why_slow(row);
    text += fmt::format("{:>6.1f}%  {:<14} {}{}\n", 100 * row.of_copy, row.drawn.kind->name, again(recipe, row.index),
                        why.empty() ? "" : "  # " + why);
  }
  for (const Row& row : rows)
    if (!row.right() || !row.error.empty())
      text += fmt::format("{:>7}  {:<14} {}\n", row.error.empty() ? "WRONG" : "failed", row.drawn.kind->name,
                          again(recipe, row.index));
  return text.empty() ? text : "\n" + text;
}

Json document_of(const Recipe& recipe, const std::vector<Row>& rows) {
  Json document{{"seed", recipe.seed}, {"bytes", recipe.bytes}, {"classes", recipe.classes}};
  for (const Shares& shares : shares_of(rows)) {
    document["of_copy"][shares.name] = as_json(shares.of_copy);
    if (!shares.first_choice.empty()) document["first_choice"][shares.name] = as_json(shares.first_choice);
  }
  document["graphs"] = Json::array();
  for (const Row& row : rows) document["graphs"].push_back(as_json(recipe, row));
  return document;
}

}  // namespace tenon::tools::sweep
