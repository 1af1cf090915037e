// Lesson 8: state, and the caller's own buffers. One AdamW step (Loshchilov and Hutter, 2019) reads four arrays and
// updates three of them in place, in one kernel. run() works on memory that the caller owns, on the device that the
// command names: "cpu" unless told otherwise, or "cuda".
#include "allocations.h"
#include "check.h"
#include "tenon/tenon.h"

int main(int argc, char** argv) {
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");  // or "cuda"
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kRate = 1e-3, kDecay = 0.01, kEps = 1e-8;
  tenon::Graph g("adamw");
  const tenon::Dim n = g.dim("n", {.min = 1});
  const tenon::Tensor param = g.input("param", tenon::DType::f32, {n}), grad = g.input("grad", tenon::DType::f32, {n});
  const tenon::Tensor m = g.input("m", tenon::DType::f32, {n}), v = g.input("v", tenon::DType::f32, {n});
  const tenon::Tensor m_next = kBeta1 * m + (1 - kBeta1) * grad;
  const tenon::Tensor v_next = kBeta2 * v + (1 - kBeta2) * grad * grad;
  g.update(param, param - kRate * (m_next / (sqrt(v_next) + kEps) + kDecay * param));
  g.update(m, m_next);
  g.update(v, v_next);
  const tenon::Executable step = tenon::compile(g, device);

  // Buffers are aligned to 16 bytes, dense, and do not overlap; shapes bind the symbols.
  constexpr std::int64_t kCount = 10007;
  std::vector<tenon::DeviceArray> arrays;
  for (std::int64_t i = 0; i < 4; ++i)  // v starts at zero
    arrays.push_back(i < 3 ? device.array(tenon::Array::normal({kCount}, i)) : device.zeros({kCount}));
  const auto values = [&](std::size_t i) { return arrays[i].to_host().to_doubles(); };
  const auto p = values(0), d = values(1), m0 = values(2);
  const std::vector<tenon::Buffer> buffers = buffers_of(arrays);
  step.run(buffers, {});

  std::vector<double> expected_param, expected_m, expected_v;
  for (std::size_t i = 0; i < p.size(); ++i) {
    expected_m.push_back(kBeta1 * m0[i] + (1 - kBeta1) * d[i]);
    expected_v.push_back((1 - kBeta2) * d[i] * d[i]);
    expected_param.push_back(p[i] - kRate * (expected_m[i] / (std::sqrt(expected_v[i]) + kEps) + kDecay * p[i]));
  }
  bool right = close("param", values(0), expected_param, 1e-4) && close("m", values(2), expected_m, 1e-6) &&
               close("v", values(3), expected_v, 1e-6);
  for (const tenon::UpdateInfo& update : step.updates({{"n", kCount}})) right = right && update.copied.empty();

  const long before = allocations;
  for (int i = 0; i < 100; ++i) step.run(buffers, {});
  const long in_loop = allocations - before;
  std::printf("allocations in 100 steps: %ld\n", in_loop);
  return right && in_loop == 0 && step.stats().kernels == 1 ? 0 : 1;
}
