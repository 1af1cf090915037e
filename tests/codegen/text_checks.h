// Checks on generated text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {

/// The kernel without the prelude before it.
inline std::string kernel_part(const std::string& text) {
  const std::size_t begin = text.find("extern \"C\" __global__");
  return begin == std::string::npos ? "" : text.substr(begin);
}

/// Expects each of `pieces` in the kernel, in this order (as FileCheck's CHECK lines do).
inline void expect_lines(const std::string& text, const std::vector<std::string>& pieces) {
  const std::string kernel = kernel_part(text);
  std::size_t at = 0;
  for (const std::string& piece : pieces) {
    const std::size_t found = kernel.find(piece, at);
    if (found == std::string::npos) {
      ADD_FAILURE() << (kernel.find(piece) == std::string::npos ? "not found: " : "not in order: ") << piece << "\nin\n"
                    << kernel;
      return;
    }
    at = found + piece.size();
  }
}

}  // namespace tenon::test
