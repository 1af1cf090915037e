// Graphs as people write them, drawn at random: of one class, with about as many bytes as were drawn for them. The same
// seed and index draw the same graph with the same settings.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "tools/sweep/sketch.h"

namespace tenon::tools::sweep {

/// One class of graphs.
struct Class {
  const char* name;
  double weight;  ///< of all drawings
  void (*draw)(Sketch&);
};

std::span<const Class> all_classes();

struct DrawSettings {
  std::int64_t least_bytes = std::int64_t{1} << 20, most_bytes = std::int64_t{4} << 30;  ///< (src/measure/work.h)
  std::vector<std::string> classes;                                                      ///< by name; empty: all
};

struct Drawn {
  ir::Graph graph;  ///< "sweep_SEED_INDEX", with constant extents
  const Class* kind = nullptr;
  std::int64_t bytes = 0;
  std::uint64_t pen = 0;  ///< the seed of its Sketch
};

/// A graph has up to so many times the most bytes.
inline constexpr double kNear = 1.2;

/// Error(argument) for a class that is not there.
Drawn draw(std::uint64_t seed, std::uint64_t index, const DrawSettings& settings);

/// The same drawing with about as many bytes.
Drawn redraw(const Drawn& drawn, double bytes);

// ---- the drawings ----
void draw_chain(Sketch& s);      ///< maps with biases, residuals, masks and casts
void draw_optimizer(Sketch& s);  ///< one step of SGD, Adam, and the like
void draw_reduction(Sketch& s);  ///< over any axes, with maps around it
void draw_arg_reduction(Sketch& s);
void draw_softmax(Sketch& s);       ///< scaled, masked, its gradient
void draw_row_norm(Sketch& s);      ///< layer_norm and rms_norm over the last axes, lengths
void draw_channel_norm(Sketch& s);  ///< batch, group and instance norm
void draw_norm_gradient(Sketch& s);
void draw_loss(Sketch& s);
void draw_view(Sketch& s);
void draw_window(Sketch& s);  ///< pools, stencils and differences by slices
void draw_gather(Sketch& s);
void draw_mixed(Sketch& s);  ///< several of these, one behind the other

/// `steps` maps of x, of its shape, the dtype of the last any real one.
Tensor maps(Sketch& s, Tensor x, int steps);
/// An activation of x, or another map of it alone.
Tensor activation(Sketch& s, const Tensor& x);

}  // namespace tenon::tools::sweep
