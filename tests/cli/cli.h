// The `tenon` command as a person uses it: its output and exit code, and a folder with files for it.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace tenon {

struct Outcome {
  int code = -1;
  std::string text;  ///< stdout and stderr, or what `redirections` say
};

inline Outcome outcome_of(const std::string& command) {
  Outcome outcome;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::system_error(errno, std::generic_category(), "no process for '" + command + "'");
  char buffer[4096];
  for (std::size_t count; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, count);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

// `environment`: assignments before the command, "TENON_CACHE_DIR=folder".
// "2>&1 >/dev/full": stderr alone is read, stdout is a full disk.
inline Outcome tenon(const std::string& arguments, const std::string& environment = "",
                     const std::string& redirections = "2>&1") {
  return outcome_of(environment + " " + TENON_CLI + " " + arguments + " " + redirections);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Cli : public ::testing::Test {
 protected:
  Cli() : folder_(std::filesystem::temp_directory_path() / ("tenon_cli_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Cli() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
    return path(name);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string gelu() const {
    return file("gelu.tn", "graph gelu(x: f32[rows, 64]) {\n  y = gelu(x, approximate=\"tanh\")\n  return y\n}\n");
  }

 private:
  std::filesystem::path folder_;
};

inline bool has_nvrtc() {
  return tenon("doctor --json").text.find("\"what\": \"NVRTC\",\n      \"found\": true") != std::string::npos;
}

}  // namespace tenon
