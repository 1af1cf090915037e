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

}  // namespace

std::string Specialization::key() const {
  std::string text = wide_index ? "i64" : "i32";
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
  result.wide_index = false;
  for (const ir::Value& value : plan.graph.values) {
    // Padded offsets and reshapes stay within a value; twice its size leaves room for guarded offsets outside it.
    if (element_count(value.type.shape).evaluate(bindings) > kNarrow / 2) result.wide_index = true;
  }
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
  Specialization result{plan.graph.symbols, false};
  for (const ir::Value& value : plan.graph.values)
    if (element_count(value.type.shape).bounds(plan.graph.symbols).max > kNarrow / 2) result.wide_index = true;
  return result;
}

}  // namespace tenon::codegen
