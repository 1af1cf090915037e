// See window.h, key_of. Everything that cheapest_cut looks at is written down, with values numbered in the order in
// which the window meets them.
#include <cstring>
#include <map>

#include "ir/fusion/window.h"

namespace tenon::ir::fusion {
namespace {

class WindowKey {
 public:
  WindowKey(const Context& context, const Partition& partition, const Window& window)
      : context_(context), partition_(partition), window_(window) {}

  std::optional<std::string> run() {
    number(window_.elements.size());
    for (const Element& element : window_.elements) cluster(*element.cluster);
    for (int living : window_.clusters) {
      number(mask_of(partition_, window_, partition_.piece_of[static_cast<std::size_t>(living)]));
      cluster(partition_.at(living));
    }
    if (!whole_) return std::nullopt;
    return std::move(key_);
  }

 private:
  template <class T>
  void number(const T& value) {
    const auto at = key_.size();
    key_.resize(at + sizeof value);
    std::memcpy(key_.data() + at, &value, sizeof value);
  }

  void dim(const Dim& extent) {
    number(extent.is_constant());
    if (extent.is_constant()) {
      number(extent.constant());
    } else {
      key_ += extent.str() + '\n';
    }
  }

  void layout(const Layout& digits) {
    number(digits.size());
    for (const Digit& digit : digits) {
      whole_ = whole_ && digit.cut == nullptr;  // pieces know each other by their addresses
      number(digit.axis);
      dim(digit.divisor);
      dim(digit.extent);
      number(digit.depends);
      number(digit.terms);
    }
  }

  // A value, and at the first time what its cost and its fusion depend on.
  void value(ValueId id) {
    const auto [known, is_new] = numbers_.try_emplace(id, static_cast<int>(numbers_.size()));
    number(known->second);
    if (!is_new || id < 0) return;
    const auto at = static_cast<std::size_t>(id);
    const NodeId maker = context_.graph.value(id).producer;
    number(context_.bytes[at]);
    number(context_.count[at]);
    number(context_.graph.type(id).dtype);
    number(context_.graph.node(maker).op);
    number(static_cast<bool>(context_.cloned[static_cast<std::size_t>(maker)]));
    number(window_.outside.count(id));
  }

  void cluster(const Cluster& cluster) {
    number(cluster.kernel_class);
    number(cluster.domain.kept);
    number(cluster.domain.extents.size());
    for (const Dim& extent : cluster.domain.extents) dim(extent);
    number(cluster.reads.size());
    for (const Read& read : cluster.reads) {
      value(read.value);
      number(read.layouts.size());
      for (const Layout& at : read.layouts) layout(at);
      number(read.of_mask);
    }
    number(cluster.results.size());
    for (const Result& result : cluster.results) {
      value(result.value);
      layout(result.layout);
      number(result.rounds);
    }
    number(cluster.places.size());
    for (const Layout& place : cluster.places) layout(place);
    for (const int count : {cluster.node_count, cluster.depth, cluster.repeats, cluster.rounds}) number(count);
    for (const double work :
         {cluster.slots, cluster.mask_slots, cluster.flops, cluster.tensor_flops, cluster.lane_flops})
      number(work);
    for (const bool fact : {cluster.persistent, cluster.random}) number(fact);
    number(static_cast<int>(cluster.sweep_of));
    value(cluster.paired);
    number(cluster.boxed);
    number(cluster.computed);
    for (const double share : cluster.shares) number(share);
  }

  const Context& context_;
  const Partition& partition_;
  const Window& window_;
  std::map<ValueId, int> numbers_;
  std::string key_;
  bool whole_ = true;
};

}  // namespace

std::optional<std::string> key_of(const Context& context, const Partition& partition, const Window& window) {
  return WindowKey(context, partition, window).run();
}

}  // namespace tenon::ir::fusion
