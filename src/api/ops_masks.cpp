// Operators of tenon/ops.h that compare positions: tril, triu, one_hot; and outer, which is a product of views.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/api/recorder.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

using ir::Op;

constexpr std::int64_t kFar = std::int64_t{1} << 62;  // no position is as far from the diagonal

// Positions up to these are counted in 32 bits, with room for sums of two.
DType position_dtype(const Tensor& beside, const Shape& extents) {
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() / 4;
  const auto fits = [&](const Dim& extent) { return extent.bounds(src::symbols_of(beside)).max <= kLimit; };
  return std::all_of(extents.begin(), extents.end(), fits) ? DType::i32 : DType::i64;
}

Tensor positions(const Tensor& beside, const Shape& shape, DType dtype, const Location& at) {
  return src::record_source(beside, Op::iota, {{"shape", shape}, {"axis", std::int64_t{0}}, {"dtype", dtype}}, at);
}

enum class Triangle : std::uint8_t { lower, upper };

Tensor triangle(const std::string& name, const Operand& x, std::int64_t k, Triangle kept) {
  const Location& at = x.location();
  const Tensor& tensor = src::tensor_of(name, x);
  const Shape shape = tensor.shape();
  if (shape.size() < 2)
    throw Error(ErrorKind::type,
                fmt::format("{}: takes rank 2 or more, not {}{}", name, name_of(tensor.dtype()), str(shape)),
                src::place_of(at), "give it two axes, e.g. with broadcast_to");
  k = std::clamp(k, -kFar, kFar);
  const Dim rows = shape[shape.size() - 2], columns = shape.back();
  const DType index = position_dtype(tensor, {rows, columns, Dim(std::max(k, -k))});
  const Operand column(positions(tensor, {columns}, index, at), at);
  Operand diagonal(positions(tensor, {rows, 1}, index, at), at);
  if (k != 0) diagonal = Operand(add(diagonal, Operand(k, at)), at);
  const Tensor inside = kept == Triangle::lower ? less_equal(column, diagonal) : greater_equal(column, diagonal);
  return where({inside, at}, x, tensor.dtype() == DType::bool_ ? Operand(false, at) : Operand(0, at));
}

}  // namespace

Tensor tril(const Operand& x, std::int64_t k) { return triangle("tril", x, k, Triangle::lower); }
Tensor triu(const Operand& x, std::int64_t k) { return triangle("triu", x, k, Triangle::upper); }

Tensor one_hot(const Operand& indices, const Dim& classes, DType dtype) {
  const Location& at = indices.location();
  const Tensor& given = src::tensor_of("one_hot", indices);
  if (!is_integer(given.dtype()))
    throw Error(ErrorKind::type,
                fmt::format("one_hot: indices must be integers, not {}{}", name_of(given.dtype()), str(given.shape())),
                src::place_of(at), "cast them: cast(indices, dtype=i64)");
  const DType index = given.dtype() == DType::i64 ? DType::i64 : position_dtype(given, {classes});
  const Tensor wanted = given.dtype() == index ? given : cast(indices, index);
  const Tensor class_of_column = positions(given, {classes}, index, at);
  const Tensor hot = equal({expand_dims({wanted, at}, -1), at}, {class_of_column, at});
  return dtype == DType::bool_ ? hot : cast({hot, at}, dtype);
}

Tensor outer(const Operand& a, const Operand& b) {
  const auto flat = [](const Operand& x, std::size_t number) {
    if (!x.tensor()) return x;
    const Dim count = element_count(src::tensor_of("outer", x, number).shape());
    return Operand(reshape(x, number == 1 ? Shape{count, 1} : Shape{1, count}), x.location());
  };
  const Operand column = flat(a, 1), row = flat(b, 2);
  return mul(column, row);
}

}  // namespace tenon
