// NumPy's files from the public API: what is written is read back, and mistakes are named.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "tenon/tenon.h"

namespace tenon {
namespace {

std::string message_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(ApiNpy, ArraysOfEveryDTypeComeBack) {
  const std::string path = testing::TempDir() + "api_npy.npy";
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i16,
                            DType::i32, DType::i64, DType::bool_, DType::f8e4m3, DType::f8e5m2}) {
    const Array array = Array::from({0, 1, 1, 0, 1, 1}, {2, 1, 3}).cast(dtype);
    save_npy(path, array);
    const Array back = load_npy(path, dtype);
    EXPECT_EQ(back.dtype, dtype);
    EXPECT_EQ(back.shape, array.shape);
    EXPECT_EQ(back.bytes, array.bytes) << name_of(dtype);
  }
  EXPECT_EQ(load_npy(path, DType::f8e5m2).to_doubles(), (std::vector<double>{0, 1, 1, 0, 1, 1}));
  std::remove(path.c_str());
}

TEST(ApiNpy, MistakesAreNamed) {
  const std::string path = testing::TempDir() + "api_npy_wrong.npy";
  EXPECT_NE(message_of([&] { load_npy(path); }), "no error");
  std::ofstream(path) << "no array";
  EXPECT_NE(message_of([&] { load_npy(path); }), "no error");
  Array broken = Array::zeros({4});
  broken.shape = {5};
  EXPECT_NE(message_of([&] { save_npy(path, broken); }), "no error");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tenon
