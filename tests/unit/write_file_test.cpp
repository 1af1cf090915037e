// A file that is written appears whole, and a signal leaves nothing of it.
#include "src/api/write_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tenon/error.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

struct WriteFile : testing::Test {
  WriteFile() : folder(fs::temp_directory_path() / ("tenon_write_" + std::to_string(::getpid()))) {
    fs::create_directories(folder);
  }
  ~WriteFile() override { fs::remove_all(folder); }

  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::string content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
    return names;
  }

  fs::path folder;
};

TEST_F(WriteFile, AppearsWhenItIsFinished) {
  write_file(path("f"), "old");
  {
    FileWriter file(path("f"));
    file.write("new ");
    EXPECT_EQ(content("f"), "old");
    EXPECT_EQ(files().size(), 2U);
    file.write("text");
    file.finish();
  }
  EXPECT_EQ(content("f"), "new text");
  EXPECT_EQ(files(), std::vector<std::string>{"f"});
}

TEST_F(WriteFile, LeavesNothingWhenItIsGivenUp) {
  {
    FileWriter file(path("f"));
    file.write("half");
    EXPECT_EQ(files().size(), 1U);
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(WriteFile, LeavesNothingWhenASignalEndsTheProcess) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    const pid_t child = ::fork();
    if (child == 0) {
      remove_temporary_on_signals();
      FileWriter file(path("f"));
      file.write("half");
      if (files().size() == 1) (void)std::raise(signal);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_TRUE(files().empty()) << signal;
  }
}

TEST_F(WriteFile, AnIgnoredSignalStaysIgnored) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)std::signal(SIGHUP, SIG_IGN);
    remove_temporary_on_signals();
    (void)std::raise(SIGHUP);
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST_F(WriteFile, WhatCannotBeWrittenIsNamed) {
  try {
    write_file(path("absent/f"), "text");
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.message(), "cannot write '" + path("absent/f") + "': No such file or directory");
    EXPECT_EQ(error.remedy(), "check the path, its permissions and the space left");
  }
}

}  // namespace
}  // namespace tenon
