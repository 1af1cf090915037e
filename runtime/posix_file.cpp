// POSIX calls with their interruptions and partial transfers handled.
#include "runtime/posix_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>
#include <new>
#include <random>
#include <string_view>

namespace tenon::runtime {
namespace {

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

int read_all(int descriptor, std::span<std::byte> to, std::size_t& done) {
  while (done < to.size()) {
    const ssize_t got = ::read(descriptor, to.data() + done, to.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return 0;
}

int write_all(int descriptor, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t put = ::write(descriptor, from.data(), from.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    from = from.subspan(static_cast<std::size_t>(put));
  }
  return 0;
}

void renew_if_older(int descriptor, const struct stat& status, std::int64_t touch_after) {
  if (touch_after < 0) return;
  const std::time_t age = std::time(nullptr) - status.st_mtime;
  if (age >= 0 && age <= touch_after) return;  // a time in the future: the clock was set back since
  (void)::futimens(descriptor, nullptr);       // best effort: another user's or a read-only file keeps its time
}

std::string host_name() {
  char name[65] = {};
  (void)::gethostname(name, sizeof name - 1);
  std::string safe;
  for (const char* c = name; *c != '\0' && safe.size() < 32; ++c) {
    if (std::isalnum(static_cast<unsigned char>(*c)) != 0) safe += *c;
  }
  return safe;
}

std::uint64_t random_number() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

int read_file(const std::string& path, std::vector<std::byte>& bytes, std::uint64_t max_bytes,
              std::int64_t touch_after) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return errno;
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  if (static_cast<std::uint64_t>(status.st_size) > max_bytes) return EFBIG;
  try {
    bytes.resize(static_cast<std::size_t>(status.st_size));
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  std::size_t done = 0;
  const int failure = read_all(file.get(), bytes, done);
  bytes.resize(done);
  if (failure == 0) renew_if_older(file.get(), status, touch_after);
  return failure;
}

int write_new_file(const std::string& path, std::span<const std::byte> bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return errno;
  int failure = write_all(file.get(), bytes);
  if (failure == 0 && ::fsync(file.get()) != 0) failure = errno;
  if (failure != 0) ::unlink(path.c_str());
  return failure;
}

int make_private_folder(const std::string& folder) {
  for (std::size_t slash = folder.find('/', 1); slash != std::string::npos; slash = folder.find('/', slash + 1)) {
    // A parent may exist and yet answer EACCES or EROFS; only the last mkdir decides.
    (void)::mkdir(folder.substr(0, slash).c_str(), 0700);
  }
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return 0;
  return errno;
}

std::string distrust_folder(const std::string& folder) {
  const Descriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (open.get() < 0 || ::fstat(open.get(), &status) != 0) {
    return errno == ENOTDIR ? "it is not a folder" : fmt::format("it cannot be opened (errno {})", errno);
  }
  if (status.st_uid != ::geteuid()) return fmt::format("user {} owns it", status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("others may write to it (mode {:04o}); chmod 700 it", status.st_mode & 07777);
  }
  return "";
}

std::vector<FileInfo> list_files(const std::string& folder) {
  std::vector<FileInfo> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) return files;
  while (const dirent* entry = ::readdir(open.get())) {
    struct stat status{};
    if (::fstatat(::dirfd(open.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    files.push_back({entry->d_name, static_cast<std::uint64_t>(status.st_size), status.st_mtime});
  }
  std::sort(files.begin(), files.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  return files;
}

std::string temporary_name() { return fmt::format(".tmp-{}-{}-{:016x}", host_name(), ::getpid(), random_number()); }

}  // namespace tenon::runtime
