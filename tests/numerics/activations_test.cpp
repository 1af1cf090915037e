// What activations make of infinities, NaN, zeros and the largest numbers: the same on every target, fused or not, as
// their compositions say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kSpecial[] = {-kInf, kInf,  std::numeric_limits<double>::quiet_NaN(),
                               -0.0,  0.0,   -3e38,
                               3e38,  -1e30, 1e30,
                               -100,  100,   -30,
                               30,    -43.5, -9.1,
                               9.1};

class Activations : public OnTarget {};

std::string kind_of(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  return "finite";
}

constexpr const char* kCalls[] = {"gelu(x)",     "gelu(x, approximate=\"tanh\")",
                                  "silu(x)",     "swiglu(x, x)",
                                  "softplus(x)", "elu(x)",
                                  "mish(x)",     "sigmoid(x)",
                                  "relu(x)",     "leaky_relu(x)"};

// Each alone in its kernel as far as others' operators go: common ones are shared.
std::string all_of(const std::string& dtype) {
  std::string text = fmt::format("graph activations(x: {}[{}]) {{\n", dtype, std::size(kSpecial)), results;
  for (std::size_t i = 0; i < std::size(kCalls); ++i) {
    text += fmt::format("  y{} = {}\n", i, kCalls[i]);
    results += fmt::format("{}y{}", i == 0 ? "" : ", ", i);
  }
  return text + "  return " + results + "\n}\n";
}

TEST_P(Activations, OfSpecialValues) {
  const bool host = GetParam() == "cuda_on_host";  // compiles for seconds
  for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
    if (host && std::string(dtype) != "f32") continue;
    const ir::Graph graph = ir::parse(all_of(dtype));
    std::vector<ir::HostArray> inputs = data_for(graph, {});
    for (std::size_t i = 0; i < std::size(kSpecial); ++i)
      ir::set_real(inputs[0], static_cast<std::int64_t>(i), kSpecial[i]);
    const std::vector<ir::HostArray> expected = ir::interpret(graph, inputs);
    for (const bool fuse : {true, false}) {
      if (host && !fuse) continue;
      const std::vector<ir::HostArray> actual = GuardedProgram(graph, GetParam(), fuse)(inputs);
      for (std::size_t call = 0; call < actual.size(); ++call)
        for (std::int64_t i = 0; i < ir::element_count(actual[call]); ++i)
          EXPECT_EQ(kind_of(ir::get_real(actual[call], i)), kind_of(ir::get_real(expected[call], i)))
              << kCalls[call] << " of " << ir::get_real(inputs[0], i) << " in " << dtype << (fuse ? "" : ", unfused");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, Activations, ::testing::Values("cpu", "cuda", "cuda_on_host", "cpu_avx2", "cpu_sse"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test
