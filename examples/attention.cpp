// Lesson 5: attention. One kernel with an online softmax: the matrix of scores never exists in memory. Here causal,
// with four query heads that share two heads of keys and values.
#include "check.h"
#include "tenon/tenon.h"

int main() {
  constexpr std::int64_t kHeads = 4, kKeyHeads = 2, kLength = 70, kDepth = 32;
  tenon::Graph g("attention");
  const tenon::Tensor q = g.input("q", tenon::DType::f32, {kHeads, kLength, kDepth});
  const tenon::Tensor k = g.input("k", tenon::DType::f32, {kKeyHeads, kLength, kDepth});
  const tenon::Tensor v = g.input("v", tenon::DType::f32, {kKeyHeads, kLength, kDepth});
  g.output("y", attention(q, k, v, {.causal = true}));

  const tenon::Executable run = tenon::compile(g);
  const std::vector<tenon::Array> inputs{tenon::Array::normal({kHeads, kLength, kDepth}, 1),
                                         tenon::Array::normal({kKeyHeads, kLength, kDepth}, 2),
                                         tenon::Array::normal({kKeyHeads, kLength, kDepth}, 3)};
  const std::vector<float> y = run(inputs)[0].to<float>();

  const auto qs = inputs[0].to_doubles(), ks = inputs[1].to_doubles(), vs = inputs[2].to_doubles();
  std::vector<double> expected;
  for (std::int64_t head = 0; head < kHeads; ++head)
    for (std::int64_t i = 0; i < kLength; ++i) {
      const std::int64_t shared = head / (kHeads / kKeyHeads);
      std::vector<double> sum(kDepth);
      double total = 0;
      for (std::int64_t j = 0; j <= i; ++j) {  // causal: keys up to the query's own position
        double score = 0;
        for (std::int64_t d = 0; d < kDepth; ++d)
          score += qs[static_cast<std::size_t>((head * kLength + i) * kDepth + d)] *
                   ks[static_cast<std::size_t>((shared * kLength + j) * kDepth + d)];
        const double weight = std::exp(score / std::sqrt(kDepth));
        total += weight;
        for (std::int64_t d = 0; d < kDepth; ++d)
          sum[static_cast<std::size_t>(d)] +=
              weight * vs[static_cast<std::size_t>((shared * kLength + j) * kDepth + d)];
      }
      for (double value : sum) expected.push_back(value / total);
    }
  return close("attention", y, expected, 1e-5) && run.stats().kernels == 1 ? 0 : 1;
}
