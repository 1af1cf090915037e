// HostArray: bytes in storage format, seen as numbers.
#include <fmt/format.h>

#include <cstring>
#include <new>
#include <utility>

#include "ir/graph/check.h"
#include "ir/graph/sizes.h"
#include "ir/interpret/interpret.h"
#include "ir/ops/formats.h"

namespace tenon::ir {
namespace {

std::uint64_t load_bits(const HostArray& array, std::int64_t i) {
  const auto size = static_cast<std::size_t>(size_of(array.dtype));
  std::uint64_t bits = 0;  // little-endian hosts only, as every target of Tenon is
  std::memcpy(&bits, array.bytes.data() + static_cast<std::size_t>(i) * size, size);
  return bits;
}

void store_bits(HostArray& array, std::int64_t i, std::uint64_t bits) {
  const auto size = static_cast<std::size_t>(size_of(array.dtype));
  std::memcpy(array.bytes.data() + static_cast<std::size_t>(i) * size, &bits, size);
}

}  // namespace

std::optional<std::int64_t> byte_count(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = size_of(dtype);
  bool fits = true, empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
    fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes) && bytes <= kMaxValueBytes;
  }
  return empty ? std::optional<std::int64_t>(0) : fits ? std::optional(bytes) : std::nullopt;
}

HostArray empty_array(DType dtype, std::vector<std::int64_t> shape) {
  for (const std::int64_t extent : shape) TENON_CHECK(extent >= 0, "negative extent");
  HostArray array{dtype, std::move(shape), {}};
  try {
    const std::optional<std::int64_t> bytes = byte_count(dtype, array.shape);
    if (!bytes) throw std::bad_alloc();
    array.bytes = Bytes::uninitialised(static_cast<std::size_t>(*bytes));
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw Error(ErrorKind::resource,
                fmt::format("an array of {}[{}] does not fit in memory", name_of(dtype), fmt::join(array.shape, ", ")),
                {}, "use smaller extents");
  }
  return array;
}

HostArray make_array(DType dtype, std::vector<std::int64_t> shape) {
  HostArray array = empty_array(dtype, std::move(shape));
  if (!array.bytes.empty()) std::memset(array.bytes.data(), 0, array.bytes.size());
  return array;
}

std::int64_t element_count(const HostArray& array) {
  return static_cast<std::int64_t>(array.bytes.size()) / size_of(array.dtype);
}

double get_real(const HostArray& array, std::int64_t i) {
  return is_real(array.dtype) ? decode_real(array.dtype, load_bits(array, i))
                              : static_cast<double>(get_integer(array, i));
}

std::int64_t get_integer(const HostArray& array, std::int64_t i) {
  TENON_CHECK(!is_real(array.dtype), "get_integer of reals");
  return decode_integer(array.dtype, load_bits(array, i));
}

void set_real(HostArray& array, std::int64_t i, double value) {
  store_bits(array, i,
             is_real(array.dtype) ? encode_real(array.dtype, value)
                                  : static_cast<std::uint64_t>(integer_from_real(array.dtype, value)));
}

void set_integer(HostArray& array, std::int64_t i, std::int64_t value) {
  store_bits(array, i,
             is_real(array.dtype) ? encode_real(array.dtype, real_from_integer(array.dtype, value))
                                  : static_cast<std::uint64_t>(integer_from_integer(array.dtype, value)));
}

}  // namespace tenon::ir
