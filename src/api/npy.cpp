// The elements of .npy files: which dtype they are, their order, and conversions to the dtype that a graph wants.
#include "src/api/npy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "src/api/npy_header.h"
#include "src/api/write_file.h"

namespace tenon {
namespace {

using ir::HostArray;

[[noreturn]] void refuse(const std::string& file, const std::string& message, const std::string& remedy) {
  Place place;
  place.file = file;
  throw Error(ErrorKind::io, message, place, remedy);
}

struct Code {
  std::string_view code;
  DType dtype;
};
constexpr Code kCodes[] = {{"b1", DType::bool_}, {"i1", DType::i8},  {"i2", DType::i16}, {"i4", DType::i32},
                           {"i8", DType::i64},   {"u1", DType::u8},  {"f2", DType::f16}, {"f4", DType::f32},
                           {"f8", DType::f64},   {"V2", DType::bf16}};

// Whether elements of this code are the bits of `wanted` rather than numbers to convert.
bool is_raw(std::string_view code, DType wanted) {
  if (is_f8(wanted)) return code == "V1" || code == "f1" || code == "u1";
  return (wanted == DType::f16 || wanted == DType::bf16) && (code == "V2" || code == "u2");
}

[[noreturn]] void refuse_type(const std::string& descr, const std::string& file) {
  std::string shown = descr.substr(0, 16);
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  refuse(file, fmt::format("elements of the .npy type '{}' are not read", shown),
         "convert them before saving: x.astype('<f4') or x.astype('<i8')");
}

DType dtype_of(const std::string& descr, std::optional<DType> wanted, const std::string& file) {
  if (descr.size() != 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) refuse_type(descr, file);
  const std::string_view code = std::string_view(descr).substr(1);
  if (wanted && is_raw(code, *wanted)) return *wanted;
  if (code == "V1" || code == "f1")
    refuse(file, "one-byte reals may be f8e4m3 or f8e5m2", "read them as an input of one of these dtypes");
  for (const Code& known : kCodes) {
    if (known.code != code) continue;
    if (descr[0] == '>' && size_of(known.dtype) > 1)
      refuse(file, fmt::format("big-endian elements '{}'", descr),
             fmt::format("convert them before saving: x.astype('<{}')", code));
    return known.dtype;
  }
  refuse_type(descr, file);
}

std::string shape_tuple(const std::vector<std::int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

// Bytes of the elements; nothing where they leave 64 bits.
std::optional<std::uint64_t> size_of_elements(const NpyHeader& header, DType dtype) {
  if (std::count(header.shape.begin(), header.shape.end(), 0) > 0) return 0;
  std::int64_t size = size_of(dtype);
  for (const std::int64_t extent : header.shape)
    if (__builtin_mul_overflow(size, extent, &size)) return std::nullopt;
  return static_cast<std::uint64_t>(size);
}

// Before any memory is asked for.
void check_size(const NpyHeader& header, DType dtype, std::uint64_t given, const std::string& file) {
  const auto size = size_of_elements(header, dtype);
  if (!size || *size > given)
    refuse(file,
           fmt::format("the file holds {} bytes of elements, shape {} needs {}", given, shape_tuple(header.shape),
                       size ? std::to_string(*size) : "more than 2^63"),
           "copy the whole file");
}

// Fortran order: the first index runs fastest.
void copy_fortran(const char* from, HostArray& array) {
  const auto size = static_cast<std::size_t>(size_of(array.dtype));
  const std::int64_t n = ir::element_count(array);
  std::vector<std::int64_t> index(array.shape.size());
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) place = place * array.shape[axis] + index[axis];
    std::memcpy(array.bytes.data() + static_cast<std::size_t>(place) * size, from + static_cast<std::size_t>(i) * size,
                size);
    for (std::size_t axis = 0; axis < index.size() && ++index[axis] == array.shape[axis]; ++axis) index[axis] = 0;
  }
}

HostArray convert(const HostArray& array, DType wanted, const std::string& file) {
  if (array.dtype == wanted) return array;
  const bool reals = is_real(array.dtype) && is_real(wanted), integers = is_integer(array.dtype) && is_integer(wanted);
  if (!reals && !integers)
    refuse(file, fmt::format("{} elements where {} is wanted", name_of(array.dtype), name_of(wanted)),
           "convert them before saving");
  HostArray result = ir::make_array(wanted, array.shape);
  const std::int64_t n = ir::element_count(array);
  for (std::int64_t i = 0; i < n; ++i) {
    if (reals) {
      ir::set_real(result, i, ir::get_real(array, i));
      continue;
    }
    const std::int64_t value = ir::get_integer(array, i);
    ir::set_integer(result, i, value);
    if (ir::get_integer(result, i) != value)
      refuse(file, fmt::format("element {} is {}, which {} cannot hold", i, value, name_of(wanted)),
             fmt::format("give values within the range of {}", name_of(wanted)));
  }
  return result;
}

std::string descr_of(DType dtype) {
  for (const Code& known : kCodes)
    if (known.dtype == dtype) return (size_of(dtype) == 1 ? "|" : "<") + std::string(known.code);
  return "|V1";
}

// A file that is open for reading, or standard input.
class Input {
 public:
  explicit Input(const std::string& path) : name_(path == "-" ? "<stdin>" : path) {
    if (path != "-") descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status{};
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0)
      refuse(name_, fmt::format("cannot open the file: {}", std::strerror(errno)),
             "check the path and its permissions");
    if (S_ISDIR(status.st_mode)) {
      ::close(descriptor_);
      refuse(name_, "it is a folder, not a file", "name a file that numpy.save wrote");
    }
    if (S_ISREG(status.st_mode) && path != "-") size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~Input() {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }  // the largest number for a stream

  // Appends `count` bytes, or fewer where the file ends. The memory of a stream grows with what it gives, whatever its
  // header says.
  void read(std::string& to, std::size_t count) const try {
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    const std::size_t end = to.size() + count;
    if (size_ != kUnknown) to.reserve(std::min<std::uint64_t>(end, size_));
    while (to.size() < end) {
      const std::size_t begin = to.size(), piece = std::min(end - begin, std::max(kPiece, begin));
      to.resize(begin + piece);
      const ssize_t got = ::read(descriptor_, to.data() + begin, piece);
      const int error = errno;
      to.resize(begin + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got < 0 && error != EINTR)
        refuse(name_, fmt::format("cannot read the file: {}", std::strerror(error)), "check that it can be read");
      if (got == 0) return;
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // bad_alloc or length_error
    refuse(name_, fmt::format("{} bytes of the file do not fit in memory", count), "use a smaller array");
  }

 private:
  static constexpr auto kUnknown = std::numeric_limits<std::uint64_t>::max();

  std::string name_;
  int descriptor_ = STDIN_FILENO;
  std::uint64_t size_ = kUnknown;
};

}  // namespace

HostArray parse_npy(std::string_view bytes, std::optional<DType> wanted, const std::string& file) {
  const NpyHeader header = read_npy_header(bytes, file);
  const DType dtype = dtype_of(header.descr, wanted, file);
  check_size(header, dtype, bytes.size() - header.end, file);
  HostArray array = ir::empty_array(dtype, header.shape);
  if (header.fortran) {
    copy_fortran(bytes.data() + header.end, array);
  } else if (!array.bytes.empty()) {
    std::memcpy(array.bytes.data(), bytes.data() + header.end, array.bytes.size());
  }
  return wanted ? convert(array, *wanted, file) : array;
}

HostArray read_npy(const NpySource& source, std::optional<DType> wanted) {
  std::string bytes;
  source.read(bytes, kNpyMostHeader);
  if (bytes.empty()) refuse(source.name, "the file is empty", "write it with numpy.save");
  const NpyHeader header = read_npy_header(bytes, source.name);
  const DType dtype = dtype_of(header.descr, wanted, source.name);
  check_size(header, dtype, source.size - std::min(source.size, std::uint64_t{header.end}), source.name);
  const std::size_t all = header.end + *size_of_elements(header, dtype);
  if (bytes.size() < all) source.read(bytes, all - bytes.size());
  return parse_npy(bytes, wanted, source.name);
}

HostArray read_npy(const std::string& path, std::optional<DType> wanted) {
  const Input input(path);
  return read_npy({input.name(), input.size(), [&](std::string& to, std::size_t count) { input.read(to, count); }},
                  wanted);
}

std::string npy_head(const HostArray& array) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr_of(array.dtype),
                                   shape_tuple(array.shape));
  const std::size_t begin = kNpyMagic.size() + 4, used = begin + header.size() + 1;
  header.append((64 - used % 64) % 64, ' ');
  header += '\n';
  std::string bytes(kNpyMagic);
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return bytes + header;
}

std::string_view npy_data(const HostArray& array) {
  return {reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()};
}

std::string format_npy(const HostArray& array) { return npy_head(array).append(npy_data(array)); }

void write_npy(const std::string& path, const HostArray& array) {
  FileWriter file(path);
  file.write(npy_head(array));
  file.write(npy_data(array));
  file.finish();
}

}  // namespace tenon
