// open, fstat, mmap, close.
#include "src/api/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tenon/error.h"

namespace tenon::src {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& message, const std::string& remedy) {
  Place place;
  place.file = path;
  throw Error(ErrorKind::io, message, place, remedy);
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status{};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    refuse(path, fmt::format("cannot open the file: {}", std::strerror(errno)), "check the path and its permissions");
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(status.st_size);
  const bool regular = S_ISREG(status.st_mode);
  if (regular && size > 0) memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (!regular) refuse(path, "it is no regular file", "name a file that can be mapped into memory");
  if (memory == MAP_FAILED)
    refuse(path, fmt::format("cannot map the file: {}", std::strerror(error)), "check that it can be read");
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());  // NOLINT(*-const-cast)
}

}  // namespace tenon::src
