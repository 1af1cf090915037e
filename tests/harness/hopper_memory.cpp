// See hopper_memory.h.
#include "tests/harness/hopper_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::test {
namespace {

constexpr std::size_t kAlignment = 1024;

}  // namespace

SharedMemory::SharedMemory(int bytes)
    : bytes_(static_cast<std::size_t>(bytes) + kAlignment, kPoison),
      size_(static_cast<std::size_t>(bytes)),
      cells_((static_cast<std::size_t>(bytes) + 1) / kCellBytes),
      unpublished_(1024) {
  aligned_ = (kAlignment - reinterpret_cast<std::uintptr_t>(bytes_.data()) % kAlignment) % kAlignment;
}

bool SharedMemory::contains(const void* place) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data() + aligned_);
  const auto at = reinterpret_cast<std::uintptr_t>(place);
  return at >= begin && at < begin + size_;
}

unsigned SharedMemory::address(const void* place) const {
  return kFirst + static_cast<unsigned>(static_cast<const std::byte*>(place) - (bytes_.data() + aligned_));
}

template <class Change>
void SharedMemory::each_cell(unsigned address, unsigned bytes, Change change) {
  const unsigned first = (address - kFirst) / kCellBytes, last = (address - kFirst + bytes - 1) / kCellBytes;
  for (unsigned cell = first; cell <= last; ++cell) change(cells_[cell]);
}

std::string SharedMemory::begin_copy(unsigned address, unsigned bytes) {
  ++clock_;
  bool busy = false;
  each_cell(address, bytes, [&](Cell& cell) {
    busy = busy || cell.in_flight;
    cell = {clock_, 0, true, true};
  });
  std::fill_n(at(address), bytes, kPoison);
  return busy ? fmt::format("two copies are under way to {} bytes at {}", bytes, address) : std::string();
}

std::string SharedMemory::write(unsigned address, unsigned bytes, int thread) {
  ++clock_;
  bool busy = false;
  each_cell(address, bytes, [&](Cell& cell) {
    busy = busy || cell.in_flight;
    cell = {clock_, static_cast<std::uint16_t>(thread + 1), false, true};
  });
  unpublished_[static_cast<std::size_t>(thread)].push_back({address, bytes});
  return busy ? fmt::format("{} bytes at {} are written, where a copy is under way to", bytes, address) : std::string();
}

void SharedMemory::end_copy(unsigned address, unsigned bytes, int thread) {
  ++clock_;
  each_cell(address, bytes, [&](Cell& cell) { cell = {clock_, static_cast<std::uint16_t>(thread + 1), false, true}; });
  if (thread >= 0) unpublished_[static_cast<std::size_t>(thread)].push_back({address, bytes});
}

void SharedMemory::publish(int thread) {
  auto& ranges = unpublished_[static_cast<std::size_t>(thread)];
  for (const Range& range : ranges)
    each_cell(range.address, range.bytes, [&](Cell& cell) {
      if (cell.writer == thread + 1) cell.writer = 0;
    });
  ranges.clear();
}

std::string SharedMemory::why_unreadable(unsigned address) const {
  const Cell& cell = cells_[(address - kFirst) / kCellBytes];
  if (!cell.known) return "nothing was written there";
  if (cell.in_flight) return "a copy is under way to it";
  if (cell.writer != 0) return fmt::format("what thread {} wrote is not published", cell.writer - 1);
  return {};
}

}  // namespace tenon::test
