// Lesson 4: matrix products. What follows a product (bias, activation, residual) is done on its tiles before they are
// stored, so this network is two kernels, one for each product.
#include "check.h"
#include "tenon/tenon.h"

namespace {

// y = x @ w.T + b, row by row.
std::vector<double> linear_loop(const std::vector<double>& x, const std::vector<double>& w,
                                const std::vector<double>& b) {
  const std::size_t out = b.size(), in = w.size() / out;
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size() / in; ++row)
    for (std::size_t column = 0; column < out; ++column) {
      double sum = b[column];
      for (std::size_t i = 0; i < in; ++i) sum += x[row * in + i] * w[column * in + i];
      y.push_back(sum);
    }
  return y;
}

}  // namespace

int main() {
  constexpr std::int64_t kRows = 33, kWidth = 64, kHidden = 160;
  tenon::Graph g("mlp");
  const auto weights = [&](const char* name, const tenon::Shape& shape) {
    return g.input(name, tenon::DType::f32, shape);
  };
  const tenon::Tensor x = weights("x", {kRows, kWidth});
  const tenon::Tensor w1 = weights("w1", {kHidden, kWidth}), b1 = weights("b1", {kHidden});
  const tenon::Tensor w2 = weights("w2", {kWidth, kHidden}), b2 = weights("b2", {kWidth});
  g.output("y", x + linear(relu(linear(x, w1, b1)), w2, b2));

  const tenon::Executable run = tenon::compile(g);
  std::vector<tenon::Array> inputs;
  for (const tenon::Port& input : g.inputs()) {
    std::vector<std::int64_t> shape;
    for (const tenon::Dim& extent : input.value.shape()) shape.push_back(extent.constant());
    inputs.push_back(tenon::Array::normal(shape, static_cast<std::int64_t>(inputs.size())));
  }
  const std::vector<float> y = run(inputs)[0].to<float>();

  std::vector<double> hidden = linear_loop(inputs[0].to_doubles(), inputs[1].to_doubles(), inputs[2].to_doubles());
  for (double& value : hidden) value = std::fmax(value, 0);
  std::vector<double> expected = linear_loop(hidden, inputs[3].to_doubles(), inputs[4].to_doubles());
  const std::vector<double> residual = inputs[0].to_doubles();
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += residual[i];
  return close("mlp", y, expected, 1e-4) && run.stats().kernels == 2 ? 0 : 1;
}
