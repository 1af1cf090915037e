// .npy files: what NumPy writes is read, what is written NumPy reads, and anything else is refused by name.
#include "src/api/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace tenon {
namespace {

using ir::HostArray;

// A file of format version 1 with this header and these elements' bytes.
std::string file(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + header + data;
}

std::string dict(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string message_of(const std::string& bytes, std::optional<DType> wanted = {}) {
  try {
    parse_npy(bytes, wanted, "x.npy");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.place().file, "x.npy");
    EXPECT_FALSE(error.remedy().empty());
    return error.message();
  }
  return "no error";
}

std::vector<double> values(const HostArray& array) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < ir::element_count(array); ++i) result.push_back(ir::get_real(array, i));
  return result;
}

TEST(Npy, EveryDtypeRoundTrips) {
  for (const DType dtype : kAllDTypes) {
    HostArray array = ir::make_array(dtype, {2, 3});
    for (std::int64_t i = 0; i < 6; ++i) ir::set_integer(array, i, i % 2);
    const HostArray back = parse_npy(format_npy(array), dtype);
    EXPECT_EQ(back.dtype, dtype);
    EXPECT_EQ(back.shape, array.shape);
    EXPECT_EQ(back.bytes, array.bytes) << name_of(dtype);
  }
}

TEST(Npy, TheDataOfAWrittenFileIsAligned) {
  for (std::int64_t n = 1; n < 40; ++n) {
    const std::string bytes = format_npy(HostArray{DType::i8, {n, n * n * n, 0}, {}});
    const std::size_t header = 10 + static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]);
    EXPECT_EQ(header % 64, 0u);
    EXPECT_EQ(bytes[header - 1], '\n');
  }
  EXPECT_NE(
      format_npy(ir::make_array(DType::f32, {3})).find("'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"),
      std::string::npos);
  EXPECT_NE(format_npy(ir::make_array(DType::bf16, {})).find("'<V2', 'fortran_order': False, 'shape': (), }"),
            std::string::npos);
}

TEST(Npy, FortranOrderBecomesRowMajor) {
  const std::string data({1, 4, 2, 5, 3, 6});
  const HostArray array = parse_npy(file(dict("|i1", "(2, 3)", "True"), data));
  EXPECT_EQ(values(array), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, AllFormatVersionsAreRead) {
  for (const char version : {1, 2, 3})
    EXPECT_EQ(values(parse_npy(file(dict("|u1", "(2,)"), "\x05\xff", version))), (std::vector<double>{5, 255}));
}

TEST(Npy, RealsAreConvertedToTheWantedDtype) {
  HostArray array = ir::make_array(DType::f32, {3});
  ir::set_real(array, 0, 1.00390625);
  ir::set_real(array, 1, 1e9);
  ir::set_real(array, 2, -2);
  const HostArray narrow = parse_npy(format_npy(array), DType::f8e5m2);
  EXPECT_EQ(narrow.dtype, DType::f8e5m2);
  EXPECT_EQ(ir::get_real(narrow, 0), 1);
  EXPECT_TRUE(std::isinf(ir::get_real(narrow, 1)));
  EXPECT_EQ(ir::get_real(narrow, 2), -2);
}

TEST(Npy, RawBitsServeTheDtypesThatNumpyLacks) {
  EXPECT_EQ(ir::get_real(parse_npy(file(dict("<V2", "()"), std::string("\x80\x3f", 2))), 0), 1.0);
  EXPECT_EQ(ir::get_real(parse_npy(file(dict("<u2", "()"), std::string("\x80\x3f", 2)), DType::bf16), 0), 1.0);
  EXPECT_EQ(ir::get_real(parse_npy(file(dict("|V1", "()"), "\x38"), DType::f8e4m3), 0), 1.0);
  EXPECT_EQ(ir::get_real(parse_npy(file(dict("|u1", "()"), "\x3c"), DType::f8e5m2), 0), 1.0);
}

TEST(Npy, IntegersAreConvertedWhereTheyFit) {
  const std::string wide = file(dict("<i8", "(2,)"), std::string("\x05\0\0\0\0\0\0\0\x2c\x01\0\0\0\0\0\0", 16));
  EXPECT_EQ(values(parse_npy(wide, DType::i32)), (std::vector<double>{5, 300}));
  EXPECT_EQ(message_of(wide, DType::u8), "element 1 is 300, which u8 cannot hold");
}

TEST(Npy, RefusalsSayWhatIsWrong) {
  const std::string data(64, '\0');
  EXPECT_EQ(message_of("PK\x03\x04"), "not a .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(message_of("\x93NUMPY"), "unknown .npy format version 0");
  EXPECT_EQ(message_of(file(dict("<f4", "(2,)"), data, 9)), "unknown .npy format version 9");
  EXPECT_EQ(message_of(file(dict("<f4", "(2,)"), data).substr(0, 30)), "the file ends within its .npy header");
  EXPECT_EQ(message_of(file(dict("<f4", "(17,)"), data)), "the file holds 64 bytes of elements, shape (17,) needs 68");
  EXPECT_EQ(message_of(file(dict("<f4", "(4611686018427387904, 4)"), data)),
            "the file holds 64 bytes of elements, shape (4611686018427387904, 4) needs more than 2^63");
  EXPECT_EQ(message_of(file(dict("<f4", "(-1,)"), data)), "malformed .npy header: expected an extent at character 51");
  EXPECT_EQ(message_of(file(dict("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), data)),
            "malformed .npy header: more than 8 axes at character 75");
  EXPECT_EQ(message_of(file(dict(">f4", "(2,)"), data)), "big-endian elements '>f4'");
  EXPECT_EQ(message_of(file(dict("<c8", "(2,)"), data)), "elements of the .npy type '<c8' are not read");
  EXPECT_EQ(message_of(file(dict("|O", "(2,)"), data)), "elements of the .npy type '|O' are not read");
  EXPECT_EQ(message_of(file(dict("|V1", "(2,)"), data)), "one-byte reals may be f8e4m3 or f8e5m2");
  EXPECT_EQ(message_of(file("{'descr': '<f4'}", data)),
            "malformed .npy header: one of descr, fortran_order and shape is missing at character 16");
  EXPECT_EQ(message_of(file("{'descr': [('a', '<f4')]}", data)), "malformed .npy header: expected ''' at character 10");
  EXPECT_EQ(message_of(file(dict("<i4", "(2,)"), data), DType::f32), "i32 elements where f32 is wanted");
  EXPECT_EQ(message_of(file(dict("<f4", "(2,)"), data), DType::bool_), "f32 elements where bool is wanted");
}

TEST(Npy, EmptyArraysAskForNoMemory) {
  const HostArray array = parse_npy(file(dict("<f4", "(0, 4611686018427387904, 4)"), ""));
  EXPECT_EQ(ir::element_count(array), 0);
}

TEST(Npy, FilesAreWrittenWholeAndReadBack) {
  const std::string path = testing::TempDir() + "tenon_npy_test_" + std::to_string(getpid()) + ".npy";
  HostArray array = ir::make_array(DType::f64, {2});
  ir::set_real(array, 1, 0.1);
  write_npy(path, array);
  EXPECT_EQ(read_npy(path).bytes, array.bytes);
  std::remove(path.c_str());
  try {
    read_npy(path);
    FAIL() << "a missing file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "cannot open the file: No such file or directory");
    EXPECT_EQ(error.place().file, path);
  }
}

}  // namespace
}  // namespace tenon
