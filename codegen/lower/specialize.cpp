// Dimension classes: what a kernel may rely on, so that one kernel serves every size of its class.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kNarrow = std::numeric_limits<std::int32_t>::max();

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
    text += fmt::format(" {}:{}", name, fixed ? fmt::format("={}", bounds.min) : fmt::format("%{}", bounds.divisor));
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
  for (const auto& [name, declared] : plan.graph.symbols) {
    const auto value = bindings.find(name);
    SymbolBounds bounds = value == bindings.end() ? declared : classify(declared, value->second);
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
