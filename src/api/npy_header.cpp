// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and what stands before it.
#include "src/api/npy_header.h"

#include <fmt/format.h>

#include <charconv>

#include "tenon/error.h"
#include "tenon/shape.h"

namespace tenon {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& message, const std::string& remedy) {
  Place place;
  place.file = file;
  throw Error(ErrorKind::io, message, place, remedy);
}

class DictReader {
 public:
  DictReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  NpyHeader read() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        header.descr = string();
        descr = true;
      } else if (key == "fortran_order") {
        header.fortran = boolean();
        order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        shape = true;
      } else {
        fail("another key than descr, fortran_order and shape");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) fail("one of descr, fortran_order and shape is missing");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    refuse(file_, fmt::format("malformed .npy header: {} at character {}", what, at_),
           "write the file with numpy.save");
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  bool accept(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const auto end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("a string that does not end");
    const std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    if (accept("True")) return true;
    if (!accept("False")) fail("expected True or False");
    return false;
  }
  std::int64_t extent() {
    skip_space();
    std::int64_t value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail("expected an extent");
    at_ += static_cast<std::size_t>(end - first);
    return value;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      if (extents.size() == static_cast<std::size_t>(kMaxRank)) fail(fmt::format("more than {} axes", kMaxRank));
      extents.push_back(extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(std::string_view bytes, const std::string& file) {
  if (bytes.substr(0, kNpyMagic.size()) != kNpyMagic)
    refuse(file, "not a .npy file: it does not begin with \\x93NUMPY",
           "write it with numpy.save; of a .npz each array is read by its name");
  const auto byte = [&](std::size_t i) -> std::size_t {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
  };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3)
    refuse(file, fmt::format("unknown .npy format version {}", version), "write it as version 1, 2 or 3");
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kNpyMaxHeader)
    refuse(file, fmt::format(".npy header of {} bytes", length), "a header has at most 65536 bytes");
  if (begin + length > bytes.size()) refuse(file, "the file ends within its .npy header", "copy the whole file");
  NpyHeader header = DictReader(bytes.substr(begin, length), file).read();
  header.end = begin + length;
  return header;
}

}  // namespace tenon
