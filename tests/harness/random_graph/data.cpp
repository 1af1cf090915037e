// Data for random graphs: of ordinary size, of any size and sign, whole, or full of special values.
#include <algorithm>
#include <cmath>
#include <random>

#include "ir/ops/formats.h"
#include "tests/harness/random_graph.h"

namespace tenon::test {
namespace {

enum class Values { ordinary, some_special, many_special, any_size, large, whole };

Values draw_values(std::mt19937_64& engine) {
  constexpr double kShares[] = {60, 9, 4, 10, 8, 9};
  return static_cast<Values>(std::discrete_distribution<int>(std::begin(kShares), std::end(kShares))(engine));
}

double special(std::mt19937_64& engine) {
  constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e-30, 65504.0, 1e-7, 0.5};
  return kSpecial[std::uniform_int_distribution<std::size_t>(0, std::size(kSpecial) - 1)(engine)];
}

// 1e-30 to 1e30, as far as the dtype goes, and of both signs.
double any_size(std::mt19937_64& engine, DType dtype) {
  const ir::RealFormat format = ir::real_format(dtype);
  const double top = std::min(30.0, std::floor(std::log10(format.largest)));
  const double bottom = std::max(-30.0, std::ceil(std::log10(std::ldexp(1.0, format.min_exponent))));
  const double magnitude = std::pow(10.0, std::uniform_real_distribution<double>(bottom, top)(engine));
  return std::bernoulli_distribution(0.5)(engine) ? magnitude : -magnitude;
}

double random_real(std::mt19937_64& engine, Values values, DType dtype, double scale) {
  std::uniform_real_distribution<double> unit(0, 1);
  const double normal = std::normal_distribution<double>(0, 1)(engine);
  switch (values) {
    case Values::ordinary: return normal;
    case Values::some_special: return unit(engine) < 0.03 ? special(engine) : normal;
    case Values::many_special: return unit(engine) < 0.4 ? special(engine) : normal;
    case Values::any_size: return any_size(engine, dtype);
    case Values::large: return normal * scale;
    case Values::whole: return std::rint(2 * normal);
  }
  return normal;
}

}  // namespace

std::vector<ir::HostArray> random_inputs(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed) {
  std::mt19937_64 engine(seed ^ 0x9e3779b97f4a7c15ULL);
  const Values values = draw_values(engine);
  std::vector<ir::HostArray> arrays;
  for (ir::ValueId input : graph.inputs) {
    const ir::Type& type = graph.type(input);
    std::vector<std::int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(extent.evaluate(bindings));
    ir::HostArray array = ir::make_array(type.dtype, shape);
    const double scale = std::ldexp(1.0, std::uniform_int_distribution<int>(0, 40)(engine));
    for (std::int64_t i = 0; i < ir::element_count(array); ++i) {
      if (is_real(type.dtype)) {
        ir::set_real(array, i, random_real(engine, values, type.dtype, scale));
      } else {
        const int low = type.dtype == DType::u8 || type.dtype == DType::bool_ ? 0 : -9;
        ir::set_integer(array, i, std::uniform_int_distribution<int>(low, type.dtype == DType::bool_ ? 1 : 12)(engine));
      }
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace tenon::test
