// The prelude inside the library is the prelude in the source tree.
#include "codegen/prelude/prelude.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "codegen/emit/cuda/text/parts.h"
#include "tenon/error.h"

namespace tenon::codegen {
namespace {

namespace fs = std::filesystem;

TEST(Prelude, HoldsEveryFileByteForByte) {
  std::vector<std::string> on_disk, embedded;
  std::error_code absent;  // git keeps no empty folder: then nothing may be embedded either
  for (const fs::directory_entry& entry : fs::directory_iterator(TENON_SOURCE_DIR "/codegen/prelude", absent)) {
    if (entry.path().extension() != ".cuh") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    on_disk.push_back(entry.path().filename());
    EXPECT_EQ(prelude_file(on_disk.back()), text);
  }
  for (const PreludeFile& file : prelude_files()) embedded.emplace_back(file.name);
  std::sort(on_disk.begin(), on_disk.end());
  EXPECT_EQ(embedded, on_disk);
}

// A line "//? b" begins what is of that piece alone, "//?" what is of both.
TEST(Prelude, PiecesMayShareTheirText) {
  const std::vector<cuda::Piece> pieces = cuda::pieces_of(R"(about the file
//@ before
zero
//@ a also_a | b
one
//? a
two
//? b
three
//?
four
//@ behind
five
)");
  ASSERT_EQ(pieces.size(), 4U);
  EXPECT_EQ(pieces[0].text, "zero\n");
  EXPECT_EQ(pieces[1].provides, (std::vector<std::string>{"a", "also_a"}));
  EXPECT_EQ(pieces[1].text, "one\ntwo\nfour\n");
  EXPECT_EQ(pieces[2].provides, std::vector<std::string>{"b"});
  EXPECT_EQ(pieces[2].text, "one\nthree\nfour\n");
  EXPECT_EQ(pieces[3].text, "five\n");
}

TEST(Prelude, AnUnknownNameIsADefectOfOurs) {
  try {
    prelude_file("absent.cuh");
    FAIL() << "found a file that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_NE(error.message().find("absent.cuh"), std::string::npos);
  }
}

}  // namespace
}  // namespace tenon::codegen
