// .safetensors files: what is written is read back where it lies, files of the format's own library are read, and
// anything else is refused by name.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "src/api/safetensors_header.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

std::string file(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size() & 0xff);
  bytes[1] = static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

std::string text_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string message_of(const std::string& bytes) {
  try {
    src::read_safetensors_header(bytes, "w.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.place().file, "w.safetensors");
    EXPECT_FALSE(error.remedy().empty());
    return error.message();
  }
  return "no error";
}

class Safetensors : public testing::Test {
 protected:
  void TearDown() override { std::remove(path.c_str()); }
  const std::string path = testing::TempDir() + "tenon_safetensors_test.safetensors";
};

TEST_F(Safetensors, ArraysOfEveryDTypeComeBack) {
  Weights weights;
  for (const DType dtype : kAllDTypes)
    weights.add("of." + std::string(name_of(dtype)), Array::from({0, 1, 1, 0, 1, 1}, {2, 1, 3}).cast(dtype));
  weights.add("none", Array::zeros({0, 4}));
  weights.add("one", Array::from({3}, {}));
  save_safetensors(path, weights);
  const Weights back = load_safetensors(path);
  ASSERT_EQ(back.size(), weights.size());
  for (const auto& [name, view, memory] : weights) {
    EXPECT_EQ(back[name].dtype, view.dtype);
    EXPECT_EQ(back[name].shape, view.shape);
    EXPECT_EQ(back[name].array().bytes, view.array().bytes) << name;
  }
}

TEST_F(Safetensors, WhatIsWrittenLiesAlignedInTheMappedFile) {
  save_safetensors(path, {{"odd", Array::zeros({3}, DType::u8)},
                          {"w", Array::zeros({4, 4})},
                          {"half", Array::zeros({3}, DType::f16)},
                          {"v", Array::zeros({2, 4}, DType::bf16)}});
  std::string names;
  for (const auto& [name, view, memory] : load_safetensors(path)) {
    names += name + " ";
    const auto address = reinterpret_cast<std::uintptr_t>(view.data);
    EXPECT_EQ(address % (view.byte_size() % 16 == 0 ? 16 : static_cast<std::size_t>(size_of(view.dtype))), 0) << name;
  }
  EXPECT_EQ(names, "w v half odd ");
}

TEST_F(Safetensors, TheMappedFileLivesAsLongAsWhatIsReadOfIt) {
  save_safetensors(path, {{"w", Array::from({1, 2, 3, 4}, {4})}});
  Weights some;
  {
    const Weights all = load_safetensors(path);
    const Weights::Entry* entry = all.find("w");
    some.add("other", entry->view, entry->memory);
  }
  save_safetensors(path, some);  // into the place of the file that it reads
  EXPECT_EQ(some["other"].array().to<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(load_safetensors(path)["other"].array().to<float>(), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(Safetensors, AFileOfTheFormatsOwnLibraryIsRead) {
  const Weights weights = load_safetensors(TENON_SOURCE_DIR "/tests/unit/files/official.safetensors");
  ASSERT_EQ(weights.size(), 4U);
  EXPECT_EQ(weights["w"].array().to<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(weights["f"].array().to<std::int32_t>(), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(weights["layer.b"].array().to<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(weights["e"].shape, (std::vector<std::int64_t>{0, 4}));
}

TEST_F(Safetensors, NamesThatTheFormatCannotHoldAreRefused) {
  EXPECT_EQ(text_of([&] { save_safetensors(path, {{"__metadata__", Array::zeros({1})}}); }),
            "argument error: a tensor called '__metadata__'\n"
            "  help: a .safetensors file has that name for another thing: choose another one");
  EXPECT_EQ(text_of([&] { save_safetensors(path, {{"\xff", Array::zeros({1})}}); }),
            "argument error: the name '\\xff' is not UTF-8\n"
            "  help: give the array another name");
}

TEST_F(Safetensors, FilesThatCannotBeMappedAreRefused) {
  EXPECT_EQ(text_of([] { load_safetensors("/nowhere/w.safetensors"); }),
            "i/o error: cannot open the file: No such file or directory\n"
            "  at /nowhere/w.safetensors\n"
            "  help: check the path and its permissions");
  EXPECT_EQ(text_of([] { load_safetensors("/dev"); }),
            "i/o error: it is no regular file\n"
            "  at /dev\n"
            "  help: name a file that can be mapped into memory");
  std::ofstream{path};
  EXPECT_NE(text_of([&] { load_safetensors(path); }), "no error");
}

TEST(SafetensorsHeader, TensorsComeInTheOrderOfTheirElementsAndMetadataIsIgnored) {
  const auto entries = src::read_safetensors_header(
      file("{" + tensor("b", "U8", "[2]", "[4,6]") + ",\"__metadata__\":{\"format\":\"pt\"}," +
               tensor("a", "F32", "[]", "[0,4]") + "}   ",
           "abcdef"),
      "");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(entries[1].end - entries[1].begin, 2U);
  EXPECT_TRUE(src::read_safetensors_header(file("{}", ""), "").empty());
}

TEST(SafetensorsHeader, WhatDoesNotHoldIsNamed) {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return message_of(file("{" + tensor("w", dtype, shape, offsets) + "}", "12345678"));
  };
  EXPECT_EQ(one("F32", "[2]", "[0,8]"), "no error");
  EXPECT_EQ(one("U32", "[2]", "[0,8]"), "tensor 'w' has elements of the dtype 'U32', which Tenon has not");
  EXPECT_EQ(one("F32", "[3]", "[0,8]"), "tensor 'w' has 8 bytes, f32[3] needs 12");
  EXPECT_EQ(one("F32", "[4294967296,4294967296]", "[0,0]"),
            "tensor 'w' has 0 bytes, f32[4294967296, 4294967296] needs more than 2^50");
  EXPECT_EQ(one("F32", "[2]", "[0,12]"), "tensor 'w' lies at bytes 0 to 12 of 8");
  EXPECT_EQ(one("F32", "[0]", "[8,0]"), "tensor 'w' lies at bytes 8 to 0 of 8");
  EXPECT_EQ(one("F32", "[1]", "[4,8]"), "tensor 'w' begins at byte 4 of the elements, where what is before ends at 0");
  EXPECT_EQ(one("F32", "[1]", "[0,4]"), "the tensors end at byte 4 of the elements, the file at 8");
  EXPECT_EQ(one("F32", "[-2]", "[0,8]"), "tensor 'w' has a shape that is no list of whole numbers");
  EXPECT_EQ(one("F32", "[2.0]", "[0,8]"), "tensor 'w' has a shape that is no list of whole numbers");
  EXPECT_EQ(one("F32", "[18446744073709551615]", "[0,8]"), "tensor 'w' has a shape that is no list of whole numbers");
  EXPECT_EQ(one("F32", "2", "[0,8]"), "tensor 'w' has a shape that is no list");
  EXPECT_EQ(one("F32", "[2]", "[0]"), "tensor 'w' has not two data_offsets");
  EXPECT_EQ(one("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]", "[0,8]"),
            "tensor 'w' has a shape of more than " + std::to_string(kMaxRank) + " numbers");
  EXPECT_EQ(one("BOOL", "[8]", "[0,8]"), "bool 0 of tensor 'w' is 49");
  EXPECT_EQ(message_of(file("{\"w\":{\"dtype\":\"F32\",\"shape\":[0]}}", "")), "tensor 'w' has no data_offsets");
  EXPECT_EQ(message_of(file("{\"w\":[]}", "")), "tensor 'w' is no object");
  EXPECT_EQ(message_of(file("{\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":1}}", "")),
            "tensor 'w' has another key than dtype, shape and data_offsets: 'x'");
}

TEST(SafetensorsHeader, TensorsThatOverlapOrStandTwiceAreNamed) {
  EXPECT_EQ(message_of(file("{" + tensor("a", "U8", "[4]", "[0,4]") + "," + tensor("b", "U8", "[4]", "[2,6]") + "}",
                            "123456")),
            "tensor 'b' begins at byte 2 of the elements, where what is before ends at 4");
  EXPECT_EQ(message_of(file("{" + tensor("a", "U8", "[4]", "[0,4]") + "," + tensor("a", "U8", "[4]", "[4,8]") + "}",
                            "12345678")),
            "the header is no JSON object: the key 'a' stands twice in one object");
}

TEST(SafetensorsHeader, WhatIsNoSuchFileIsNamed) {
  EXPECT_EQ(message_of(""), "a file of 0 bytes is no .safetensors file");
  EXPECT_EQ(message_of(std::string("\x10\0\0\0\0\0\0\0{}", 10)), "a header of 16 bytes in a file of 10");
  EXPECT_EQ(message_of(std::string(8, '\xff')), "a header of 18446744073709551615 bytes");
  EXPECT_EQ(message_of(file("[]", "")), "the header does not begin with '{'");
  EXPECT_EQ(message_of(file("{\"a\"", "")), "the header is no JSON object: malformed JSON");
}

}  // namespace
}  // namespace tenon
