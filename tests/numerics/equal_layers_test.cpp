// Equal layers share their kernels; each reads and writes its own values.
#include <gtest/gtest.h>

#include <string>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tests/harness/differential.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

ir::Graph layers(int count) {
  std::string head = "graph layers(y0: f32[rows, 48]", body;
  for (int i = 1; i <= count; ++i) {
    head += ", w" + std::to_string(i) + ": f32[48, 48], b" + std::to_string(i) + ": f32[48]";
    const std::string y = "y" + std::to_string(i - 1), n = std::to_string(i);
    body += "  s" + n + " = softmax(" + y + ")\n";
    body += "  y" + n + " = add(add(matmul(s" + n + ", w" + n + "), b" + n + "), " + y + ")\n";
  }
  return ir::parse(head + ") {\n" + body + "  return y" + std::to_string(count) + "\n}\n");
}

class EqualLayers : public OnTarget {};

TEST_P(EqualLayers, AreRightAtEverySize) {
  expect_right(layers(4), GetParam(), {{{"rows", 1}}, {{"rows", 3}}, {{"rows", 64}}});
}

TEST_P(EqualLayers, AreBuiltOnce) {
  const auto executable_of = [&](int count) {
    const auto backend = backend_of(GetParam());
    return src::make_executable(src::plan(layers(count), *backend, {}), backend, {});
  };
  const Executable few = executable_of(3), many = executable_of(9);
  few.prepare({{"rows", 64}});
  many.prepare({{"rows", 64}});
  EXPECT_GT(many.stats().kernels, few.stats().kernels);
  EXPECT_EQ(many.stats().builds, few.stats().builds);
}

TENON_ON_EACH_TARGET(EqualLayers);

}  // namespace
}  // namespace tenon::test
