// NumPy's .npy files: one array each.
#pragma once

#include <optional>
#include <string>

#include "tenon/array.h"

namespace tenon {

/// The array of a .npy file, in Fortran order too. Little-endian b1 i1 i2 i4 i8 u1 f2 f4 f8 have their own dtype, V2 is
/// bf16, as ml_dtypes writes it. With `wanted` the result has that dtype: reals are converted as `cast` does, integers
/// where every value fits, and V1 and u1 are the bits of f8e4m3 or f8e5m2, u2 those of f16 or bf16. Error(io) for
/// anything else, and for a file that cannot be read.
Array load_npy(const std::string& path, std::optional<DType> wanted = {});

/// Writes a .npy file, whole or not at all; bf16 becomes V2 and an f8 V1. Error(io) where that fails, Error(argument)
/// when the array has not as many bytes as its shape says.
void save_npy(const std::string& path, const Array& array);

}  // namespace tenon
