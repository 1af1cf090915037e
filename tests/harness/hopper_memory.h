// The shared memory of a block whose threads, copies and tensor cores do not see each other's writes at once. What is
// copied is not there until it is waited for, and what was there before is gone from the moment a copy is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::test {

class SharedMemory {
 public:
  static constexpr unsigned kFirst = 1024;   ///< the address of its first byte: the system has a kilobyte ahead of it
  static constexpr std::byte kPoison{0xff};  ///< NaN in every real dtype

  explicit SharedMemory(int bytes);

  unsigned char* data() { return reinterpret_cast<unsigned char*>(bytes_.data() + aligned_); }
  bool contains(const void* place) const;
  unsigned address(const void* place) const;
  bool contains(unsigned address, unsigned bytes) const {
    return address >= kFirst && address - kFirst + bytes <= size_;
  }
  std::byte* at(unsigned address) { return bytes_.data() + aligned_ + (address - kFirst); }

  // What follows returns why it may not be done, or nothing.

  /// The memory now belongs to a copy.
  std::string begin_copy(unsigned address, unsigned bytes);
  /// A thread has written there.
  std::string write(unsigned address, unsigned bytes, int thread);
  /// What a copy has brought is there: for all to see, or (`thread` >= 0) as if that thread had written it.
  void end_copy(unsigned address, unsigned bytes, int thread);
  /// The copy engine and the tensor cores see what the thread has written.
  void publish(int thread);

  /// How often something has been written.
  std::uint32_t clock() const { return clock_; }
  /// Why tensor cores may not read the two bytes there.
  std::string why_unreadable(unsigned address) const;
  bool readable(unsigned address) const {
    const Cell& cell = cells_[(address - kFirst) / kCellBytes];
    return cell.known && !cell.in_flight && cell.writer == 0;
  }
  bool written_after(unsigned address, std::uint32_t time) const {
    return cells_[(address - kFirst) / kCellBytes].written > time;
  }

 private:
  static constexpr unsigned kCellBytes = 2;
  struct Cell {
    std::uint32_t written = 0;  ///< when it was written last, or a copy to it was asked for
    std::uint16_t writer = 0;   ///< the thread, counted from 1, whose write only threads see; 0: all see it
    bool in_flight = false;     ///< a copy is under way to it
    bool known = false;         ///< it was written
  };
  struct Range {
    unsigned address, bytes;
  };
  template <class Change>
  void each_cell(unsigned address, unsigned bytes, Change change);

  std::vector<std::byte> bytes_;
  std::size_t aligned_ = 0, size_ = 0;
  std::vector<Cell> cells_;
  std::vector<std::vector<Range>> unpublished_;  ///< by thread
  std::uint32_t clock_ = 0;
};

}  // namespace tenon::test
