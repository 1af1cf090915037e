// What is there, then the way to write it. The temporary's path lies where a signal handler may read it.
#include "src/api/write_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/posix_file.h"
#include "tenon/error.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, int error) {
  throw Error(ErrorKind::io, fmt::format("cannot write '{}': {}", path, std::strerror(error)), {},
              "check the path, its permissions and the space left");
}

// The temporary that a signal must remove. Set before the file exists and cleared after it is gone, so that no moment
// is left out; a second writer at the same time goes without.
enum class Slot : int { empty, changing, set };
std::atomic<Slot> slot{Slot::empty};
char slot_path[PATH_MAX];

void announce(const std::string& path) {
  Slot expected = Slot::empty;
  if (path.size() >= sizeof slot_path || !slot.compare_exchange_strong(expected, Slot::changing)) return;
  std::memcpy(slot_path, path.c_str(), path.size() + 1);
  slot = Slot::set;
}

void withdraw(const std::string& path) {
  if (slot == Slot::set && path == slot_path) slot = Slot::empty;
}

extern "C" void remove_and_end(int signal) {
  if (slot == Slot::set) (void)::unlink(slot_path);
  (void)std::signal(signal, SIG_DFL);
  (void)std::raise(signal);
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Where symbolic links lead, also to what does not exist yet; a loop ends in the link that it began with.
std::string follow(const std::string& path) {
  constexpr int kMostLinks = 40;
  fs::path at = path;
  std::error_code none;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(at, none)); ++i) {
    const fs::path to = fs::read_symlink(at, none);
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  return at.string();
}

std::string beside(const std::string& path) {
  return (fs::path(path).parent_path() / runtime::temporary_name()).string();
}

}  // namespace

FileWriter::FileWriter(const std::string& path) : path_(path) {
  struct stat old{};
  if (::stat(path.c_str(), &old) != 0) {
    if (errno != ENOENT) refuse(path, errno);
    open_temporary(follow(path), nullptr);
  } else if (S_ISDIR(old.st_mode)) {
    refuse(path, EISDIR);
  } else if (!S_ISREG(old.st_mode)) {
    open_in_place(0);
  } else {
    open_beside(old);
  }
}

void FileWriter::open_beside(const struct stat& old) {
  struct stat out{}, end{};
  if (::fstat(STDOUT_FILENO, &out) == 0 && same_file(old, out)) {
    (void)std::fflush(stdout);
    descriptor_ = STDOUT_FILENO;
    owned_ = false;
    return;
  }
  if (::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) refuse(path_, errno);
  const std::string target = follow(path_);
  if (::stat(target.c_str(), &end) == 0 && same_file(old, end)) {
    open_temporary(target, &old);
  } else {
    open_in_place(O_TRUNC);  // a link of /proc to a file without a name
  }
}

void FileWriter::open_in_place(int flags) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | flags);
  if (descriptor_ < 0) refuse(path_, errno);
}

void FileWriter::open_temporary(const std::string& target, const struct stat* old) {
  constexpr mode_t kPermissions = 0777;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  target_ = target;
  temporary_ = beside(target);
  announce(temporary_);
  descriptor_ = ::open(temporary_.c_str(), kFlags, old == nullptr ? 0666 : 0600);
  if (descriptor_ < 0) {
    const int error = errno;
    withdraw(std::exchange(temporary_, ""));
    refuse(path_, error);
  }
  if (old == nullptr) return;
  // The owner is kept where that is allowed: by root, and the group by its members.
  if (::fchown(descriptor_, old->st_uid, old->st_gid) != 0) (void)::fchown(descriptor_, uid_t(-1), old->st_gid);
  if (::fchmod(descriptor_, old->st_mode & kPermissions) != 0) {
    const int error = errno;
    drop();
    refuse(path_, error);
  }
}

void FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse(path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

void FileWriter::finish() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (owned_ && ::close(descriptor) != 0) refuse(path_, errno);  // a network's file system says here that it is full
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) refuse(path_, errno);
  withdraw(std::exchange(temporary_, ""));
}

void FileWriter::drop() {
  if (owned_ && descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  withdraw(std::exchange(temporary_, ""));
}

FileWriter::~FileWriter() { drop(); }

void write_file(const std::string& path, std::string_view bytes) {
  FileWriter file(path);
  file.write(bytes);
  file.finish();
}

void remove_temporary_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ}) {
    struct sigaction action{};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;  // nohup's stays ignored
    action.sa_handler = remove_and_end;
    action.sa_flags = 0;
    (void)::sigemptyset(&action.sa_mask);
    (void)::sigaction(signal, &action, nullptr);
  }
}

}  // namespace tenon
