// Lesson 12: pictures. A 3 x 3 mean of a picture of three colours, as bytes: sums are of 16 bits, and rounded back. The
// buffers of a camera's frames are the program's own, and frame after frame is filtered without an allocation.
#include "allocations.h"
#include "check.h"
#include "tenon/tenon.h"

namespace {

constexpr std::int64_t kHeight = 90, kWidth = 120, kColours = 3;

std::vector<double> blurred(const std::vector<double>& picture) {
  std::vector<double> result;
  for (std::int64_t row = 0; row < kHeight; ++row)
    for (std::int64_t column = 0; column < kWidth; ++column)
      for (std::int64_t colour = 0; colour < kColours; ++colour) {
        double sum = 4;  // rounds the ninth part to the nearest
        for (std::int64_t y = row - 1; y <= row + 1; ++y)
          for (std::int64_t x = column - 1; x <= column + 1; ++x)
            if (y >= 0 && x >= 0 && y < kHeight && x < kWidth)
              sum += picture[static_cast<std::size_t>((y * kWidth + x) * kColours + colour)];
        result.push_back(std::floor(sum / 9));
      }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");  // or "cuda"
  using tenon::DType, tenon::Range;
  tenon::Graph g("blur");
  const tenon::Dim height = g.dim("height", {.min = 1}), width = g.dim("width", {.min = 1});
  const tenon::Tensor picture = g.input("picture", DType::u8, {height, width, kColours});
  const tenon::Tensor wide = pad(cast(picture, DType::i16), {1, 1, 0}, {1, 1, 0});
  const Range rows[] = {{0, height}, {1, height + 1}, {2, height + 2}};
  const Range columns[] = {{0, width}, {1, width + 1}, {2, width + 2}};
  tenon::Tensor sum;
  for (const Range& row : rows)
    for (const Range& column : columns) {
      const tenon::Tensor neighbour = wide[{row, column}];
      sum = &row == rows && &column == columns ? neighbour : sum + neighbour;
    }
  g.output("blurred", cast(floor_div(sum + 4, 9), DType::u8));
  const tenon::Executable filter = tenon::compile(g, device);

  const std::vector<std::int64_t> shape{kHeight, kWidth, kColours};
  tenon::Array frame = tenon::Array::zeros(shape, DType::u8), result;
  tenon::DeviceArray from = device.empty(shape, DType::u8);
  const tenon::DeviceArray to = device.empty(shape, DType::u8);
  const tenon::Buffer inputs[] = {buffer_of(from)}, outputs[] = {buffer_of(to)};
  bool right = true;
  long in_loop = 0;
  for (int number = 0; number < 10 && right; ++number) {
    for (std::size_t i = 0; std::uint8_t& byte : frame.data<std::uint8_t>())
      byte = static_cast<std::uint8_t>((++i * 2654435761U + static_cast<unsigned>(number) * 97U) >> 11);
    const long before = allocations;
    from.copy_from(frame);
    filter.run(inputs, outputs);
    to.copy_to(result);
    if (number > 0) in_loop += allocations - before;
    right = close("blurred", result.to_doubles(), blurred(frame.to_doubles()), 0);
  }
  std::printf("allocations in 9 frames: %ld\n", in_loop);
  return right && in_loop == 0 && filter.stats().kernels == 1 ? 0 : 1;
}
