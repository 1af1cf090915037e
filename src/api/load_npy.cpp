// The public reader and writer of .npy files, over those that the command uses.
#include "src/api/host_array.h"
#include "src/api/npy.h"
#include "tenon/npy.h"

namespace tenon {

// A path that is "-" is a file too; only the command means standard input.
Array load_npy(const std::string& path, std::optional<DType> wanted) {
  return src::from_host(read_npy(path == "-" ? "./-" : path, wanted));
}

void save_npy(const std::string& path, const Array& array) { write_npy(path, src::to_host(array)); }

}  // namespace tenon
