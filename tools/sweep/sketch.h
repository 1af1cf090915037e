// What every drawing of a sweep works with: the graph so far, random numbers, and extents, dtypes and operands such as
// people write. A drawing aims at `elements` of its largest tensor; all that it decides at random but the extents is
// the same at any aim.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tenon/graph.h"
#include "tenon/ops.h"

namespace tenon::tools::sweep {

using Ints = std::vector<std::int64_t>;

class Sketch {
 public:
  Sketch(const std::string& name, std::uint64_t seed, double elements)
      : graph_(name), engine_(seed), elements_(elements) {}

  const Graph& graph() const { return graph_; }

  // ---- randomness ----
  double unit();  ///< in [0, 1)
  int uniform(int low, int high);
  bool chance(double probability) { return unit() < probability; }
  template <typename T>
  T pick(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(uniform(0, static_cast<int>(items.size()) - 1))];
  }
  /// The position of a weight, by their shares.
  std::size_t weighted(const std::vector<double>& weights);

  // ---- extents ----
  /// Elements to aim at.
  double elements() const { return elements_; }
  /// Near `size`: a power of two, whole vectors, odd, or any.
  std::int64_t extent(double size);
  /// Such as models have, up to `most`; at least 1.
  std::int64_t usual_extent(double most);
  /// Log-uniform from 1 to `most`, or usual.
  std::int64_t any_extent(double most);
  /// `rank` axes of about `elements` in all, of any proportions.
  Ints split(double elements, int rank);
  /// 1 to 6, mostly 2 to 4.
  int rank();
  /// elements() as a shape of any kind: anything, rows of a usual extent, or images.
  Ints shape() { return shape(rank()); }
  Ints shape(int rank);
  /// (…, row): elements() in all.
  Ints rows(std::int64_t row, int rank);
  /// (batch, channels, space…), `space` axes of one extent mostly.
  Ints images(int space);

  // ---- axes, of a shape of `rank` axes ----
  /// One or more, in order.
  Ints axes(int rank);
  Ints permutation(int rank);

  // ---- dtypes ----
  DType real();       ///< f32 and bf16 mostly, f16, f64
  DType any_dtype();  ///< real mostly; i32, u8, i8, i64, i16
  /// f32 for what is narrower, else the same.
  static DType wide(DType dtype) { return size_of(dtype) < 4 ? DType::f32 : dtype; }

  // ---- operands ----
  Tensor input(DType dtype, const Ints& shape);
  /// A new input whose shape broadcasts to `shape`: along the last axis, channels, or any axes.
  Tensor bias(DType dtype, const Ints& shape);
  void output(const Tensor& value);

 private:
  Graph graph_;
  std::mt19937_64 engine_;
  double elements_;
};

Shape dims(const Ints& extents);
Ints extents(const Tensor& tensor);
inline std::int64_t at(const Ints& shape, std::int64_t axis) { return shape[static_cast<std::size_t>(axis)]; }
/// A cast where one is needed.
Tensor as(const Tensor& x, DType dtype);
std::int64_t count(const Ints& extents);
/// `shape` with 1 at `axes`.
Ints without(Ints shape, const Ints& axes);
/// `shape` with 1 at all but `axes`.
Ints only(Ints shape, const Ints& axes);

}  // namespace tenon::tools::sweep
