// Rules on shapes and axes that several ops share: broadcasting, axes, what every type must satisfy, literals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/graph/build.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;

std::string list_of(std::span<const Shape> shapes) {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == shapes.size() ? " and " : ", ") + str(shapes[i]);
  return text;
}

struct Limits {
  double largest;
  bool has_infinity;
};

Limits limits_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return {65504.0, true};
    case DType::bf16: return {0x1.fep127, true};
    case DType::f32: return {0x1.fffffep127, true};
    case DType::f8e4m3: return {448.0, false};
    case DType::f8e5m2: return {57344.0, true};
    case DType::f64:
    case DType::bool_:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8: return {std::numeric_limits<double>::max(), true};
  }
  return {};
}

double fit_real(double value, DType dtype) {
  const Limits limits = limits_of(dtype);
  const double magnitude = std::fabs(value);
  const bool fits = std::isinf(value) ? limits.has_infinity : !(magnitude > limits.largest);
  if (!fits)
    type_error(fmt::format("{} is out of range for {}", value, name_of(dtype)),
               fmt::format("the largest finite {} is {}", name_of(dtype), limits.largest));
  return value;
}

std::int64_t fit_integer(double value, DType dtype) {
  if (!(std::fabs(value) < 0x1p63) || value != std::trunc(value))
    type_error(fmt::format("{} is not representable as {}", value, name_of(dtype)),
               fmt::format("write an integer, or cast the other operand to a real dtype"));
  return static_cast<std::int64_t>(value);
}

std::int64_t fit_integer(std::int64_t value, DType dtype) {
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  if (bits == 64) return value;
  const std::int64_t low = dtype == DType::u8 ? 0 : -(std::int64_t{1} << (bits - 1));
  const std::int64_t high = dtype == DType::u8 ? 255 : (std::int64_t{1} << (bits - 1)) - 1;
  if (value < low || value > high)
    type_error(fmt::format("{} is out of range for {}", value, name_of(dtype)),
               fmt::format("{} holds {} to {}", name_of(dtype), low, high));
  return value;
}

}  // namespace

void type_error(const std::string& message, const std::string& remedy) {
  throw Error(ErrorKind::type, message, {}, remedy);
}

bool at_least(const Dim& dim, std::int64_t value, const Symbols& symbols) {
  if (dim.is_constant()) return dim.constant() >= value;
  return dim.bounds(symbols).min >= value;
}

void check_type(const Type& type, const Symbols& symbols) {
  if (type.shape.size() > static_cast<std::size_t>(kMaxRank))
    type_error(fmt::format("the result would have rank {}; the limit is {}", type.shape.size(), kMaxRank),
               "merge axes with reshape");
  std::int64_t count = 1;
  for (const Dim& extent : type.shape) {
    if (!at_least(extent, 0, symbols))
      type_error(
          fmt::format("extent {} of {} {} negative", extent.str(), str(type), extent.is_constant() ? "is" : "may be"),
          extent.is_constant() ? "extents are 0 or more" : "bound the symbols so that it cannot be");
    if (!extent.is_constant() || extent.is(0)) continue;
    if (__builtin_mul_overflow(count, extent.constant(), &count) || count > kMaxElements)
      type_error(fmt::format("{} has more than 2^62 elements", str(type)), "use smaller extents");
  }
}

Shape broadcast(std::span<const Shape> shapes) {
  std::size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Shape result(rank, Dim(1));
  for (const Shape& shape : shapes) {
    const std::size_t offset = rank - shape.size();
    for (std::size_t i = 0; i < shape.size(); ++i) {
      Dim& extent = result[offset + i];
      if (shape[i].is(1) || shape[i] == extent) continue;
      if (!extent.is(1)) {
        const bool symbolic = !shape[i].is_constant() || !extent.is_constant();
        type_error(fmt::format("shapes {} do not broadcast: axis {} has extents {} and {}", list_of(shapes),
                               static_cast<std::int64_t>(offset + i) - static_cast<std::int64_t>(rank), extent.str(),
                               shape[i].str()),
                   symbolic ? "use one symbol for both, or make one of them 1"
                            : "make them equal or one of them 1, e.g. with expand_dims or reshape");
      }
      extent = shape[i];
    }
  }
  return result;
}

Shape broadcast_types(std::span<const Type> types) {
  bool same = true;
  for (const Type& type : types) same = same && type.shape == types[0].shape;
  if (same) return types[0].shape;
  std::vector<Shape> shapes;
  for (const Type& type : types) shapes.push_back(type.shape);
  return broadcast(shapes);
}

int normalize_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    type_error(rank == 0 ? fmt::format("axis {} of a rank-0 operand", axis)
                         : fmt::format("axis {} is out of range for rank {}", axis, rank),
               rank == 0 ? "rank 0 has no axes; give the operand one with expand_dims"
                         : fmt::format("axes run from {} to {}", -rank, rank - 1));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> normalize_axes(const std::vector<std::int64_t>& axes, int rank) {
  std::vector<int> result;
  for (std::int64_t axis : axes) {
    result.push_back(normalize_axis(axis, rank));
    if (std::count(result.begin(), result.end(), result.back()) > 1)
      type_error(fmt::format("axis {} is named twice", axis), "name each axis once");
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<int> reduced_axes(const Node& node, int operand_rank) {
  if (node.attrs.has("axis")) return normalize_axes(node.attrs.get<std::vector<std::int64_t>>("axis"), operand_rank);
  std::vector<int> all;
  for (int axis = 0; axis < operand_rank; ++axis) all.push_back(axis);
  return all;
}

Scalar fit_scalar(const Scalar& value, DType dtype) {
  const auto* boolean = std::get_if<bool>(&value);
  if ((dtype == DType::bool_) != (boolean != nullptr))
    type_error(
        std::visit(
            [&](auto x) { return fmt::format("{} is {}, not {}", x, boolean ? "a bool" : "a number", name_of(dtype)); },
            value),
        boolean ? "write 1 or 0" : "write true or false");
  if (boolean) return value;
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (is_real(dtype)) return fit_real(integer ? static_cast<double>(*integer) : std::get<double>(value), dtype);
  return integer ? fit_integer(*integer, dtype) : fit_integer(fit_integer(std::get<double>(value), dtype), dtype);
}

}  // namespace tenon::ir
