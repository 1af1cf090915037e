// A class and a number of bytes are drawn; then the drawing is made a few times, with the same random numbers, until
// its bytes are near.
#include "tools/sweep/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/suggest.h"
#include "src/measure/work.h"

namespace tenon::tools::sweep {
namespace {

constexpr double kLargest = 4;   // times its bytes, what a value of a graph may take
constexpr int kTries = 6;        // of one drawing
constexpr int kDrawings = 1000;  // for one graph

// SplitMix64 (Steele et al., 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

Drawn made(const std::string& name, const Class& kind, std::uint64_t pen, double elements) {
  Sketch sketch(name, pen, elements);
  kind.draw(sketch);
  Drawn drawn{sketch.graph().data(), &kind, 0, pen};
  drawn.bytes = src::unavoidable_bytes(drawn.graph, {});
  return drawn;
}

// The drawing with about `bytes`.
Drawn fitted(const std::string& name, const Class& kind, std::uint64_t pen, double bytes) {
  double elements = bytes / 8;
  Drawn best;
  for (int i = 0; i < kTries; ++i) {
    Drawn drawn = made(name, kind, pen, std::max(1.0, elements));
    const double ratio = bytes / static_cast<double>(std::max<std::int64_t>(1, drawn.bytes));
    const auto distance = [&](const Drawn& d) {
      return std::abs(std::log(bytes / static_cast<double>(std::max<std::int64_t>(1, d.bytes))));
    };
    if (best.kind == nullptr || distance(drawn) < distance(best)) best = std::move(drawn);
    if (distance(best) < std::log(kNear)) break;
    elements *= ratio;
  }
  return best;
}

double largest_value(const ir::Graph& graph) {
  double most = 0;
  for (const ir::Value& value : graph.values) {
    double bytes = static_cast<double>(size_of(value.type.dtype));
    for (const Dim& extent : value.type.shape) bytes *= static_cast<double>(extent.constant());
    most = std::max(most, bytes);
  }
  return most;
}

std::vector<double> weights_of(const std::vector<std::string>& classes) {
  std::vector<double> weights;
  std::vector<std::string_view> names;
  for (const Class& kind : all_classes()) {
    names.emplace_back(kind.name);
    const bool wanted = classes.empty() || std::find(classes.begin(), classes.end(), kind.name) != classes.end();
    weights.push_back(wanted ? kind.weight : 0);
  }
  for (const std::string& name : classes)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(ErrorKind::argument, fmt::format("'{}' is no class of graphs", name), {},
                  fmt::format("there are {}", ir::join(names)));
  return weights;
}

}  // namespace

std::span<const Class> all_classes() {
  static constexpr Class kClasses[] = {
      {"chain", 18, draw_chain},
      {"optimizer", 3, draw_optimizer},
      {"reduction", 16, draw_reduction},
      {"arg reduction", 5, draw_arg_reduction},
      {"softmax", 10, draw_softmax},
      {"row norm", 10, draw_row_norm},
      {"channel norm", 9, draw_channel_norm},
      {"norm gradient", 4, draw_norm_gradient},
      {"loss", 9, draw_loss},
      {"view", 10, draw_view},
      {"window", 7, draw_window},
      {"gather", 5, draw_gather},
      {"mixed", 9, draw_mixed},
  };
  return kClasses;
}

Drawn draw(std::uint64_t seed, std::uint64_t index, const DrawSettings& settings) {
  const std::vector<double> weights = weights_of(settings.classes);
  const std::string name = fmt::format("sweep_{}_{}", seed, index);
  for (std::uint64_t attempt = 0; attempt < kDrawings; ++attempt) {
    const std::uint64_t own = mixed(mixed(mixed(seed) + index) + attempt);
    Sketch lots(name, own, 1);
    const Class& kind = all_classes()[lots.weighted(weights)];
    const auto least = static_cast<double>(settings.least_bytes), most = static_cast<double>(settings.most_bytes);
    const double bytes = least * std::pow(most / least, lots.unit());
    Drawn drawn = fitted(name, kind, mixed(own), bytes);
    const auto found = static_cast<double>(drawn.bytes);
    const bool in_range = found >= least / kNear && found <= most * kNear;
    if (in_range && largest_value(drawn.graph) <= kLargest * found) return drawn;
  }
  throw Error(ErrorKind::argument,
              fmt::format("no graph of {} to {} bytes was drawn", settings.least_bytes, settings.most_bytes), {},
              "ask for a wider range of bytes");
}

Drawn redraw(const Drawn& drawn, double bytes) { return fitted(drawn.graph.name, *drawn.kind, drawn.pen, bytes); }

}  // namespace tenon::tools::sweep
