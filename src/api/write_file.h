// Files as a command writes them: into a device or a pipe as it is, a regular file whole or not at all.
#pragma once

#include <string>
#include <string_view>

struct stat;

namespace tenon {

/// Writes one file. What is there decides how: a device, a FIFO or a socket is opened and written to. A regular file,
/// or none, gets a temporary beside it with an unpredictable name and the mode of the file (0666 less the umask where
/// there is none), which finish() renames there; symbolic links are followed, so that the link stays. A regular file
/// that is the process's own stdout is written to through it.
class FileWriter {
 public:
  /// Opens the file; Error(io).
  explicit FileWriter(const std::string& path);
  /// Without finish(): removes the temporary; the file at `path` is as it was.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view bytes);  ///< Error(io)
  void finish();                       ///< puts the file in its place; Error(io)

 private:
  void open_in_place(int flags);
  void open_beside(const struct stat& old);
  void open_temporary(const std::string& target, const struct stat* old);
  void drop();

  std::string path_;       // as the user wrote it
  std::string target_;     // what is renamed to; empty when written in place
  std::string temporary_;  // empty when there is none (any more)
  int descriptor_ = -1;
  bool owned_ = true;  // not stdout
};

/// A FileWriter's whole life.
void write_file(const std::string& path, std::string_view bytes);

/// From now on SIGINT, SIGTERM and the like remove the temporary that a FileWriter has open, then end the process as
/// they do anyway. For a program that has no handlers of its own.
void remove_temporary_on_signals();

}  // namespace tenon
