// .npz files: zip archives of .npy files, which libzip reads and writes.
#include <fmt/format.h>

#include "ir/text/json_document.h"
#include "src/api/host_array.h"
#include "src/api/npy.h"
#include "tenon/error.h"
#include "tenon/weights.h"

#ifdef TENON_WITH_NPZ
#include <zip.h>

#include <algorithm>
#include <filesystem>

#include "ir/graph/host_memory.h"
#endif

namespace tenon {

#ifdef TENON_WITH_NPZ
namespace {

constexpr std::string_view kSuffix = ".npy";

[[noreturn]] void refuse(const std::string& file, const std::string& message, const std::string& remedy) {
  Place place;
  place.file = file;
  throw Error(ErrorKind::io, message, place, remedy);
}

struct ZipDiscard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, ZipDiscard>;

struct ZipClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using ArchiveFile = std::unique_ptr<zip_file_t, ZipClose>;

std::string text_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

Archive open_archive(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive)
    refuse(path, fmt::format("cannot read the .npz file: {}", text_of(code)), "name a file that numpy.savez wrote");
  return archive;
}

// The bytes of one file in the archive, one after another.
class Part {
 public:
  Part(const Archive& archive, zip_uint64_t index, std::string name)
      : name_(std::move(name)), file_(zip_fopen_index(archive.get(), index, 0)) {
    if (!file_) fail(zip_strerror(archive.get()));
  }

  // Memory grows with what the file gives, whatever it says of its size.
  void read(std::string& to, std::size_t count) const {
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    const std::size_t end = to.size() + count;
    while (to.size() < end) {
      const std::size_t begin = to.size(), piece = std::min(end - begin, std::max(kPiece, begin));
      to.resize(begin + piece);
      const zip_int64_t got = zip_fread(file_.get(), to.data() + begin, piece);
      to.resize(begin + static_cast<std::size_t>(std::max<zip_int64_t>(got, 0)));
      if (got < 0) fail(zip_file_strerror(file_.get()));
      if (got == 0) return;
    }
  }

  // libzip compares the checksum when it meets the end.
  void finish() const {
    std::string rest;
    read(rest, 1);
  }

 private:
  [[noreturn]] void fail(const char* why) const {
    refuse(name_, fmt::format("cannot read it: {}", why), "copy the whole file, or write it again");
  }

  std::string name_;
  ArchiveFile file_;
};

// "weights.npz: 'layer/w.npy'", and the name of the array.
void add_part(Weights& weights, const Archive& archive, zip_uint64_t index, const std::string& path,
              const std::map<std::string, DType>& wanted) {
  zip_stat_t status;
  if (zip_stat_index(archive.get(), index, ZIP_FL_ENC_RAW, &status) != 0 || (status.valid & ZIP_STAT_NAME) == 0 ||
      (status.valid & ZIP_STAT_SIZE) == 0)
    refuse(path, fmt::format("file {} of the archive has no name or no size", index), "write it with numpy.savez");
  const std::string_view name = status.name;
  if (!name.ends_with(kSuffix))
    refuse(path, fmt::format("{} in the archive is no .npy file", ir::display(name)), "write it with numpy.savez");
  std::string array(name.substr(0, name.size() - kSuffix.size()));
  if (weights.contains(array))
    refuse(path, fmt::format("{} is in the archive twice", ir::display(name)), "write it with numpy.savez");
  const std::string part_name = fmt::format("{}: {}", path, ir::display(name));
  const Part part(archive, index, part_name);
  const auto dtype = wanted.find(array);
  ir::HostArray read =
      read_npy({part_name, status.size, [&](std::string& to, std::size_t count) { part.read(to, count); }},
               dtype == wanted.end() ? std::nullopt : std::optional(dtype->second));
  part.finish();
  weights.add(std::move(array), src::from_host(std::move(read)));
}

}  // namespace

Weights load_npz(const std::string& path, const std::map<std::string, DType>& wanted) {
  return ir::with_host_memory("the arrays of " + path, [&] {
    const Archive archive = open_archive(path);
    Weights weights;
    const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
    for (zip_int64_t i = 0; i < count; ++i) add_part(weights, archive, static_cast<zip_uint64_t>(i), path, wanted);
    return weights;
  });
}

namespace {

[[noreturn]] void refuse_write(const std::string& path, const char* why) {
  throw Error(ErrorKind::io, fmt::format("cannot write '{}': {}", path, why), {},
              "check the path, its permissions and the space left");
}

struct SourceFree {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Source = std::unique_ptr<zip_source_t, SourceFree>;

// The two pieces of a .npy file, of which the first is copied.
struct NpyPieces {
  explicit NpyPieces(const WeightView& view) : head(npy_head({view.dtype, view.shape, {}})) {
    const std::span<const std::byte> bytes = view.bytes();
    pieces[0] = {reinterpret_cast<zip_uint8_t*>(head.data()), head.size()};
    // libzip reads it alone, but says so of no pointer.
    pieces[1] = {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(bytes.data())),  // NOLINT(*-const-cast)
                 bytes.size()};
  }
  std::string head;
  zip_buffer_fragment_t pieces[2];
};

// As numpy.savez has it: stored, not compressed, of the first day that a zip file can say.
void add_array(const Archive& archive, const std::string& path, const Weights::Entry& entry, NpyPieces& npy) {
  constexpr zip_uint16_t kFirstDay = 1 << 5 | 1;
  const zip_uint64_t count = entry.view.byte_size() == 0 ? 1 : 2;
  Source source(zip_source_buffer_fragment(archive.get(), npy.pieces, count, 0));
  if (!source) refuse_write(path, zip_strerror(archive.get()));
  const zip_int64_t index =
      zip_file_add(archive.get(), (entry.name + std::string(kSuffix)).c_str(), source.get(), ZIP_FL_ENC_UTF_8);
  if (index < 0) refuse_write(path, zip_strerror(archive.get()));
  (void)source.release();  // it is the archive's
  const auto place = static_cast<zip_uint64_t>(index);
  if (zip_set_file_compression(archive.get(), place, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive.get(), place, 0, kFirstDay, 0) != 0)
    refuse_write(path, zip_strerror(archive.get()));
}

}  // namespace

// libzip writes a temporary beside the file, and renames it when it is whole; a symbolic link stays one.
void save_npz(const std::string& path, const Weights& weights) {
  if (weights.empty())  // libzip would remove the file
    throw Error(ErrorKind::argument, fmt::format("no arrays to write to '{}'", path), {}, "give one at least");
  std::error_code none;
  const bool link = std::filesystem::is_symlink(path, none);
  const std::string target = link ? std::filesystem::weakly_canonical(path, none).string() : path;
  int code = 0;
  Archive archive(zip_open(target.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!archive) refuse_write(path, text_of(code).c_str());
  std::vector<NpyPieces> pieces;
  pieces.reserve(weights.size());
  for (const Weights::Entry& entry : weights) {
    pieces.emplace_back(entry.view);
    add_array(archive, path, entry, pieces.back());
  }
  if (zip_close(archive.get()) != 0) refuse_write(path, zip_strerror(archive.get()));
  (void)archive.release();  // it is gone
}

#else

namespace {

[[noreturn]] void refuse_build(const std::string& path) {
  throw Error(ErrorKind::unsupported, fmt::format("'{}' is a .npz file, and this build has no libzip", path), {},
              "configure with -DTENON_NPZ=ON, or use a .safetensors file");
}

}  // namespace

Weights load_npz(const std::string& path, const std::map<std::string, DType>&) { refuse_build(path); }
void save_npz(const std::string& path, const Weights&) { refuse_build(path); }

#endif

}  // namespace tenon
