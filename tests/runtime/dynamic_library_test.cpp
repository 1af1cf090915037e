// Libraries that are found by name: never in the current folder, whatever the environment says.
#include "runtime/dynamic_library.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/runtime/temporary_folder.h"

namespace tenon::runtime {
namespace {

constexpr const char* kPlanted = "libtenon_planted.so.1";

// Run in a process of its own, since the loader reads LD_LIBRARY_PATH when a process begins.
TEST(DynamicLibrary, DISABLED_OpensThePlanted) {
  std::string failure;
  const auto library = DynamicLibrary::open(kPlanted, DynamicLibrary::Lifetime::scoped, &failure);
  ::_exit(library ? 10 : failure.find("lies in the current folder alone") != std::string::npos ? 11 : 12);
}

int opened_with(const std::string& library_path, const std::string& folder) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const int status = std::system(
      ("cd '" + folder + "' && LD_LIBRARY_PATH='" + library_path + "' '" + program +
       "' --gtest_also_run_disabled_tests --gtest_filter=DynamicLibrary.DISABLED_OpensThePlanted >/dev/null")
          .c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(DynamicLibrary, IsNotOpenedFromTheCurrentFolder) {
  if (!std::filesystem::exists(TENON_NVTX_TOOL)) GTEST_SKIP() << "the programs were copied without " TENON_NVTX_TOOL;
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path().string();
  std::filesystem::copy_file(TENON_NVTX_TOOL, folder + "/" + kPlanted);
  EXPECT_EQ(opened_with("", folder), 12);            // found nowhere
  EXPECT_EQ(opened_with(folder, "/"), 10);           // in a folder that is named
  EXPECT_EQ(opened_with("/nowhere:", folder), 11);   // an empty element
  EXPECT_EQ(opened_with(".", folder), 11);           // the current folder by name
  EXPECT_EQ(opened_with(":" + folder, folder), 10);  // there, and in one that is named
}

}  // namespace
}  // namespace tenon::runtime
