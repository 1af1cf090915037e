// The memory of host arrays: a vector of bytes, aligned for any kernel, that need not be filled before it is written.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace tenon {

/// How host arrays are aligned: more than vectors of a CPU, cache lines and Buffer ask for.
inline constexpr std::size_t kHostAlignment = 256;

namespace detail {

/// Memory for `bytes` bytes, aligned to kHostAlignment, with whatever it holds; std::bad_alloc. What is larger than a
/// few huge pages asks the system for such.
void* allocate_host(std::size_t bytes);
void release_host(void* memory) noexcept;

/// Leaves elements that are given no value as they are.
template <typename T>
struct HostAllocator {
  using value_type = T;
  HostAllocator() = default;
  template <typename U>
  HostAllocator(const HostAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor): as allocators are
  T* allocate(std::size_t count) { return static_cast<T*>(allocate_host(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) noexcept { release_host(memory); }
  template <typename U>
  void construct(U*) noexcept {}
  template <typename U, typename... Args>
  void construct(U* at, Args&&... args) {
    std::construct_at(at, std::forward<Args>(args)...);
  }
  template <typename U>
  bool operator==(const HostAllocator<U>&) const noexcept {
    return true;
  }
};

}  // namespace detail

/// What a std::vector<std::byte> is, and made from and copied to one, but that its memory is aligned to kHostAlignment
/// and may come without a value.
class Bytes : public std::vector<std::byte, detail::HostAllocator<std::byte>> {
 public:
  Bytes() = default;
  Bytes(std::size_t count, std::byte value) : vector(count) { fill(0, value); }
  explicit Bytes(std::size_t count) : Bytes(count, std::byte{}) {}
  Bytes(std::initializer_list<std::byte> bytes) : Bytes(bytes.begin(), bytes.end()) {}
  template <std::input_iterator It>
  Bytes(It first, It last) : vector(first, last) {}
  Bytes(const std::vector<std::byte>& bytes) : vector(bytes.size()) { copy(bytes.data()); }  // NOLINT: the same bytes
  Bytes(const Bytes& other) : vector(other.size()) { copy(other.data()); }
  Bytes(Bytes&&) noexcept = default;
  Bytes& operator=(const Bytes& other) {
    if (this == &other) return *this;
    if (capacity() < other.size()) return *this = Bytes(other);
    vector::resize(other.size());
    copy(other.data());
    return *this;
  }
  Bytes& operator=(Bytes&&) noexcept = default;
  ~Bytes() = default;

  /// `count` bytes of any value, for a caller that writes them all.
  static Bytes uninitialised(std::size_t count) {
    Bytes bytes;
    bytes.resize_uninitialised(count);
    return bytes;
  }
  /// The size becomes `count`; the bytes may have any value.
  void resize_uninitialised(std::size_t count) {
    if (count > capacity()) *this = Bytes();  // there is nothing to carry over
    vector::resize(count);
  }
  /// As a vector's: new bytes have the value.
  void resize(std::size_t count, std::byte value = {}) {
    const std::size_t before = size();
    vector::resize(count);
    if (count > before) fill(before, value);
  }

  operator std::vector<std::byte>() const { return {begin(), end()}; }  // NOLINT(google-explicit-constructor)

 private:
  void fill(std::size_t from, std::byte value) {
    if (from < size()) std::memset(data() + from, static_cast<int>(value), size() - from);
  }
  void copy(const std::byte* from) {
    if (!empty()) std::memcpy(data(), from, size());
  }
};

}  // namespace tenon
