// See sketch.h.
#include "tools/sweep/sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::tools::sweep {
namespace {

constexpr std::int64_t kUsual[] = {8,     16,    32,    48,    64,    80,    96,    128,    160,   192,
                                   256,   320,   384,   512,   640,   768,   1000,  1024,   1280,  1536,
                                   1920,  2048,  2560,  3072,  4096,  5120,  6144,  8192,   11008, 12288,
                                   14336, 16384, 28672, 32000, 32768, 50257, 65536, 128256, 131072};
constexpr std::int64_t kChannels[] = {1, 3, 8, 16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 2048};
constexpr std::int64_t kSides[] = {7,  8,   14,  16,  20,  28,  32,  38,  56,  64,  75,
                                   96, 112, 128, 150, 224, 256, 299, 384, 512, 1024};

// One of an ascending list that is at most `most`, `share` of the way up.
template <std::size_t count>
std::int64_t one_of(const std::int64_t (&list)[count], double most, double share) {
  const auto end = std::upper_bound(std::begin(list), std::end(list), static_cast<std::int64_t>(most));
  const auto fitting = static_cast<double>(end - std::begin(list));
  return fitting == 0 ? std::max<std::int64_t>(1, std::llround(most)) : list[static_cast<std::size_t>(share * fitting)];
}

}  // namespace

double Sketch::unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

int Sketch::uniform(int low, int high) { return low + static_cast<int>(unit() * (high - low + 1)); }

std::size_t Sketch::weighted(const std::vector<double>& weights) {
  double rest = unit() * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i + 1 < weights.size(); ++i)
    if ((rest -= weights[i]) < 0) return i;
  return weights.size() - 1;
}

std::int64_t Sketch::extent(double size) {
  const std::size_t kind = weighted({3, 2, 2, 1, 2});
  const std::int64_t plain = std::max<std::int64_t>(1, std::llround(size));
  if (plain < 4) return plain;
  switch (kind) {
    case 0: return std::int64_t{1} << std::lround(std::log2(size));
    case 1: return std::max<std::int64_t>(1, plain / 8) * 8;
    case 2: return plain / 2 * 2 + 1;
    case 3: return (std::int64_t{1} << std::lround(std::log2(size))) + 1;
    default: return plain;
  }
}

std::int64_t Sketch::usual_extent(double most) { return one_of(kUsual, most, unit()); }

std::int64_t Sketch::any_extent(double most) {
  const bool usual = chance(0.5);
  const double share = unit();
  const std::int64_t any = extent(std::exp2(share * std::log2(std::max(1.0, most))));
  return usual ? one_of(kUsual, most, share) : std::min(any, std::max<std::int64_t>(1, std::llround(most)));
}

Ints Sketch::split(double elements, int rank) {
  std::vector<double> parts(static_cast<std::size_t>(rank));
  const bool even = chance(0.5);  // no axis much shorter than the others
  for (double& part : parts) {
    const bool one = chance(0.06);
    const double first = -std::log(1 - unit()), second = -std::log(1 - unit());
    part = one ? 0 : even ? first + second + 0.3 : first;
  }
  const double sum = std::max(1e-9, std::accumulate(parts.begin(), parts.end(), 0.0));
  const auto rest = static_cast<std::size_t>(uniform(0, rank - 1));
  Ints shape(static_cast<std::size_t>(rank), 1);
  double left = elements;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t size = extent(std::pow(std::max(1.0, elements), parts[i] / sum));
    if (i == rest) continue;
    shape[i] = size;
    left /= static_cast<double>(size);
  }
  shape[rest] = extent(std::max(1.0, left));
  return shape;
}

int Sketch::rank() { return 1 + static_cast<int>(weighted({10, 35, 22, 20, 7, 6})); }

Ints Sketch::rows(std::int64_t row, int rank) {
  if (rank == 1) return {extent(elements_)};
  Ints shape = split(std::max(1.0, elements_ / static_cast<double>(row)), rank - 1);
  shape.push_back(row);
  return shape;
}

Ints Sketch::images(int space) {
  const double share = unit();
  const bool square = chance(0.8);
  const double most = std::pow(std::max(1.0, elements_), 0.8 / space);
  Ints sides;
  for (int i = 0; i < space; ++i) {
    const std::int64_t other = any_extent(most);
    sides.push_back(square ? one_of(kSides, most, share) : other);
  }
  const double left = std::max(1.0, elements_ / static_cast<double>(count(sides)));
  const double channel_share = unit();
  const std::int64_t any = any_extent(left);
  const std::int64_t channels = chance(0.7) ? one_of(kChannels, left, channel_share) : any;
  Ints shape{extent(std::max(1.0, left / static_cast<double>(channels))), channels};
  shape.insert(shape.end(), sides.begin(), sides.end());
  return shape;
}

Ints Sketch::shape(int rank) {
  const std::size_t kind = weighted({5, 3, 2});
  if (kind == 1 && rank > 1) return rows(usual_extent(elements_), rank);
  if (kind == 2 && rank > 2 && rank < 6) return images(rank - 2);
  return split(elements_, rank);
}

Ints Sketch::axes(int rank) {
  Ints found;
  const std::int64_t one = uniform(0, rank - 1);
  const std::size_t kind = weighted({4, 3, 3, 1});
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const bool drawn = chance(0.5);
    const bool chosen = kind == 0   ? axis == rank - 1  // the last
                        : kind == 1 ? axis == one       // any one
                        : kind == 2 ? drawn || axis == one
                                    : true;
    if (chosen) found.push_back(axis);
  }
  return found;
}

Ints Sketch::permutation(int rank) {
  Ints perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  if (chance(0.5) && rank > 1) {  // two axes change places
    const auto one = static_cast<std::size_t>(uniform(0, rank - 1));
    std::swap(perm[one], perm[(one + static_cast<std::size_t>(uniform(1, rank - 1))) % perm.size()]);
    return perm;
  }
  for (std::size_t i = perm.size(); i > 1; --i)
    std::swap(perm[i - 1], perm[static_cast<std::size_t>(uniform(0, static_cast<int>(i) - 1))]);
  return perm;
}

DType Sketch::real() { return std::vector{DType::f32, DType::bf16, DType::f16, DType::f64}[weighted({40, 38, 16, 6})]; }

DType Sketch::any_dtype() {
  const DType number = real();
  const std::size_t integer = weighted({84, 6, 4, 2, 2, 2});
  return std::vector{number, DType::i32, DType::u8, DType::i8, DType::i64, DType::i16}[integer];
}

Tensor Sketch::input(DType dtype, const Ints& shape) {
  return graph_.input(fmt::format("x{}", graph_.inputs().size()), dtype, dims(shape));
}

Tensor Sketch::bias(DType dtype, const Ints& shape) {
  const auto rank = static_cast<int>(shape.size());
  const std::size_t kind = weighted({5, 3, 2});
  const Ints kept = axes(rank);
  if (kind == 0) return input(dtype, {shape.back()});
  if (kind == 1 && rank > 2) {
    Ints channels(shape.begin() + 1, shape.end());
    return input(dtype, only(channels, {0}));
  }
  return input(dtype, only(shape, kept));
}

void Sketch::output(const Tensor& value) { graph_.output(fmt::format("y{}", graph_.outputs().size()), value); }

Shape dims(const Ints& extents) { return {extents.begin(), extents.end()}; }

Ints extents(const Tensor& tensor) {
  Ints found;
  for (const Dim& extent : tensor.shape()) found.push_back(extent.constant());
  return found;
}

Tensor as(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

std::int64_t count(const Ints& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

Ints without(Ints shape, const Ints& axes) {
  for (const std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = 1;
  return shape;
}

Ints only(Ints shape, const Ints& axes) {
  Ints kept(shape.size(), 1);
  for (const std::int64_t axis : axes) kept[static_cast<std::size_t>(axis)] = shape[static_cast<std::size_t>(axis)];
  return kept;
}

}  // namespace tenon::tools::sweep
