// Stencils as plain C: loops over the interior without conditions, and the edges apart. Compiled for this machine as a
// user would (-O3 -march=native), on one thread.
#pragma once

#include <cstdint>

namespace plain {

/// out[i][j] = (north + south + (west + east)) / 4 of x, zero outside.
void jacobi(const float* x, float* out, int rows, int columns);
/// The mean of nine neighbours, rounded down, of a picture of `pixels` columns of three colours; zero outside.
void blur(const std::uint8_t* x, std::uint8_t* out, int rows, int pixels);

}  // namespace plain
