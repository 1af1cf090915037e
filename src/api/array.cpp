// Array's conveniences, over the interpreter's host arrays.
#include "tenon/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/graph/build.h"
#include "ir/graph/sizes.h"
#include "ir/interpret/interpret.h"
#include "src/api/host_array.h"
#include "tenon/error.h"

namespace tenon {
namespace {

[[noreturn]] void refuse_shape(DType dtype, const std::vector<std::int64_t>& shape) {
  throw Error(ErrorKind::argument, fmt::format("no array has the shape {}[{}]", name_of(dtype), fmt::join(shape, ", ")),
              {}, "extents are 0 or more, and their product a number of bytes that there can be");
}

// With any values.
ir::HostArray blank(DType dtype, std::vector<std::int64_t> shape) {
  for (std::int64_t extent : shape)
    if (extent < 0)
      throw Error(ErrorKind::argument, fmt::format("an array of shape [{}]", fmt::join(shape, ", ")), {},
                  "extents are 0 or more");
  return ir::empty_array(dtype, std::move(shape));
}

// Nested brackets; axes of more than kShown elements show their ends.
class Printer {
 public:
  explicit Printer(const Array& array) : array_(array), host_(src::to_host(array)) {}

  std::string run() {
    axis(0, 0, array_.size());
    return std::move(text_);
  }

 private:
  static constexpr std::int64_t kShown = 8, kEnds = 3;

  void axis(std::size_t depth, std::int64_t begin, std::int64_t count) {
    if (depth == array_.shape.size()) return element(begin);
    const std::int64_t extent = array_.shape[depth];
    const std::int64_t inner = extent == 0 ? 0 : count / extent;
    text_ += '[';
    for (std::int64_t i = 0; i < extent; ++i) {
      if (i > 0) separator(depth);
      if (extent > kShown && i == kEnds) {
        text_ += "…";
        i = extent - kEnds - 1;
        continue;
      }
      axis(depth + 1, begin + i * inner, inner);
    }
    text_ += ']';
  }

  void separator(std::size_t depth) {
    const bool innermost = depth + 1 == array_.shape.size();
    text_ += innermost ? ", " : ",\n" + std::string(depth + 1, ' ');
  }

  void element(std::int64_t i) {
    if (array_.dtype == DType::bool_)
      text_ += ir::get_integer(host_, i) ? "true" : "false";
    else if (is_integer(array_.dtype))
      text_ += std::to_string(ir::get_integer(host_, i));
    else
      text_ += fmt::format("{:.6g}", ir::get_real(host_, i));
  }

  const Array& array_;
  ir::HostArray host_;
  std::string text_;
};

}  // namespace

namespace src {

void check_bytes(const Array& array) {
  const auto bytes = ir::byte_count(array.dtype, array.shape);
  if (!bytes) refuse_shape(array.dtype, array.shape);
  const auto wanted = static_cast<std::size_t>(*bytes);
  if (array.bytes.size() != wanted)
    throw Error(ErrorKind::argument,
                fmt::format("an array of {}[{}] has {} bytes, not {}", name_of(array.dtype),
                            fmt::join(array.shape, ", "), array.bytes.size(), wanted),
                {}, "make it with Array::from or Array::zeros");
}

ir::HostArray to_host(const Array& array) {
  check_bytes(array);
  return {array.dtype, array.shape, array.bytes};
}

Array from_host(ir::HostArray array) { return {array.dtype, std::move(array.shape), std::move(array.bytes)}; }

}  // namespace src

Array Array::from(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  return copy_of(DType::f32, values.data(), values.size(), std::move(shape));
}

Array Array::from_bytes(std::span<const std::byte> bytes, std::vector<std::int64_t> shape, DType dtype) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  if (bytes.size() % size != 0)
    throw Error(ErrorKind::argument,
                fmt::format("{} bytes are no whole number of {} values", bytes.size(), name_of(dtype)), {},
                fmt::format("give {} for each", size));
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; });
  if (dtype == DType::bool_ && wrong != bytes.end())
    throw Error(ErrorKind::argument, fmt::format("bool {} is {}", wrong - bytes.begin(), std::to_integer<int>(*wrong)),
                {}, "bools are 0 or 1");
  return copy_of(dtype, bytes.data(), bytes.size() / size, std::move(shape));
}

Array Array::zeros(std::vector<std::int64_t> shape, DType dtype) {
  Array array = empty(std::move(shape), dtype);
  std::fill(array.bytes.begin(), array.bytes.end(), std::byte{});
  return array;
}

Array Array::empty(std::vector<std::int64_t> shape, DType dtype) {
  return src::from_host(blank(dtype, std::move(shape)));
}

Array Array::normal(std::vector<std::int64_t> shape, std::int64_t seed, DType dtype) {
  ir::Graph graph;
  const ir::ValueId key = ir::append_literal(graph, seed, DType::i64);
  const std::vector<Dim> extents(shape.begin(), shape.end());
  ir::append_output(graph, ir::append_one(graph, ir::Op::random_normal, {key}, {{"shape", extents}, {"dtype", dtype}}),
                    "x");
  return src::from_host(std::move(ir::interpret(graph, {}).front()));
}

std::int64_t Array::size() const {
  const auto count = ir::byte_count(DType::u8, shape);
  if (!count) refuse_shape(dtype, shape);
  return *count;
}

Array Array::cast(DType to) const {
  const ir::HostArray from = src::to_host(*this);
  ir::HostArray result = blank(to, shape);
  for (std::int64_t i = 0; i < size(); ++i) {
    if (is_real(dtype))
      ir::set_real(result, i, ir::get_real(from, i));
    else
      ir::set_integer(result, i, ir::get_integer(from, i));
  }
  return src::from_host(std::move(result));
}

std::vector<double> Array::to_doubles() const {
  const ir::HostArray host = src::to_host(*this);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(size()));
  for (std::int64_t i = 0; i < size(); ++i) values.push_back(ir::get_real(host, i));
  return values;
}

Array Array::copy_of(DType dtype, const void* elements, std::size_t count, std::vector<std::int64_t> shape) {
  Array array = empty(std::move(shape), dtype);
  if (array.bytes.size() != count * static_cast<std::size_t>(size_of(dtype)))
    throw Error(ErrorKind::argument,
                fmt::format("{} values for an array of {}[{}]", count, name_of(dtype), fmt::join(array.shape, ", ")),
                {}, fmt::format("give {} values", array.size()));
  if (count > 0) std::memcpy(array.bytes.data(), elements, array.bytes.size());
  return array;
}

Array Array::copy_all(DType dtype, const void* elements, std::vector<std::int64_t> shape) {
  Array array = empty(std::move(shape), dtype);
  if (array.bytes.empty()) return array;
  if (elements == nullptr)
    throw Error(ErrorKind::argument,
                fmt::format("no values for an array of {}[{}]", name_of(dtype), fmt::join(array.shape, ", ")), {},
                "give a pointer to as many as the shape has");
  std::memcpy(array.bytes.data(), elements, array.bytes.size());
  return array;
}

void Array::copy_to(DType wanted, void* elements) const {
  check(wanted);
  if (!bytes.empty()) std::memcpy(elements, bytes.data(), bytes.size());
}

void Array::check(DType wanted) const {
  if (wanted != dtype)
    throw Error(ErrorKind::argument, fmt::format("the array is {}, not {}", name_of(dtype), name_of(wanted)), {},
                fmt::format("convert it first: cast(DType::{})", wanted == DType::bool_ ? "bool_" : name_of(wanted)));
  src::check_bytes(*this);
}

void Array::check_rank(std::size_t rank) const {
  if (rank != shape.size())
    throw Error(
        ErrorKind::argument,
        fmt::format("the array {}[{}] has rank {}, not {}", name_of(dtype), fmt::join(shape, ", "), shape.size(), rank),
        {}, fmt::format("ask for a view of rank {}", shape.size()));
}

void Array::check_single() const {
  if (size() != 1)
    throw Error(
        ErrorKind::argument,
        fmt::format("the array {}[{}] has {} elements, not one", name_of(dtype), fmt::join(shape, ", "), size()), {},
        "take them with data() or to()");
}

std::string str(const Array& array) {
  return fmt::format("{}[{}]\n{}", name_of(array.dtype), fmt::join(array.shape, ", "), Printer(array).run());
}

}  // namespace tenon
