// A few kernels of every class on buffers of exactly their size, for compute-sanitizer: memcheck sees each access
// beyond one (guard bands would hide it), racecheck each missing barrier. Small, since both tools slow kernels down.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tests/harness/differential.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

struct Sample {
  const char* name;
  const char* text;
  std::vector<Bindings> sizes;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"map",
       R"(graph maps(x: f32[n, 33], y: bf16[33], i: i32[7]) {
          a = tanh(add(x, cast(y, dtype=f32)))
          b = transpose(mul(a, 2))
          c = concat(a, flip(x, axis=0))
          d = take(x, i, axis=1)
          e = pad(cast(x, dtype=f8e4m3), low=[1, 2], high=[3, 0])
          return a, b, c, d, e
        })",
       {{{"n", 5}}, {{"n", 129}}, {{"n", 1}}}},
      {"random",
       R"(graph random(x: f16[n, 77], seed: i64) {
          y = dropout(x, seed, p=0.3)
          z = random_normal(seed, shape=[n, 3], stream=1)
          return y, z
        })",
       {{{"n", 33}}}},
      {"reduce_rows",
       R"(graph rows(x: bf16[n, 1025], w: bf16[1025], b: bf16[1025], t: i64[n]) {
          s = softmax(x)
          y = layer_norm(x, w, b)
          c = cross_entropy(x, t)
          a = argmax(x, axis=1)
          return s, y, c, a
        })",
       {{{"n", 1}}, {{"n", 37}}}},
      {"reduce_short_rows",
       R"(graph short(x: f32[n, 17]) {
          s = softmax(x)
          v = var(x, axis=1)
          return s, v
        })",
       {{{"n", 3}}, {{"n", 400}}}},
      {"reduce_columns",
       R"(graph columns(x: f32[n, 130]) {
          s = sum(x, axis=0)
          m = max(x, axis=0, keepdims=true)
          y = sub(x, m)
          all = sum(mul(x, x))
          return s, y, all
        })",
       {{{"n", 5}}, {{"n", 1000}}}},
      {"reduce_parts",
       R"(graph parts(x: bf16[n], y: f32[2, 70001], z: f16[m, 136]) {
          s = sum(x)
          a = argmin(x)
          m = max(y, axis=1)
          c = sum(z, axis=0)
          d = argmax(z, axis=0)
          return s, a, m, c, d
        })",
       {{{"n", 70001}, {"m", 401}}, {{"n", 5}, {"m", 1}}, {{"n", 65536}, {"m", 64}}}},
      {"reduce_long_rows",
       R"(graph long(x: bf16[n, 40003], y: f32[n, 20000], t: i64[n]) {
          s = softmax(x)
          c = cross_entropy(x, t)
          l = softmax(y)
          return s, c, l
        })",
       {{{"n", 1}}, {{"n", 3}}}},
      {"contract_f32",
       R"(graph f32(a: f32[m, 70], b: f32[70, 50], bias: f32[50]) {
          y = relu(add(matmul(a, b), bias))
          return y
        })",
       {{{"m", 1}}, {{"m", 65}}, {{"m", 128}}}},
      {"contract_bf16",
       R"(graph bf16(a: bf16[m, 200], b: bf16[200, 136], r: bf16[m, 136]) {
          y = add(gelu(matmul(a, b)), r)
          return y
        })",
       {{{"m", 1}}, {{"m", 130}}, {{"m", 64}}}},
      {"contract_tensor_tiles",
       R"(graph tiles(a: f16[3, 128, 256], b: f16[3, 256, 128], c: bf16[128, 256]) {
          y = matmul(a, b)
          t = matmul(transpose(c), c)
          return y, t
        })",
       {{}}},
      {"contract_f8_f64",
       R"(graph others(a: f8e4m3[33, 64], b: f8e4m3[64, 40], c: f64[17, 9], d: f64[9, 21]) {
          y = matmul(a, b)
          z = matmul(c, d)
          return y, z
        })",
       {{}}},
      {"attend_causal",
       R"(graph causal(q: bf16[1, 2, s, 64], k: bf16[1, 1, s, 64], v: bf16[1, 1, s, 64]) {
          y, l = attention(q, k, v, causal=true, lse=true)
          return y, l
        })",
       {{{"s", 1}}, {{"s", 113}}, {{"s", 128}}}},
      {"attend_bias",
       R"(graph bias(q: f32[1, 2, 45, 40], k: f32[1, 2, 77, 40], v: f32[1, 2, 77, 16], b: f32[45, 77]) {
          y = attention(q, k, v, b, window=20, softcap=10.0)
          return y
        })",
       {{}}},
      {"attend_wide",
       R"(graph wide(q: f16[1, 1, 65, 256], k: f16[1, 1, 130, 256], v: f16[1, 1, 130, 256]) {
          y = attention(q, k, v)
          return y
        })",
       {{}}},
  };
  return all;
}

class KernelSample : public ::testing::TestWithParam<std::tuple<std::string, std::size_t>> {};

TEST_P(KernelSample, Runs) {
  const auto& [target, at] = GetParam();
  require(target);
  if (IsSkipped() || HasFatalFailure()) return;
  const Sample& sample = samples()[at];
  const ir::Graph graph = ir::parse(sample.text);
  const Options options = default_options();
  const Executable executable =
      src::make_executable(src::plan(graph, *backend_of(target), options), backend_of(target), options);
  for (const Bindings& bindings : sample.sizes) {
    const auto data = data_for(graph, bindings);
    std::vector<Array> inputs;
    for (const ir::HostArray& input : data) inputs.push_back(to_array(input));
    std::vector<ir::HostArray> outputs;
    for (const Array& output : executable(inputs, bindings)) outputs.push_back(to_host(output));
    const auto comparisons = ir::compare_with_interpreter(graph, data, outputs, bindings, 2);
    for (std::size_t i = 0; i < comparisons.size(); ++i)
      EXPECT_TRUE(is_right(comparisons[i]))
          << graph.outputs_names[i] << ": " << comparisons[i].mismatches << " of " << comparisons[i].elements
          << " differ, " << comparisons[i].max_tolerance_ratio << " times the tolerance";
  }
}
INSTANTIATE_TEST_SUITE_P(On, KernelSample,
                         ::testing::Combine(::testing::ValuesIn(all_targets()),
                                            ::testing::Range(std::size_t{0}, samples().size())),
                         [](const auto& each) {
                           return std::get<0>(each.param) + "_" + samples()[std::get<1>(each.param)].name;
                         });

}  // namespace
}  // namespace tenon::test
