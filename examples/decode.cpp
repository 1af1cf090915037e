// Lesson 11: a cache that grows. A decoder attends to the keys and values of all tokens so far. Each step writes its
// own at the next position of a cache that the caller owns: the graph updates the cache, and masks what lies beyond.
#include "allocations.h"
#include "check.h"
#include "tenon/tenon.h"

namespace {

constexpr std::int64_t kHeads = 2, kDepth = 16, kMost = 64, kTokens = 40;

}  // namespace

int main(int argc, char** argv) {
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");  // or "cuda"
  using tenon::DType;
  tenon::Graph g("decode");
  const tenon::Tensor q = g.input("q", DType::f32, {kHeads, 1, kDepth}),
                      k = g.input("k", DType::f32, {kHeads, 1, kDepth});
  const tenon::Tensor v = g.input("v", DType::f32, {kHeads, 1, kDepth});
  const tenon::Tensor position = g.input("position", DType::i64, {});  // of this token
  const tenon::Tensor keys = g.input("keys", DType::f32, {kHeads, kMost, kDepth});
  const tenon::Tensor values = g.input("values", DType::f32, {kHeads, kMost, kDepth});
  const tenon::Tensor places = iota(g, {kMost}, 0);
  const tenon::Tensor here = (places == position)[{tenon::Range{}, tenon::newaxis}];
  const tenon::Tensor all_keys = where(here, k, keys), all_values = where(here, v, values);
  const tenon::Tensor scores = where(places <= position, tenon::einsum("hqd,hkd->hqk", {q, all_keys}) / 4.0, -INFINITY);
  g.update(keys, all_keys);
  g.update(values, all_values);
  g.output("y", matmul(softmax(scores), all_values));
  const tenon::Executable step = tenon::compile(g, device);

  std::vector<tenon::DeviceArray> state;  // q, k, v of a token, its position, the caches
  for (int part = 0; part < 3; ++part) state.push_back(device.empty({kHeads, 1, kDepth}));
  state.push_back(device.empty({}, DType::i64));
  for (int part = 0; part < 2; ++part) state.push_back(device.zeros({kHeads, kMost, kDepth}));
  const tenon::DeviceArray y = device.empty({kHeads, 1, kDepth});
  const std::vector<tenon::Buffer> inputs = buffers_of(state), outputs = {buffer_of(y)};
  tenon::Array token[3], result;

  std::vector<std::vector<double>> past_k, past_v;  // by token
  bool right = true;
  long in_loop = 0;
  for (std::int64_t t = 0; t < kTokens && right; ++t) {
    for (int part = 0; part < 3; ++part) token[part] = tenon::Array::normal({kHeads, 1, kDepth}, 3 * t + part);
    const tenon::Array at = tenon::Array::from(&t, {});
    const long before = allocations;
    for (std::size_t part = 0; part < 3; ++part) state[part].copy_from(token[part]);
    state[3].copy_from(at);
    step.run(inputs, outputs);
    y.copy_to(result);
    if (t > 0) in_loop += allocations - before;

    past_k.push_back(token[1].to_doubles());
    past_v.push_back(token[2].to_doubles());
    const std::vector<double> query = token[0].to_doubles();
    std::vector<double> expected(kHeads * kDepth);
    for (std::size_t head = 0; head < kHeads; ++head) {
      double sum = 0;
      for (std::size_t past = 0; past < past_k.size(); ++past) {
        double score = 0;
        for (std::size_t d = 0; d < kDepth; ++d)
          score += query[head * kDepth + d] * past_k[past][head * kDepth + d] / 4;
        const double weight = std::exp(score);
        sum += weight;
        for (std::size_t d = 0; d < kDepth; ++d)
          expected[head * kDepth + d] += weight * past_v[past][head * kDepth + d];
      }
      for (std::size_t d = 0; d < kDepth; ++d) expected[head * kDepth + d] /= sum;
    }
    right = close("y", result.to_doubles(), expected, 1e-4);
  }
  std::printf("allocations in %ld steps: %ld\n", static_cast<long>(kTokens - 1), in_loop);
  for (const tenon::UpdateInfo& update : step.updates())
    std::printf("%s: %s\n", update.input.c_str(), update.copied.empty() ? "in place" : update.copied.c_str());
  return right && in_loop == 0 ? 0 : 1;
}
