// The header of a .safetensors file: a length, a JSON object of tensors, and then their elements, without holes. See
// https://github.com/huggingface/safetensors. Nothing in a file is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/dtype.h"

namespace tenon::src {

inline constexpr std::size_t kSafetensorsMaxHeader = 100'000'000;  ///< as the format's own reader has it

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, end = 0;  ///< of the elements, in the file
};

/// The tensors of the file whose bytes these are, in the order of their elements. They cover all that is behind the
/// header, and each has as many bytes as its shape says. Error(io) about `file` otherwise.
std::vector<SafetensorsEntry> read_safetensors_header(std::string_view bytes, const std::string& file);

/// What comes before the elements of these tensors, whose `begin` and `end` count from there; of a length that is a
/// multiple of `alignment`. Error(argument) for a name that the format cannot hold.
std::string safetensors_head(const std::vector<SafetensorsEntry>& tensors, std::size_t alignment);

}  // namespace tenon::src
