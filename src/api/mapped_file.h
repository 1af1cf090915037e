// A file as memory: read only, page by page as it is needed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tenon::src {

/// The bytes of a regular file, mapped while this lives. A file that shrinks meanwhile ends the process where a page of
/// it is missing (SIGBUS).
class MappedFile {
 public:
  /// Error(io).
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tenon::src
