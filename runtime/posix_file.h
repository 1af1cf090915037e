// The few file operations that the cache needs, as functions that return errno instead of throwing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <vector>

namespace tenon::runtime {

/// Reads the whole regular file `path` with one open and one fstat. Returns 0, or the errno of what failed (ELOOP for a
/// symbolic link, EINVAL for anything else that is no regular file, EFBIG for one of more than `max_bytes`). A file
/// last changed more than `touch_after` seconds ago, or in the future, is given the present time; a negative
/// `touch_after` leaves times alone.
int read_file(const std::string& path, std::vector<std::byte>& bytes, std::uint64_t max_bytes,
              std::int64_t touch_after = -1);

/// Creates `path` (which must not exist) with mode 0600, writes and syncs it. Returns 0 or errno; on failure no file
/// stays.
int write_new_file(const std::string& path, std::span<const std::byte> bytes);

/// Makes `folder` and its missing parents with mode 0700. Returns 0 or errno.
int make_private_folder(const std::string& folder);

/// Why `folder` must not be trusted: "" when it is a folder of this user that nobody else may write to.
std::string distrust_folder(const std::string& folder);

struct FileInfo {
  std::string name;
  std::uint64_t bytes = 0;
  std::time_t modified = 0;
};

/// The regular files in `folder`, in order of their names; empty when it cannot be listed.
std::vector<FileInfo> list_files(const std::string& folder);

/// A name for a temporary file that no other thread, process or host of a shared folder will choose.
std::string temporary_name();

}  // namespace tenon::runtime
