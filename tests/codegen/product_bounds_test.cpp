// Products of which masks of positions hide a part: what is found of the masks, and what kernels that skip the hidden
// tiles and depth compute, by every main loop, at sizes that are no multiples of anything.
//   TENON_RANDOM_COUNT   how many graphs for each target; default 8
//   TENON_RANDOM_SEED    the first seed; default: from the clock
#include "codegen/analysis/product_bounds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "ir/text/text.h"
#include "tests/codegen/wgmma_on_host.h"
#include "tests/harness/differential.h"
#include "tests/harness/random_schedule.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using Texts = std::vector<std::string>;

// What is said of the first kernel of a graph of two 512 x 512 matrices, but for the share that is left.
Texts bounds_of(const std::string& body) {
  const ir::Graph graph = ir::parse(
      "graph g(a: bf16[512, 512], b: bf16[512, 512], c: bf16[512, 512]) {\n"
      "  i = iota(shape=[512, 512], axis=0)\n  j = iota(shape=[512, 512], axis=1)\n  x = matmul(a, b)\n" +
      body + "}\n");
  const ir::Plan plan = ir::make_plan(graph, {});
  Kernel kernel = scheduled_kernel(plan, 0, codegen::unspecialized(plan), hopper());
  if (!std::holds_alternative<codegen::ContractSchedule>(kernel.schedule)) return {"no product"};
  Texts texts = codegen::product_mask_texts(kernel);
  if (!texts.empty()) texts.pop_back();
  return texts;
}

TEST(ProductBounds, AreFoundInWhatSelectsTheProduct) {
  EXPECT_EQ(bounds_of("y = where(greater_equal(i, j), x, 0); return y"),
            Texts{"column <= row: tiles elsewhere are not multiplied"});
  EXPECT_EQ(bounds_of("y = where(less(add(i, 7), j), c, gelu(x)); return y"),
            Texts{"column <= row + 7: tiles elsewhere are not multiplied"});
  EXPECT_EQ(bounds_of("y = where(greater(j, i), add(x, c), c); return y"),
            Texts{"column >= row + 1: tiles elsewhere are not multiplied"});
  EXPECT_EQ(bounds_of("y = where(logical_and(less(sub(i, j), 9), less_equal(j, i)), x, 1); return y"),
            (Texts{"column >= row - 8: tiles elsewhere are not multiplied",
                   "column <= row: tiles elsewhere are not multiplied"}));
  EXPECT_EQ(bounds_of("y = where(less(i, 100), x, 0); return y"),
            Texts{"row <= 99: tiles elsewhere are not multiplied"});
}

TEST(ProductBounds, AreNotThoseOfAProductThatIsUsedElsewhere) {
  EXPECT_EQ(bounds_of("y = where(greater_equal(i, j), x, 0); z = tanh(x); return y, z"), Texts{});
  EXPECT_EQ(bounds_of("y = where(greater_equal(i, j), x, neg(x)); return y"), Texts{});
  EXPECT_EQ(bounds_of("y = where(greater_equal(x, 0), x, 0); return y"), Texts{});
  // A product with 0 is NaN where the other factor is no number.
  EXPECT_EQ(bounds_of("y = mul(cast(greater_equal(i, j), dtype=bf16), x); return y"), Texts{});
}

TEST(ProductBounds, AreThoseThatAllResultsShare) {
  EXPECT_EQ(bounds_of("m = greater_equal(i, j); y = where(m, x, 0); z = where(m, tanh(x), c); return y, z"),
            Texts{"column <= row: tiles elsewhere are not multiplied"});
  EXPECT_EQ(bounds_of("y = where(greater_equal(i, j), x, 0); z = where(greater(i, j), x, 0); return y, z"), Texts{});
}

TEST(ProductBounds, AreFoundInZerosOfTheOperands) {
  EXPECT_EQ(bounds_of("l = where(greater_equal(i, j), a, 0); y = matmul(l, b); return y"),
            Texts{"depth <= row: the rest of a tile's is not multiplied"});
  EXPECT_EQ(bounds_of("u = where(greater(i, j), 0, b); y = matmul(a, u); return y"),
            Texts{"depth <= column: the rest of a tile's is not multiplied"});
  EXPECT_EQ(bounds_of("l = where(greater_equal(i, j), a, 0); u = where(less(i, sub(j, 3)), b, 0); y = matmul(l, u)\n"
                      "return y"),
            (Texts{"depth <= row: the rest of a tile's is not multiplied",
                   "depth <= column - 4: the rest of a tile's is not multiplied"}));
  EXPECT_EQ(bounds_of("l = where(greater_equal(i, j), a, 1); y = matmul(l, b); return y"), Texts{});
}

TEST(ProductBounds, SayWhatIsLeft) {
  const ir::Graph graph = ir::parse(R"(graph g(a: bf16[4096, 4096], b: bf16[4096, 4096]) {
    i = iota(shape=[4096, 4096], axis=0)
    j = iota(shape=[4096, 4096], axis=1)
    y = where(greater_equal(i, j), matmul(a, b), 0)
    return y
  })");
  const ir::Plan plan = ir::make_plan(graph, {});
  Kernel kernel = scheduled_kernel(plan, 0, codegen::unspecialized(plan), hopper());
  kernel.schedule = codegen::parse_schedule("contract loop=wgmma tile_m=128 tile_n=128 tile_k=64 stages=4 bounded");
  EXPECT_EQ(codegen::product_mask_texts(kernel).back(), "52 % of the product is left in tiles of 128 x 128");
  EXPECT_EQ(verify(kernel.schedule, kernel, hopper()), "");
}

TEST(ProductBounds, AreAskedForOnlyWhereThereAreSome) {
  const ir::Plan plan =
      ir::make_plan(ir::parse("graph g(a: bf16[512, 512], b: bf16[512, 512]) { y = matmul(a, b); return y }"), {});
  Kernel kernel = scheduled_kernel(plan, 0, codegen::unspecialized(plan), hopper());
  kernel.schedule = codegen::parse_schedule("contract loop=wgmma tile_m=128 tile_n=128 tile_k=64 stages=4 bounded");
  EXPECT_EQ(verify(kernel.schedule, kernel, hopper()), "no mask of positions bounds the product");
}

TEST(ProductBounds, CanBeSwitchedOff) {
  const ir::Graph graph = ir::parse(R"(graph g(a: bf16[512, 512], b: bf16[512, 512]) {
    y = where(greater_equal(iota(shape=[512, 512], axis=0), iota(shape=[512, 512], axis=1)), matmul(a, b), 0)
    return y
  })");
  const ir::Plan plan = ir::make_plan(graph, {});
  codegen::Target target = hopper();
  target.may = without(target.may, {"product_bounds"});
  const Kernel kernel = scheduled_kernel(plan, 0, codegen::unspecialized(plan), target);
  EXPECT_FALSE(std::get<codegen::ContractSchedule>(kernel.schedule).bounded);
}

// ---- random graphs
// However warpgroups share tiles, and whatever is hidden: whole tiles, some depth of each, or all of it.
void expect_bounded(const std::string& body, const std::vector<std::string>& ways) {
  Options options = default_options();
  options.cache = false;
  const ir::Graph graph = ir::parse(
      "graph g(a: bf16[2, 328, 328], w: bf16[2, 328, 264]) {\n"
      "  i = iota(shape=[328, 264], axis=0)\n  j = iota(shape=[328, 264], axis=1)\n"
      "  p = iota(shape=[328, 328], axis=0)\n  q = iota(shape=[328, 328], axis=1)\n  y = " +
      body + "\n  return y\n}\n");
  for (const std::string& way : ways) {
    SCOPED_TRACE(body + ": " + way);
    const codegen::Schedule schedule = codegen::parse_schedule("contract loop=wgmma tile_k=64 bounded " + way);
    int kernels = 0;
    const auto find = [&](const Kernel& kernel) -> std::optional<codegen::Schedule> {
      EXPECT_EQ(verify(schedule, kernel, backend_of("hopper_on_host")->target()), "");
      ++kernels;
      return schedule;
    };
    const RandomCase c{graph, {}, random_inputs(graph, {}, 1), {}};
    const Verdict verdict = check_with_schedules(c, "hopper_on_host", options, find);
    EXPECT_TRUE(verdict.same) << verdict.difference;
    EXPECT_EQ(kernels, 1);
  }
}

TEST(ProductBounds, HoldForAllWaysOfWarpgroups) {
  for (const char* mask : {"greater_equal(add(i, 7), j)", "less(i, j)", "less(add(i, 400), j)",
                           "logical_and(less_equal(j, i), less(i, add(j, 70)))"})
    expect_bounded(fmt::format("where({}, matmul(a, w), 1)", mask),
                   {"tile_m=64 tile_n=64 turns stages=3", "tile_m=64 tile_n=64 turns consumers=3 stages=4",
                    "tile_m=128 tile_n=64 lead=1 stages=4", "tile_m=64 tile_n=128 consumers=1 stages=3 cluster=2",
                    "tile_m=64 tile_n=128 turns stages=4 cluster=2", "tile_m=64 tile_n=64 consumers=1 stages=4 parts=3",
                    "tile_m=128 tile_n=64 stages=4 block_steps=2"});
  for (const char* mask : {"less(q, add(p, 7))", "less(p, q)", "logical_and(less_equal(q, p), less(p, add(q, 70)))"})
    expect_bounded(fmt::format("matmul(where({}, a, 0), w)", mask),
                   {"tile_m=64 tile_n=64 turns stages=5 feed_a=threads",
                    "tile_m=64 tile_n=64 turns stages=6 feed_a=threads producers=2",
                    "tile_m=128 tile_n=64 lead=1 stages=5 feed_a=threads producers=2",
                    "tile_m=64 tile_n=64 consumers=1 stages=4 parts=3 feed_a=threads"});
}

// ---------------------------------------------------------------------------------------------------

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool flip() { return between(0, 1) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[between(0, static_cast<std::int64_t>(all.size()) - 1)];
  }
  std::mt19937_64& source() { return random_; }

 private:
  std::mt19937_64 random_;
};

// "less(add(i, 7), j)", or a conjunction of two, of the positions in a matrix.
std::string random_mask(Draw& draw, const std::string& i, const std::string& j, std::int64_t reach) {
  const auto comparison = [&](std::initializer_list<const char*> ops) {
    return fmt::format("{}(add({}, {}), {})", draw.one_of(ops), i, draw.between(-reach, reach), j);
  };
  if (draw.between(0, 2) > 0) return comparison({"less", "less_equal", "greater", "greater_equal"});
  if (draw.flip()) return fmt::format("logical_not({})", comparison({"less", "greater"}));
  return fmt::format("logical_and({}, {})", comparison({"less", "less_equal"}),
                     comparison({"greater", "greater_equal"}));
}

// `tame`: f32 operands are within [-7, 9], so that their halves in f16 have all bits (docs/numerics.md, rule 5).
std::string random_product(Draw& draw, bool& tame) {
  const std::int64_t multiple = draw.one_of({1, 8, 8});
  const auto size = [&] { return multiple * draw.between(1, 400 / multiple); };
  const std::int64_t b = draw.one_of({1, 1, 2, 3}), m = size(), n = size(), k = size();
  const char* dtype = draw.one_of({"bf16", "bf16", "f32"});
  tame = dtype == std::string("f32") && draw.flip();
  std::string text =
      fmt::format("graph g(a{5}: {0}[{1}, {2}, {4}], w{5}: {0}[{1}, {4}, {3}], c: {0}[{1}, {2}, {3}]) {{\n", dtype, b,
                  m, n, k, tame ? "0" : "");
  if (tame) text += "  a = add(clamp(a0, -8, 8), 1)\n  w = add(clamp(w0, -8, 8), 1)\n";
  const auto positions = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    for (const int axis : {0, 1})
      text += fmt::format("  {}{} = iota(shape=[{}, {}], axis={})\n", name, axis, rows, columns, axis);
    return std::pair(name + "0", name + "1");
  };
  const std::int64_t kind = draw.between(0, 3);  // a mask of the result, of an operand, or of several
  std::string left = "a", right = "w";
  if (kind == 1 || kind == 3) {
    const auto [i, q] = positions("l", m, k);
    text += fmt::format("  left = where({}, a, 0)\n", random_mask(draw, i, q, k / 2));
    left = "left";
  }
  if (kind == 2 || (kind == 3 && draw.flip())) {
    const auto [q, j] = positions("r", k, n);
    text += fmt::format("  right = where({}, w, 0)\n", random_mask(draw, q, j, k / 2));
    right = "right";
  }
  text += fmt::format("  x = matmul({}, {})\n", left, right);
  if (kind == 0 || (kind == 3 && draw.flip())) {
    const auto [i, j] = positions("p", m, n);
    text += fmt::format("  mask = {}\n  y = where(mask, {}, {})\n", random_mask(draw, i, j, n / 2),
                        draw.one_of({"x", "add(x, c)"}), draw.one_of({"0", "c"}));
    const std::int64_t more = draw.between(0, 3);
    if (more == 0) return text + "  z = where(mask, tanh(x), 1)\n  return y, z\n}\n";
    if (more == 1) return text + "  z = add(x, c)\n  return y, z\n}\n";
    return text + "  return y\n}\n";
  }
  return text + "  return x\n}\n";
}

class BoundedProducts : public testing::TestWithParam<std::string> {};

TEST_P(BoundedProducts, AreThoseOfTheInterpreter) {
  const std::string& target = GetParam();
  if (!why_missing(target).empty()) GTEST_SKIP() << why_missing(target);
  const auto setting = [](const char* name, std::uint64_t fallback) {
    const char* text = std::getenv(name);
    return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
  };
  const auto clock = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const std::uint64_t first = setting("TENON_RANDOM_SEED", clock / 1000 % 1000000000);
  const std::uint64_t count = setting("TENON_RANDOM_COUNT", 8);
  const codegen::Target& kind = backend_of(target)->target();
  int bounded = 0;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    Draw draw(seed);
    bool tame = false;
    const std::string text = random_product(draw, tame);
    Options options = default_options();
    options.cache = false;                           // every graph is new
    if (!tame) options.disable.insert("split_f32");  // it has fewer bits of rows of the least numbers
    const ir::Graph graph = ir::parse(text);
    const RandomCase c{graph, {}, random_inputs(graph, {}, seed), {}};
    std::string schedules;
    const auto find = [&](const Kernel& kernel) -> std::optional<codegen::Schedule> {
      if (kernel.kernel_class != ir::KernelClass::contract) return std::nullopt;
      codegen::Schedule schedule = random_legal_schedule(kernel, kind, draw.source());
      auto& contract = std::get<codegen::ContractSchedule>(schedule);
      contract.bounded = true;
      if (!verify(schedule, kernel, kind).empty()) contract.bounded = false;
      bounded += contract.bounded ? 1 : 0;
      schedules += print(schedule) + "\n";
      return schedule;
    };
    const Verdict verdict = check_with_schedules(c, target, options, find);
    EXPECT_TRUE(verdict.same) << fmt::format("TENON_RANDOM_SEED={}\n", seed) << text << schedules << verdict.difference;
  }
  EXPECT_GT(bounded, 0);
}

INSTANTIATE_TEST_SUITE_P(On, BoundedProducts, testing::Values("cpu", "cuda_on_host", "hopper_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test
