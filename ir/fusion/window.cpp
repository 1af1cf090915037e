// A window is opened: merges are undone, then the pieces are connected by the values that they make and read.
#include "ir/fusion/window.h"

#include <algorithm>
#include <tuple>

namespace tenon::ir::fusion {
namespace {

constexpr int kMostElements = 16;  // the sets of a window's elements are all looked at

bool is_merged(const Partition& partition, const Element& element) { return partition.piece(element.piece).left >= 0; }

// What one of the clusters makes and another reads.
std::set<ValueId> passed_values(const Partition& partition, const std::vector<int>& clusters) {
  std::set<ValueId> passed;
  for (int cluster : clusters)
    for (const Read& read : partition.at(cluster).reads)
      if (std::find(clusters.begin(), clusters.end(), partition.maker[static_cast<std::size_t>(read.value)]) !=
          clusters.end())
        passed.insert(read.value);
  return passed;
}

bool meets(const Element& element, const std::set<ValueId>& values) {
  return std::any_of(values.begin(), values.end(), [&](ValueId value) {
    return element.cluster->find_read(value) != nullptr || element.cluster->find_result(value) != nullptr;
  });
}

// Pieces are numbered as they are made, so the youngest has the largest number.
std::vector<Element> split(const Partition& partition, const std::vector<int>& clusters, Split how, std::size_t most) {
  const auto element_of = [](int piece, const Cluster& cluster) {
    Element element;
    element.piece = piece;
    element.cluster = &cluster;
    return element;
  };
  std::vector<Element> elements;
  for (int cluster : clusters)
    elements.push_back(element_of(partition.piece_of[static_cast<std::size_t>(cluster)], partition.at(cluster)));
  const std::set<ValueId> passed = how == Split::meeting ? passed_values(partition, clusters) : std::set<ValueId>{};
  const auto rank = [&](const Element& element) {
    return std::tuple(is_merged(partition, element), meets(element, passed), element.piece);
  };
  while (elements.size() < most) {
    const auto next = std::max_element(elements.begin(), elements.end(),
                                       [&](const Element& a, const Element& b) { return rank(a) < rank(b); });
    if (!is_merged(partition, *next)) break;
    const Piece& piece = partition.piece(next->piece);
    *next = element_of(piece.left, partition.piece(piece.left).cluster);
    elements.push_back(element_of(piece.right, partition.piece(piece.right).cluster));
  }
  return elements;
}

// `ancestors` from `before`: at most as many rounds as elements wait for each other in a row.
void close(std::vector<Element>& elements) {
  for (std::size_t round = 0; round < elements.size(); ++round)
    for (Element& element : elements) {
      element.ancestors = element.before;
      for (std::size_t k = 0; k < elements.size(); ++k)
        if (has(element.before, k)) element.ancestors |= elements[k].ancestors;
    }
}

bool needed_outside(const Context& context, const Partition& partition, const Window& window, ValueId value) {
  if (context.graph_output[static_cast<std::size_t>(value)]) return true;
  const auto& readers = partition.readers[static_cast<std::size_t>(value)];
  return std::any_of(readers.begin(), readers.end(), [&](int reader) {
    return std::find(window.clusters.begin(), window.clusters.end(), reader) == window.clusters.end();
  });
}

void connect(const Context& context, const Partition& partition, Window& window) {
  std::map<ValueId, std::size_t> maker;
  std::vector<Element>& elements = window.elements;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    for (const Read& read : elements[i].cluster->reads) window.readers[read.value] |= bit(i);
    for (const Result& result : elements[i].cluster->results) maker[result.value] = i;
  }
  for (const auto& [value, readers] : window.readers) {
    const auto made = maker.find(value);
    const Mask all = readers | (made == maker.end() ? 0 : bit(made->second));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (has(all, i)) elements[i].near |= all & ~bit(i);
      if (made != maker.end() && made->second != i && has(readers, i)) elements[i].before |= bit(made->second);
    }
  }
  for (const auto& [value, element] : maker)
    if (needed_outside(context, partition, window, value)) window.outside.insert(value);
  close(elements);
}

}  // namespace

Window open_window(const Context& context, const Partition& partition, std::vector<int> clusters, Split how, int most) {
  Window window;
  window.elements = split(partition, clusters, how, static_cast<std::size_t>(std::min(most, kMostElements)));
  window.clusters = std::move(clusters);
  connect(context, partition, window);
  return window;
}

Mask needs(const Window& window, Mask mask) {
  Mask all = 0;
  for (std::size_t i = 0; i < window.elements.size(); ++i)
    if (has(mask, i)) all |= window.elements[i].before;
  return all & ~mask;
}

bool is_convex(const Window& window, Mask mask) {
  Mask above = 0;
  for (std::size_t i = 0; i < window.elements.size(); ++i)
    if (has(mask, i)) above |= window.elements[i].ancestors;
  for (std::size_t i = 0; i < window.elements.size(); ++i)
    if (has(above & ~mask, i) && (window.elements[i].ancestors & mask) != 0) return false;
  return true;
}

bool is_in_nodes(const Partition& partition, const Window& window) {
  return std::none_of(window.elements.begin(), window.elements.end(),
                      [&](const Element& element) { return is_merged(partition, element); });
}

}  // namespace tenon::ir::fusion
