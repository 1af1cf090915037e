// The header of a .npy file: magic, version, length, and a Python dict literal. See numpy.lib.format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct NpyHeader {
  std::string descr;  ///< the element type as NumPy spells it: "<f4"
  bool fortran = false;
  std::vector<std::int64_t> shape;
  std::size_t end = 0;  ///< where the elements begin
};

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";
inline constexpr std::size_t kNpyMaxHeader = 1 << 16;              ///< longer dict literals are refused
inline constexpr std::size_t kNpyMostHeader = kNpyMaxHeader + 12;  ///< with what stands before them

/// Error(io) about `file` when the bytes do not begin with a well-formed header.
NpyHeader read_npy_header(std::string_view bytes, const std::string& file);

}  // namespace tenon
