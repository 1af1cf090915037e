// Masks of which a part is known when code is compiled, on each width of registers and for processors of several
// makers: which of them LLVM compiles wrongly is a matter of its register allocation, so the instruction that it takes
// for a copy (see hidden_lane_numbers) must not occur for any.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <regex>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class CpuMasks : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { require(GetParam()); }
};

std::string shape_of(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

// Rows of a padded tensor, cut anew and read from `start` to `stop`.
std::string padded_slice(const char* dtype, const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& low,
                         const std::vector<std::int64_t>& high, std::int64_t rows, std::int64_t columns,
                         const std::vector<std::int64_t>& range) {
  return fmt::format(R"(graph g(x: {}{}) {{
    p = pad(x, low={}, high={}, value=3)
    y = slice(reshape(p, shape=[{}, {}]), axis=[1], start=[{}], stop=[{}], step=[{}])
    return y
  }})",
                     dtype, shape_of(x), shape_of(low), shape_of(high), rows, columns, range[0], range[1], range[2]);
}

// Of random shapes; every second one backwards.
std::vector<std::string> padded_slices(int count) {
  std::vector<std::string> graphs;
  std::mt19937 engine(17);
  const auto any = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(to - from));
  };
  constexpr const char* kTypes[] = {"f32", "bf16", "f64", "i64", "i8"};
  while (static_cast<int>(graphs.size()) < count) {
    std::vector<std::int64_t> x, low, high;
    std::int64_t elements = 1;
    for (int axis = 0; axis < 3; ++axis) {
      x.push_back(any(1, 14));
      low.push_back(any(0, 8));
      high.push_back(any(0, 6));
      elements *= x.back() + low.back() + high.back();
    }
    const std::int64_t rows = any(1, 7);
    if (elements % rows != 0 || elements / rows < 20) continue;
    const std::int64_t columns = elements / rows, first = any(0, columns / 2), last = any(columns / 2, columns);
    const bool backwards = graphs.size() % 2 == 0;
    graphs.push_back(
        padded_slice(kTypes[graphs.size() % 5], x, low, high, rows, columns,
                     backwards ? std::vector{last, first - 1, any(-2, 0)} : std::vector{first, last, any(1, 3)}));
    if (backwards && first == 0) graphs.pop_back();  // a stop of -1 counts from the end
  }
  return graphs;
}

// The graph by which it was found: 0 for 3 in 8 of its 99 elements.
TEST_P(CpuMasks, AReversedSliceOfAPaddedReshape) {
  expect_right(ir::parse(R"(graph g(x: f32[12, 1, 12]) {
    p = pad(x, low=[7, 2, 0], high=[0, 1, 5], value=3)
    y = slice(reshape(p, shape=[4, 323]), axis=[0, 1], start=[3, 124], stop=[4, 25], step=[1, -1])
    return y
  })"),
               GetParam());
}

TEST_P(CpuMasks, SlicesOfPaddedReshapes) {
  for (const std::string& graph : padded_slices(12)) expect_right(ir::parse(graph), GetParam());
}

// What is selected, stored and summed by masks of 64-bit numbers.
TEST_P(CpuMasks, SelectionsByLaneNumbers) {
  for (const char* dtype : {"i64", "f64"}) {
    for (const int limit : {3, 8, 11, 16, 24})
      expect_right(ir::parse(fmt::format(R"(graph g(x: f32[5, 27], w: f32[27]) {{
        n = cast(iota(shape=[27]), dtype={})
        y = where(less(n, {}), mul(x, w), 3)
        z = sum(where(greater_equal(n, {}), x, w), axis=1)
        return y, z
      }})",
                                         dtype, limit, limit)),
                   GetParam());
  }
}

TEST_P(CpuMasks, AreNotClearedByWhatLooksLikeACopy) {
  const std::regex clears("kmov[bwd]\\s+%k[0-7], %k[0-7]");
  const auto backend = backend_of(GetParam());
  int vectors = 0;
  for (const std::string& text : padded_slices(12)) {
    const Options options;
    const Executable executable = src::make_executable(src::plan(ir::parse(text), *backend, options), backend, options);
    for (const KernelInfo& kernel : executable.kernels()) {
      EXPECT_FALSE(std::regex_search(kernel.assembly, clears)) << text;
      vectors += kernel.assembly.find("{%k") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_TRUE(vectors > 5 || backend->target().vector_bytes < 64);  // there are masks to look at
}

INSTANTIATE_TEST_SUITE_P(On, CpuMasks,
                         ::testing::Values("cpu", "cpu_tuned_znver4", "cpu_tuned_znver5", "cpu_tuned_skylake-avx512",
                                           "cpu_tuned_sapphirerapids", "cpu_streaming", "cpu_avx2", "cpu_sse"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tenon::test
