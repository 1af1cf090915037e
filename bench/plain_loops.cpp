// See plain_loops.h.
#include "plain_loops.h"

#include <cstddef>

namespace plain {
namespace {

float at_or_zero(const float* x, int rows, int columns, int i, int j) {
  return i < 0 || j < 0 || i >= rows || j >= columns ? 0.0F : x[static_cast<std::ptrdiff_t>(i) * columns + j];
}

float mean_of_neighbours(const float* x, int rows, int columns, int i, int j) {
  const auto at = [&](int down, int right) { return at_or_zero(x, rows, columns, i + down, j + right); };
  return ((at(-1, 0) + at(1, 0)) + (at(0, -1) + at(0, 1))) * 0.25F;
}

std::uint8_t mean_of_nine(const std::uint8_t* x, int rows, int columns, int i, int j) {
  int sum = 0;
  for (int down = -1; down <= 1; ++down)
    for (int right = -3; right <= 3; right += 3) {
      const int row = i + down, column = j + right;
      if (row >= 0 && row < rows && column >= 0 && column < columns)
        sum += x[static_cast<std::ptrdiff_t>(row) * columns + column];
    }
  return static_cast<std::uint8_t>(sum / 9);
}

}  // namespace

void jacobi(const float* __restrict x, float* __restrict out, int rows, int columns) {
  for (int i = 0; i < rows; ++i) {
    const bool edge = i == 0 || i == rows - 1;
    const float* row = x + static_cast<std::ptrdiff_t>(i) * columns;
    float* to = out + static_cast<std::ptrdiff_t>(i) * columns;
    if (edge) {
      for (int j = 0; j < columns; ++j) to[j] = mean_of_neighbours(x, rows, columns, i, j);
      continue;
    }
    for (int j = 1; j < columns - 1; ++j)
      to[j] = ((row[j - columns] + row[j + columns]) + (row[j - 1] + row[j + 1])) * 0.25F;
    to[0] = mean_of_neighbours(x, rows, columns, i, 0);
    to[columns - 1] = mean_of_neighbours(x, rows, columns, i, columns - 1);
  }
}

void blur(const std::uint8_t* __restrict x, std::uint8_t* __restrict out, int rows, int pixels) {
  const int columns = 3 * pixels;
  for (int i = 0; i < rows; ++i) {
    const bool edge = i == 0 || i == rows - 1;
    const std::uint8_t* row = x + static_cast<std::ptrdiff_t>(i) * columns;
    std::uint8_t* to = out + static_cast<std::ptrdiff_t>(i) * columns;
    const std::uint8_t *above = row - columns, *below = row + columns;
    if (edge) {
      for (int j = 0; j < columns; ++j) to[j] = mean_of_nine(x, rows, columns, i, j);
      continue;
    }
    for (int j = 3; j < columns - 3; ++j)
      to[j] = static_cast<std::uint8_t>(static_cast<std::uint16_t>(above[j - 3] + above[j] + above[j + 3] + row[j - 3] +
                                                                   row[j] + row[j + 3] + below[j - 3] + below[j] +
                                                                   below[j + 3]) /
                                        9);
    for (int j = 0; j < 3; ++j) {
      to[j] = mean_of_nine(x, rows, columns, i, j);
      to[columns - 1 - j] = mean_of_nine(x, rows, columns, i, columns - 1 - j);
    }
  }
}

}  // namespace plain
