// .npz files: NumPy's are read, compressed ones too, what is written NumPy reads, and anything else is refused by name.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "tenon/tenon.h"

namespace tenon {
namespace {

std::string text_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Npz : public testing::Test {
 protected:
  void SetUp() override {
#ifndef TENON_WITH_NPZ
    GTEST_SKIP() << "a build without libzip";
#endif
  }
  void TearDown() override { std::remove(path.c_str()); }
  const std::string path = testing::TempDir() + "tenon_npz_test.npz";
  const std::string files = TENON_SOURCE_DIR "/tests/unit/files/";
};

TEST_F(Npz, FilesOfNumPyAreRead) {
  for (const char* name : {"numpy.npz", "numpy_compressed.npz"}) {
    const Weights weights = load_npz(files + name);
    EXPECT_EQ(weights["w"].array().to<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(weights["f"].array().to<std::int32_t>(), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(weights["layer/b"].array().to<bool>(), (std::vector<bool>{true, false, true}));
    EXPECT_EQ(weights["s"].array().item<double>(), 2.5);
    EXPECT_EQ(weights["e"].shape, (std::vector<std::int64_t>{0, 4}));
  }
  EXPECT_EQ(load_npz(files + "numpy_compressed.npz")["zeros"].shape, (std::vector<std::int64_t>{64, 64}));
}

TEST_F(Npz, ArraysOfEveryDTypeComeBack) {
  Weights weights;
  std::map<std::string, DType> dtypes;
  for (const DType dtype : kAllDTypes) {
    const std::string name = "of/" + std::string(name_of(dtype));
    weights.add(name, Array::from({0, 1, 1, 0, 1, 1}, {2, 1, 3}).cast(dtype));
    dtypes[name] = dtype;
  }
  weights.add("none", Array::zeros({0, 4}));
  save_npz(path, weights);
  const Weights back = load_npz(path, dtypes);
  ASSERT_EQ(back.size(), weights.size());
  for (const auto& [name, view, memory] : weights) {
    EXPECT_EQ(back[name].dtype, view.dtype);
    EXPECT_EQ(back[name].shape, view.shape);
    EXPECT_EQ(back[name].array().bytes, view.array().bytes) << name;
  }
}

TEST_F(Npz, EqualArraysMakeEqualFiles) {
  save_npz(path, {{"w", Array::from({1, 2}, {2})}});
  const std::string first = bytes_of(path);
  save_npz(path, {{"w", Array::from({1, 2}, {2})}});
  EXPECT_EQ(bytes_of(path), first);
}

TEST_F(Npz, NumPyReadsWhatIsWritten) {
  if (std::system("python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no NumPy";
  save_npz(path, {{"a/w", Array::from({1, 2, 3, 4, 5, 6}, {2, 3})}, {"i", Array::from({-7}, {}).cast(DType::i64)}});
  const std::string program = "import numpy as np; z = np.load('" + path +
                              "'); assert z.files == ['a/w', 'i']; assert z['a/w'].tolist() == [[1, 2, 3], [4, 5, 6]]; "
                              "assert z['a/w'].dtype == np.float32 and z['i'].dtype == np.int64 and z['i'] == -7";
  EXPECT_EQ(std::system(("python3 -c \"" + program + "\"").c_str()), 0);
}

TEST_F(Npz, ASymbolicLinkStaysOne) {
  const std::string link = testing::TempDir() + "tenon_npz_link.npz";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path, link);
  save_npz(path, {{"v", Array::zeros({1})}});
  save_npz(link, {{"w", Array::zeros({1})}});
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(load_npz(path).contains("w"));
  std::filesystem::remove(link);
}

TEST_F(Npz, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(text_of([] { load_npz("/nowhere/w.npz"); }),
            "i/o error: cannot read the .npz file: No such file\n"
            "  at /nowhere/w.npz\n"
            "  help: name a file that numpy.savez wrote");
  std::ofstream(path) << "no archive";
  EXPECT_EQ(text_of([&] { load_npz(path); }),
            "i/o error: cannot read the .npz file: Not a zip archive\n"
            "  at " +
                path +
                "\n"
                "  help: name a file that numpy.savez wrote");
  EXPECT_EQ(text_of([&] { save_npz(path, {}); }), "argument error: no arrays to write to '" + path +
                                                      "'\n"
                                                      "  help: give one at least");
  EXPECT_EQ(text_of([] { save_npz("/nowhere/w.npz", {{"w", Array::zeros({1})}}); }),
            "i/o error: cannot write '/nowhere/w.npz': Failure to create temporary file: No such file or directory\n"
            "  help: check the path, its permissions and the space left");
}

TEST_F(Npz, AnArrayThatIsBrokenIsNamed) {
  save_npz(path, {{"layer/w", Array::from({1, 2, 3, 4}, {4})}});
  std::string bytes = bytes_of(path);
  const std::string third = {0, 0, 0x40, 0x40};
  ++bytes[bytes.find(third)];
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(text_of([&] { load_npz(path); }),
            "i/o error: cannot read it: CRC error\n"
            "  at " +
                path +
                ": 'layer/w.npy'\n"
                "  help: copy the whole file, or write it again");
}

// Whatever is wrong with the bytes, it is said.
TEST_F(Npz, GarbledAndTruncatedFilesAreRefusedOrRead) {
  for (const char* name : {"numpy.npz", "numpy_compressed.npz"}) {
    const std::string whole = bytes_of(files + name);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string bytes = i % 3 == 0 ? whole.substr(0, i) : whole;
      if (i % 3 != 0) bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
      std::ofstream(path, std::ios::binary) << bytes;
      try {
        load_npz(path);
      } catch (const Error& error) {
        EXPECT_TRUE(error.kind() == ErrorKind::io || error.kind() == ErrorKind::out_of_memory) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace tenon
