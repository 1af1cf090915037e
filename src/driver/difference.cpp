// See difference.h.
#include "src/driver/difference.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/ops/formats.h"
#include "ir/text/text.h"
#include "runtime/memory.h"
#include "src/driver/pipeline.h"

namespace tenon::src {
namespace {

// How far two results of the same sums may lie apart, as a share of the value: a few units in the last place, more of
// them where the dtype is precise enough to show the order of summation. A thread that adds n numbers one by one is
// off by about sqrt(n) / 5 units of a random sum, and some of many sums by three times that: 40 for 4,000 numbers.
double tolerance_of(DType dtype) {
  return std::ldexp(size_of(dtype) >= 4 ? 256.0 : 4.0, -ir::real_format(dtype).mantissa_bits);
}

std::string exactly(DType dtype) {
  return fmt::format(R"(graph different(a: {0}[n], b: {0}[n]) where n >= 1 {{
  count = sum(cast(not_equal(a, b), dtype=i64))
  return count
}}
)",
                     name_of(dtype));
}

std::string nearly(DType dtype) {
  return fmt::format(R"(graph different(a: {0}[n], b: {0}[n]) where n >= 1 {{
  x = cast(a, dtype={1})
  y = cast(b, dtype={1})
  largest = max(where(isfinite(y), abs(y), 0))
  same = logical_or(equal(x, y), logical_and(isnan(x), isnan(y)))
  close = less_equal(abs(sub(x, y)), mul({2}, maximum(abs(y), mul(largest, 0.1))))
  near = logical_and(isfinite(y), close)
  count = sum(cast(logical_not(logical_or(same, near)), dtype=i64))
  return count
}}
)",
                     name_of(dtype), dtype == DType::f64 ? "f64" : "f32", tolerance_of(dtype));
}

}  // namespace

std::int64_t count_different(const Buffer& actual, const Buffer& expected,
                             const std::shared_ptr<const runtime::Backend>& backend, const Options& options) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : actual.shape) elements *= extent;
  if (elements == 0) return 0;
  const ir::Graph graph = ir::parse(is_real(actual.dtype) ? nearly(actual.dtype) : exactly(actual.dtype));
  Options plain = options;
  plain.tune = false;
  const Executable executable = make_executable(plan(graph, backend->target().kind, plain), backend, plain);
  const auto memory = runtime::allocate(*backend, sizeof elements);
  const Buffer inputs[] = {{actual.data, actual.dtype, {elements}}, {expected.data, expected.dtype, {elements}}};
  const Buffer output{memory.get(), DType::i64, {}};
  executable.run(inputs, {&output, 1});
  std::int64_t count = 0;
  backend->copy_out(&count, memory.get(), sizeof count, nullptr);
  backend->synchronize(nullptr);
  return count;
}

}  // namespace tenon::src
