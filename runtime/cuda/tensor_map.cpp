// See tensor_map.h.
#include "runtime/cuda/tensor_map.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/graph/check.h"

namespace tenon::runtime::cuda {
namespace {

// Elements are only moved: a type of their size does.
TensorMapType type_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return TensorMapType::u8;
    case 2: return TensorMapType::u16;
    case 4: return TensorMapType::u32;
    default: return TensorMapType::u64;
  }
}

TensorMapSwizzle swizzle_of(int bytes) {
  switch (bytes) {
    case 0: return TensorMapSwizzle::none;
    case 32: return TensorMapSwizzle::bytes_32;
    case 64: return TensorMapSwizzle::bytes_64;
    case 128: return TensorMapSwizzle::bytes_128;
    default: break;
  }
  TENON_CHECK(false, "lines of a tensor map are swizzled by 32, 64 or 128 bytes");
  return TensorMapSwizzle::none;
}

// How much of memory comes to the second-level cache with a line of a box. Rows that begin on lines of 128 bytes bring
// their neighbours too, which the next step needs. Others lie across two lines, and would bring both lines' neighbours:
// of an H100's products of such rows, 8192 x 8192 x 8184 took 1.69 for 1.45 ms.
TensorMapL2Promotion promotion_of(const std::vector<std::uint64_t>& strides, std::int64_t offset) {
  constexpr std::uint64_t kLine = 128;
  auto lines = static_cast<std::uint64_t>(offset);
  for (const std::uint64_t bytes : strides) lines |= bytes;
  return lines % kLine == 0 ? TensorMapL2Promotion::bytes_256 : TensorMapL2Promotion::bytes_128;
}

}  // namespace

EncodedTensorMap encode(const Driver& driver, const codegen::TensorMap& map, const Bindings& bindings) {
  TENON_CHECK(
      !map.extents.empty() && map.strides.size() + 1 == map.extents.size() && map.box.size() == map.extents.size(),
      "a tensor map has a stride less than it has extents");
  const std::int64_t offset = map.offset.evaluate(bindings) * size_of(map.dtype);
  std::vector<std::uint64_t> extents, strides;
  for (const Dim& extent : map.extents)  // of none no box is asked for, but the driver takes no 0
    extents.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(1, extent.evaluate(bindings))));
  for (const Dim& stride : map.strides)
    strides.push_back(static_cast<std::uint64_t>(stride.evaluate(bindings) * size_of(map.dtype)));
  const std::vector<std::uint32_t> box(map.box.begin(), map.box.end()), steps(map.box.size(), 1);
  void* const any_address = reinterpret_cast<void*>(std::uintptr_t{1} << 16);  // each run has its own
  TensorMap encoded;
  check(driver,
        driver.tensor_map_encode_tiled(&encoded, type_of(map.dtype), static_cast<std::uint32_t>(extents.size()),
                                       any_address, extents.data(), strides.data(), box.data(), steps.data(),
                                       TensorMapInterleave::none, swizzle_of(map.swizzle_bytes),
                                       promotion_of(strides, offset), TensorMapFill::zero),
        "describing a box of an operand");
  EncodedTensorMap result;
  static_assert(sizeof(encoded) == sizeof(result.bytes));
  std::memcpy(result.bytes.data(), &encoded, sizeof(encoded));
  result.pointer = static_cast<std::size_t>(map.pointer);
  result.offset = offset;
  return result;
}

TensorMap at_address(const Driver& driver, const EncodedTensorMap& encoded, void* address) {
  TensorMap map;
  std::memcpy(&map, encoded.bytes.data(), sizeof(map));
  check(driver, driver.tensor_map_replace_address(&map, address), "describing a box of an operand");
  return map;
}

}  // namespace tenon::runtime::cuda
