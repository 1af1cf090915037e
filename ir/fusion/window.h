// A window: a few neighbouring clusters with their last merges undone, until they consist of few enough pieces that
// every cut of them into kernels can be tried. windows.cpp chooses the windows, window.cpp opens one, window_cut.cpp
// finds its cheapest cut.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/fusion/partition.h"

namespace tenon::ir::fusion {

/// A set of a window's elements: bit i is element i.
using Mask = std::uint32_t;
inline Mask bit(std::size_t i) { return Mask{1} << i; }
inline bool has(Mask mask, std::size_t i) { return (mask >> i & 1U) != 0; }

/// A piece as a part of a window.
struct Element {
  int piece = -1;
  const Cluster* cluster = nullptr;
  Mask before = 0;     ///< those whose results it reads
  Mask ancestors = 0;  ///< all that must have run before it
  Mask near = 0;       ///< those that it passes values to or takes them from, or that read the same
};

/// Which merges of a window are undone.
enum class Split : std::uint8_t {
  youngest,  ///< the last ones: those that saved least
  meeting,   ///< those that hide what makes or reads the values that the clusters pass to each other
};

struct Window {
  std::vector<int> clusters;
  std::vector<Element> elements;
  std::map<ValueId, Mask> readers;  ///< among the elements
  std::set<ValueId> outside;        ///< results of elements that are needed outside the window
};

/// The window of these clusters, of at most `most` elements (more where there are more clusters). It points into
/// `partition`.
Window open_window(const Context& context, const Partition& partition, std::vector<int> clusters, Split how, int most);

/// The other elements whose results those of `mask` read.
Mask needs(const Window& window, Mask mask);
/// Whether no path leaves these elements and comes back to them.
bool is_convex(const Window& window, Mask mask);
/// Whether every node is an element of its own, so that nothing is left to undo.
bool is_in_nodes(const Partition& partition, const Window& window);

/// A kernel that can be made of some elements.
struct Candidate {
  Mask mask = 0;
  Cluster cluster;   ///< without its nodes; empty where it is `living`
  double us = 0;     ///< predicted
  int smaller = -1;  ///< the candidate that it extends by `element`; -1: it is that element
  int element = -1;
  int living = -1;  ///< it is this cluster, as it stands
};

struct Cut {
  std::deque<Candidate> candidates;  ///< smaller ones first
  std::vector<int> kernels;          ///< of the candidates, in an order in which they can run; empty: none is cheaper
  bool crowded = false;              ///< there are more candidates than were tried
};

/// The elements below a piece.
Mask mask_of(const Partition& partition, const Window& window, int piece);

/// Bytes that two windows have in common where cheapest_cut finds the same in both: those of equal layers of a model.
/// Nothing where that is not known.
std::optional<std::string> key_of(const Context& context, const Partition& partition, const Window& window);

/// The cheapest cut, if it is cheaper than the clusters as they stand. `attempts` is lowered by the merges tried.
Cut cheapest_cut(const Context& context, const Partition& partition, const Window& window, std::int64_t& attempts);

}  // namespace tenon::ir::fusion
