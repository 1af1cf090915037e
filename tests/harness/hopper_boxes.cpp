// See hopper_boxes.h. CUDA C++ Programming Guide, "Tensor Memory Accelerator"; CUDA Driver API, cuTensorMapEncodeTiled.
#include "tests/harness/hopper_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace tenon::test {
namespace {

constexpr std::size_t kMostDimensions = 5;

// What the 128 bytes hold here.
struct Map {
  const std::byte* base;
  std::int64_t extents[kMostDimensions];
  std::int64_t strides[kMostDimensions];  // bytes
  std::int16_t box[kMostDimensions];
  std::int16_t rank, element_bytes, swizzle_bytes;
};
static_assert(sizeof(Map) <= sizeof(runtime::EncodedTensorMap::bytes));

Map map_of(const void* bytes) {
  Map map;
  std::memcpy(&map, bytes, sizeof(map));
  return map;
}

void require(bool holds, const char* rule) {
  if (!holds) throw std::runtime_error(fmt::format("tensor map: {}", rule));
}

void check(const Map& map) {
  require(map.rank >= 1, "it has a dimension");
  require(map.swizzle_bytes == 128 || map.swizzle_bytes == 64, "only lines of 128 and of 64 bytes are known here");
  require(map.box[0] * map.element_bytes <= map.swizzle_bytes, "a line of a box is no longer than its swizzle");
  require(map.box[0] * map.element_bytes % 16 == 0, "a line of a box is a multiple of 16 bytes");
  for (int i = 0; i < map.rank; ++i) {
    require(map.box[i] >= 1 && map.box[i] <= 256, "a box has up to 256 elements along a dimension");
    require(map.extents[i] >= 1 && map.extents[i] <= std::int64_t{1} << 32, "a dimension has up to 2^32 elements");
    require(i == 0 || (map.strides[i] % 16 == 0 && map.strides[i] >= 0 && map.strides[i] < std::int64_t{1} << 40),
            "strides are multiples of 16 bytes");
  }
}

}  // namespace

runtime::EncodedTensorMap encode_on_host(const codegen::TensorMap& map, const Bindings& bindings) {
  require(map.extents.size() <= kMostDimensions && map.box.size() == map.extents.size() &&
              map.strides.size() + 1 == map.extents.size(),
          "it has up to five dimensions, and a stride less");
  Map host = {};
  host.rank = static_cast<std::int16_t>(map.extents.size());
  host.element_bytes = static_cast<std::int16_t>(size_of(map.dtype));
  host.swizzle_bytes = static_cast<std::int16_t>(map.swizzle_bytes);
  for (std::size_t i = 0; i < map.extents.size(); ++i) {
    host.extents[i] = std::max<std::int64_t>(1, map.extents[i].evaluate(bindings));
    host.strides[i] = i == 0 ? host.element_bytes : map.strides[i - 1].evaluate(bindings) * host.element_bytes;
    host.box[i] = static_cast<std::int16_t>(map.box[i]);
  }
  check(host);
  runtime::EncodedTensorMap encoded;
  std::memcpy(encoded.bytes.data(), &host, sizeof(host));
  encoded.pointer = static_cast<std::size_t>(map.pointer);
  encoded.offset = map.offset.evaluate(bindings) * host.element_bytes;
  return encoded;
}

runtime::EncodedTensorMap at_address(const runtime::EncodedTensorMap& map, const void* address) {
  Map host = map_of(map.bytes.data());
  host.base = static_cast<const std::byte*>(address);
  require(reinterpret_cast<std::uintptr_t>(address) % 16 == 0, "the tensor begins at a multiple of 16 bytes");
  runtime::EncodedTensorMap result = map;
  std::memcpy(result.bytes.data(), &host, sizeof(host));
  return result;
}

unsigned box_bytes(const void* bytes) {
  const Map map = map_of(bytes);
  int elements = map.element_bytes;
  for (int i = 0; i < map.rank; ++i) elements *= map.box[i];
  return static_cast<unsigned>(elements);
}

namespace {

// Calls visit(place in shared memory, place in the tensor, whether it is there) for each element of a box.
template <class Visit>
void each_element(const Map& map, unsigned address, const std::array<int, 4>& at, Visit visit) {
  int count = 1;
  for (int i = 0; i < map.rank; ++i) count *= map.box[i];
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    const std::byte* there = map.base;
    bool inside = true;
    unsigned rest = i;
    for (int d = 0; d < map.rank; ++d) {
      const auto extent = static_cast<unsigned>(map.box[d]);
      const std::int64_t x = at[static_cast<std::size_t>(d)] + static_cast<std::int64_t>(rest % extent);
      rest /= extent;
      inside = inside && x >= 0 && x < map.extents[d];
      there += x * map.strides[d];
    }
    const unsigned straight = address + i * static_cast<unsigned>(map.element_bytes);
    visit(straight ^ (straight >> 7 & (static_cast<unsigned>(map.swizzle_bytes) / 16 - 1)) << 4, there, inside);
  }
}

}  // namespace

void write_box(SharedMemory& memory, unsigned address, const void* bytes, const std::array<int, 4>& at) {
  const Map map = map_of(bytes);
  const auto size = static_cast<std::size_t>(map.element_bytes);
  each_element(map, address, at, [&](unsigned place, const std::byte* from, bool inside) {
    if (inside) {
      std::memcpy(memory.at(place), from, size);
    } else {
      std::memset(memory.at(place), 0, size);
    }
  });
}

std::string read_box(SharedMemory& memory, unsigned address, const void* bytes, const std::array<int, 4>& at,
                     std::uint32_t asked) {
  const Map map = map_of(bytes);
  std::string why_not;
  each_element(map, address, at, [&](unsigned place, const std::byte* to, bool inside) {
    if (!inside || !why_not.empty()) return;
    if (!memory.readable(place)) {
      why_not = "a box that leaves: " + memory.why_unreadable(place);
    } else if (memory.written_after(place, asked)) {
      why_not = fmt::format("a box at {} is written before it has left", address);
    }
    std::memcpy(const_cast<std::byte*>(to), memory.at(place), static_cast<std::size_t>(map.element_bytes));
  });
  return why_not;
}

}  // namespace tenon::test
