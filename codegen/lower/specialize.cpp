// Dimension classes: what a kernel may rely on, so that one kernel serves every size of its class.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kNarrow = std::numeric_limits<std::int32_t>::max();

// The greatest sizes of their classes: tensor cores take 16 rows or 64 at once, and a few hundred do not fill a device.
constexpr std::array<std::int64_t, 3> kSizes{16, 64, 512};

// A product of 3 rows and one of 8191 want different tiles. Nothing else cares.
std::set<std::string> symbols_of_tiles(const ir::Plan& plan) {
  std::set<std::string> names;
  for (const ir::Group& group : plan.groups)
    if (group.kernel_class == ir::KernelClass::contract)
      for (const Dim& extent : group.kept) extent.collect_symbols(names);
  return names;
}

SymbolBounds of_size(SymbolBounds bounds, std::int64_t value) {
  const auto* const size = std::lower_bound(kSizes.begin(), kSizes.end(), value);
  if (size != kSizes.end()) bounds.max = std::min(bounds.max, *size);
  if (size != kSizes.begin()) bounds.min = std::max(bounds.min, *(size - 1) + 1);
  return bounds;
}

SymbolBounds classify(const SymbolBounds& declared, std::int64_t value) {
  if (value <= 1) return {value, value, 1};
  const std::int64_t power = std::min<std::int64_t>(16, value & -value);
  SymbolBounds bounds = declared;
  bounds.min = std::max<std::int64_t>(2, declared.min);
  const std::int64_t missing = power / std::gcd(declared.divisor, power);
  if (__builtin_mul_overflow(declared.divisor, missing, &bounds.divisor)) bounds.divisor = declared.divisor;
  return bounds;
}

// The values that an offset may go through: all but what is computed, element by element, between the products of an
// attention, which is in no memory, its random numbers, and what is computed of these. Its scores are many.
std::vector<bool> addressed(const ir::Plan& plan) {
  std::vector<bool> result(plan.graph.values.size(), true);
  for (const ir::Group& group : plan.groups) {
    if (group.kernel_class != ir::KernelClass::attend) continue;
    const ir::NodeId scores = group.attention.scores, mix = group.attention.mix;
    for (const ir::NodeId id : group.nodes) {
      const ir::Node& node = plan.graph.node(id);
      const ir::Kind kind = ir::kind_of(node.op);
      const bool of_others = std::any_of(node.operands.begin(), node.operands.end(), [&](ir::ValueId operand) {
        return !result[static_cast<std::size_t>(operand)];
      });
      const bool between = id < mix && kind == ir::Kind::map && (id > scores || of_others);
      if (id == scores || kind == ir::Kind::random || between)
        for (const ir::ValueId value : node.results) result[static_cast<std::size_t>(value)] = false;
    }
  }
  for (const ir::Group& group : plan.groups)
    for (const auto* memory : {&group.inputs, &group.outputs})
      for (const ir::ValueId value : *memory) result[static_cast<std::size_t>(value)] = true;
  return result;
}

// What takes 64 bits, where `count` gives the elements of a shape. Padded offsets and reshapes stay within a value;
// twice its size leaves room for guarded offsets outside it.
template <typename Count>
void set_widths(Specialization& result, const ir::Plan& plan, Count count) {
  const std::vector<bool> counted = addressed(plan);
  result.wide_index = result.wide_random = false;
  for (std::size_t value = 0; value < counted.size(); ++value) {
    const bool random = ir::kind_of(plan.graph.producer(static_cast<ir::ValueId>(value)).op) == ir::Kind::random;
    if (!(counted[value] || random) || count(element_count(plan.graph.values[value].type.shape)) <= kNarrow / 2)
      continue;
    result.wide_index = result.wide_index || counted[value];
    result.wide_random = true;
  }
}

}  // namespace

std::string Specialization::key() const {
  std::string text = wide_index ? "i64" : wide_random ? "i32, random i64" : "i32";
  for (const auto& [name, bounds] : symbols) {
    const bool fixed = bounds.min == bounds.max;
    text += fmt::format(
        " {}:{}", name,
        fixed ? fmt::format("={}", bounds.min) : fmt::format("%{} {}..{}", bounds.divisor, bounds.min, bounds.max));
  }
  return text;
}

Specialization specialize(const ir::Plan& plan, const Bindings& bindings) {
  Specialization result;
  set_widths(result, plan, [&](const Dim& elements) { return elements.evaluate(bindings); });
  const std::set<std::string> of_tiles = symbols_of_tiles(plan);
  for (const auto& [name, declared] : plan.graph.symbols) {
    const auto value = bindings.find(name);
    SymbolBounds bounds = value == bindings.end() ? declared : classify(declared, value->second);
    if (of_tiles.count(name) > 0 && value != bindings.end() && value->second > 1)
      bounds = of_size(bounds, value->second);
    if (!result.wide_index) bounds.max = std::min(bounds.max, std::max(bounds.min, kNarrow / 2));
    result.symbols[name] = bounds;
  }
  return result;
}

Specialization unspecialized(const ir::Plan& plan) {
  Specialization result{plan.graph.symbols};
  set_widths(result, plan, [&](const Dim& elements) { return elements.bounds(plan.graph.symbols).max; });
  return result;
}

}  // namespace tenon::codegen
