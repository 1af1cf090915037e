// Memory between pages that nobody may touch: what reads or writes far before its begin, or behind its last page, ends
// the program. Guard bands (guarded.h) only show writes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <span>

namespace tenon::test {

class Fenced {
 public:
  static constexpr std::size_t kFence = std::size_t{1} << 20;

  /// A copy of the bytes, from the begin of a page on.
  explicit Fenced(std::span<const std::byte> bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inside = (bytes.size() / page + 1) * page;
    size_ = inside + 2 * kFence;
    void* all = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<std::byte*>(all);
    if (mprotect(data(), inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    if (!bytes.empty()) std::memcpy(data(), bytes.data(), bytes.size());
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { munmap(all_, size_); }

  std::byte* data() const { return all_ + kFence; }

 private:
  std::byte* all_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tenon::test
