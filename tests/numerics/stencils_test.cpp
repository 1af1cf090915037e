// Stencils and windows as they are written in graphs, pads and slices with arithmetic between them: on every target, of
// any window, stride, dilation, padding and extent, beside what the interpreter says.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using Numbers = std::vector<std::int64_t>;

// A pool over the last axes of x, as slices of a padded x that are combined.
struct Pool {
  DType dtype = DType::f32;
  Numbers shape, window, stride, dilation, low, high;
  std::string op = "add";
  std::string value = "0";
};

// The next place of a window in row-major order; false behind the last.
bool advance(Numbers& place, const Numbers& window) {
  for (std::size_t axis = window.size(); axis-- > 0;) {
    if (++place[axis] < window[axis]) return true;
    place[axis] = 0;
  }
  return false;
}

std::string text_of(const Pool& pool) {
  const std::size_t rank = pool.shape.size(), pooled = pool.window.size();
  Numbers low(rank - pooled), high(rank - pooled), axes, place(pooled);
  low.insert(low.end(), pool.low.begin(), pool.low.end());
  high.insert(high.end(), pool.high.begin(), pool.high.end());
  for (std::size_t axis = rank - pooled; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  std::string text =
      fmt::format("graph pool(x: {}[{}]) {{\n  p = pad(x, low=[{}], high=[{}], value={})\n", name_of(pool.dtype),
                  fmt::join(pool.shape, ", "), fmt::join(low, ", "), fmt::join(high, ", "), pool.value);
  std::string sum;
  do {
    Numbers start, stop;
    for (std::size_t axis = 0; axis < pooled; ++axis) {
      const std::int64_t padded = pool.shape[rank - pooled + axis] + pool.low[axis] + pool.high[axis];
      const std::int64_t span = (pool.window[axis] - 1) * pool.dilation[axis] + 1;
      start.push_back(place[axis] * pool.dilation[axis]);
      stop.push_back(start.back() + (padded - span) / pool.stride[axis] * pool.stride[axis] + 1);
    }
    const std::string slice =
        fmt::format("slice(p, axis=[{}], start=[{}], stop=[{}], step=[{}])", fmt::join(axes, ", "),
                    fmt::join(start, ", "), fmt::join(stop, ", "), fmt::join(pool.stride, ", "));
    sum = sum.empty() ? slice : fmt::format("{}({}, {})", pool.op, sum, slice);
  } while (advance(place, pool.window));
  return text + "  return " + sum + "\n}";
}

class Stencils : public OnTarget {
 protected:
  // As one kernel: that each operator is right alone is for other tests.
  static void expect(const std::string& text, const std::vector<Bindings>& sizes = {{}}) {
    const ir::Graph graph = ir::parse(text);
    GuardedProgram program(graph, GetParam(), true);
    EXPECT_EQ(program.stats().kernels, 1U) << text;
    for (const Bindings& bindings : sizes) {
      const auto inputs = data_for(graph, bindings);
      const auto outputs = program(inputs, bindings);
      for (const ir::Comparison& one : ir::compare_with_interpreter(graph, inputs, outputs, bindings))
        EXPECT_TRUE(is_right(one)) << text << "\n"
                                   << one.mismatches << " of " << one.elements << " differ, first at "
                                   << one.first_mismatch;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(On, Stencils, ::testing::Values("cpu", "cpu_streaming", "cpu_avx2", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

TEST_P(Stencils, PoolsOfOneAxis) {
  for (const std::int64_t length : {517, 512})
    for (const auto& [window, stride, dilation, value] :
         {std::tuple{8, 1, 1, "0"}, {8, 1, 3, "-inf"}, {8, 8, 1, "0"}, {3, 2, 1, "-inf"}, {5, 3, 2, "1"}})
      expect(text_of({.shape = {3, length},
                      .window = {window},
                      .stride = {stride},
                      .dilation = {dilation},
                      .low = {4},
                      .high = {3},
                      .op = std::string(value) == "-inf" ? "maximum" : "add",
                      .value = value}));
}

TEST_P(Stencils, PoolsOfTwoAndThreeAxes) {
  for (const std::int64_t length : {256, 261}) {
    expect(text_of({.shape = {2, 9, length},
                    .window = {3, 3},
                    .stride = {1, 1},
                    .dilation = {1, 1},
                    .low = {1, 1},
                    .high = {1, 1}}));
    expect(text_of({.shape = {2, 9, length},
                    .window = {3, 4},
                    .stride = {2, 2},
                    .dilation = {2, 1},
                    .low = {2, 1},
                    .high = {1, 2},
                    .op = "maximum",
                    .value = "-inf"}));
    expect(text_of({.shape = {7, 8, length},
                    .window = {3, 3, 3},
                    .stride = {2, 2, 2},
                    .dilation = {1, 1, 1},
                    .low = {1, 1, 1},
                    .high = {1, 1, 1}}));
    expect(text_of({.shape = {2, 12, length},
                    .window = {5, 5},
                    .stride = {5, 5},
                    .dilation = {1, 1},
                    .low = {0, 0},
                    .high = {0, 0}}));
  }
}

TEST_P(Stencils, PoolsOfEveryDType) {
  for (const DType dtype :
       {DType::u8, DType::i8, DType::i16, DType::i64, DType::f16, DType::bf16, DType::f64, DType::f8e4m3})
    for (const std::int64_t length : {301, 512})
      expect(text_of({.dtype = dtype,
                      .shape = {5, length},
                      .window = {3, 3},
                      .stride = {1, 1},
                      .dilation = {1, 1},
                      .low = {1, 1},
                      .high = {1, 1},
                      .op = "maximum",
                      .value = is_f8(dtype) ? "0.5" : "7"}));
}

// Nothing, or hardly anything, is inside.
TEST_P(Stencils, WindowsWiderThanTheInput) {
  for (const std::int64_t length : {1, 5, 40})
    expect(text_of({.shape = {3, length},
                    .window = {6},
                    .stride = {1},
                    .dilation = {1},
                    .low = {150},
                    .high = {140},
                    .value = "2"}));
  expect(text_of(
      {.shape = {1, 300}, .window = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .low = {1, 1}, .high = {1, 1}}));
}

TEST_P(Stencils, AStepOfJacobiBesideItsResidual) {
  for (const std::int64_t n : {200, 203})
    expect(fmt::format(R"(graph jacobi(x: f32[{0}, {0}], b: f32[{0}, {0}]) {{
      p = pad(x, low=[1, 1], high=[1, 1])
      n = slice(p, axis=[0, 1], start=[0, 1], stop=[{0}, {1}])
      s = slice(p, axis=[0, 1], start=[2, 1], stop=[{2}, {1}])
      w = slice(p, axis=[0, 1], start=[1, 0], stop=[{1}, {0}])
      e = slice(p, axis=[0, 1], start=[1, 2], stop=[{1}, {2}])
      y = mul(add(add(add(n, s), add(w, e)), b), 0.25)
      r = abs(sub(y, x))
      return y, r
    }})",
                       n, n + 1, n + 2));
}

// The colours of a pixel are no axis of their own: what asks for columns asks for three elements each.
TEST_P(Stencils, PicturesOfThreeColours) {
  for (const std::int64_t width : {120, 121}) {
    expect(fmt::format(R"(graph blur(x: u8[9, {0}, 3]) {{
      p = pad(cast(x, dtype=i16), low=[1, 1, 0], high=[1, 1, 0])
      a = slice(p, axis=[1], start=[0], stop=[{0}])
      b = slice(p, axis=[1], start=[1], stop=[{1}])
      c = slice(p, axis=[1], start=[2], stop=[{2}])
      r = add(add(a, b), c)
      s = add(add(slice(r, axis=[0], start=[0], stop=[9]), slice(r, axis=[0], start=[1], stop=[10])), slice(r, axis=[0], start=[2], stop=[11]))
      return cast(floor_div(s, 9), dtype=u8)
    }})",
                       width, width + 1, width + 2));
    expect(fmt::format("graph g(x: f32[9, {}, 3]) {{ return pad(x, low=[2, 3, 0], high=[1, 0, 0], value=5) }}", width));
    expect(fmt::format("graph g(x: f32[9, {}, 3]) {{ return pad(flip(x, axis=[1]), low=[0, 3, 0], high=[0, 1, 0]) }}",
                       width));
    expect(fmt::format("graph g(x: bf16[9, {0}, 3], y: bf16[9, 31, 3]) {{ return concat(y, x, y, axis=1) }}", width));
    expect(fmt::format("graph g(x: f32[9, {}, 3]) {{ return sum(pad(x, low=[2, 3, 0], high=[1, 0, 0]), axis=[1, 2]) }}",
                       width));
  }
}

TEST_P(Stencils, OfAnySize) {
  expect(R"(graph g(x: f32[h, w, 3]) where h in [1, 64], w in [1, 4096] {
      p = pad(x, low=[1, 1, 0], high=[1, 1, 0])
      a = slice(p, axis=[0, 1], start=[0, 0], stop=[h, w])
      b = slice(p, axis=[0, 1], start=[1, 1], stop=[h + 1, w + 1])
      c = slice(p, axis=[0, 1], start=[2, 2], stop=[h + 2, w + 2])
      return add(add(a, b), c)
    })",
         {{{"h", 1}, {"w", 1}}, {{"h", 5}, {"w", 200}}, {{"h", 3}, {"w", 201}}, {{"h", 2}, {"w", 2}}});
  expect(R"(graph g(x: f32[h, w]) {
      p = pad(x, low=[0, 4], high=[0, 4])
      a = slice(p, axis=[1], start=[0], stop=[w + 5])
      b = slice(p, axis=[1], start=[1], stop=[w + 6])
      c = slice(p, axis=[1], start=[3], stop=[w + 8])
      return maximum(maximum(a, b), c)
    })",
         {{{"h", 1}, {"w", 1}}, {{"h", 5}, {"w", 512}}, {{"h", 4}, {"w", 1003}}, {{"h", 0}, {"w", 7}}});
}

TEST_P(Stencils, OfSeveralInputs) {
  expect(R"(graph g(x: f32[6, 400], y: f16[6, 410], m: bool[400]) {
      p = pad(x, low=[0, 5], high=[0, 5], value=1)
      q = pad(y, low=[1, 0], high=[0, 2])
      a = slice(p, axis=[1], start=[0], stop=[400])
      b = slice(p, axis=[1], start=[2], stop=[402])
      c = slice(q, axis=[0, 1], start=[0, 3], stop=[6, 403])
      d = slice(q, axis=[0, 1], start=[1, 12], stop=[7, 412])
      return where(m, add(a, b), cast(sub(c, d), dtype=f32)), mul(b, 2)
    })");
}

}  // namespace
}  // namespace tenon::test
