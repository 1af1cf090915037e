// NumPy's .npy files (format versions 1 to 3) to and from host arrays. Nothing in a file is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/interpret/interpret.h"

namespace tenon {

/// The array in a .npy file's bytes; Fortran order is turned into row-major. Little-endian b1 i1 i2 i4 i8 u1 f2 f4 f8
/// have their own dtype; bf16 is 'V2', as ml_dtypes writes it.
///
/// With `wanted` the result has that dtype: reals are converted by the rules of `cast`, integers where every value
/// fits, and raw bits are taken as they are: 'V2' and 'u2' for f16 and bf16, 'V1', 'f1' and 'u1' for f8e4m3 and f8e5m2.
///
/// Error(io), naming `file` and the remedy, for anything else.
ir::HostArray parse_npy(std::string_view bytes, std::optional<DType> wanted = {}, const std::string& file = "");

/// parse_npy of the file at `path`, "-" being standard input. Reads no further than the header says.
ir::HostArray read_npy(const std::string& path, std::optional<DType> wanted = {});

/// The bytes of a .npy file that lie in something else.
struct NpySource {
  std::string name;                                              ///< for errors
  std::uint64_t size = 0;                                        ///< of all bytes
  std::function<void(std::string& to, std::size_t count)> read;  ///< appends the next ones, fewer at the end; Error(io)
};
ir::HostArray read_npy(const NpySource& source, std::optional<DType> wanted = {});

/// The bytes of a version 1 file, the data aligned to 64. bf16 becomes 'V2', f8e4m3 and f8e5m2 'V1':
/// `np.load(path).view(ml_dtypes.bfloat16)` reads them back.
std::string format_npy(const ir::HostArray& array);

/// The two parts of format_npy: what comes before the elements, and their bytes, which live as long as the array.
std::string npy_head(const ir::HostArray& array);
std::string_view npy_data(const ir::HostArray& array);

/// Writes format_npy(array) as FileWriter does: no half-written file is ever seen.
void write_npy(const std::string& path, const ir::HostArray& array);

}  // namespace tenon
