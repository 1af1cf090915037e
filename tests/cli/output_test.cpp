// What the command writes: into what is there, whole or not at all; and what it says where that fails.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "src/api/npy.h"
#include "tests/cli/cli.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

unsigned mode_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
}

// A pseudo-terminal, which a command may have as its stdout.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ >= 0 && ::grantpt(master_) == 0 && ::unlockpt(master_) == 0) path_ = ::ptsname(master_);
  }
  ~Terminal() { ::close(master_); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  const std::string& path() const { return path_; }

 private:
  int master_;
  std::string path_;
};

class CliOutput : public Cli {
 protected:
  CliOutput() { fs::create_directories(out()); }
  std::string out() const { return path("out"); }
  std::string out(const std::string& name) const { return path("out/" + name); }
  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(out())) ++count;
    return count;
  }
  std::string write_to(const std::string& path, const std::string& environment = "") const {
    return tenon("fmt " + gelu() + " -o " + path, environment).text;
  }
  std::string x() const {
    write_npy(path("x.npy"), ir::make_array(DType::f32, {2, 64}));
    return path("x.npy");
  }
};

const std::string kText = "graph gelu(x: f32[rows, 64]) {\n  y = gelu(x, approximate=\"tanh\")\n  return y\n}\n";

TEST_F(CliOutput, APipeStaysAPipe) {
  ASSERT_EQ(::mkfifo(out("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = content_of(out("pipe")); });
  EXPECT_EQ(write_to(out("pipe")), "");
  reader.join();
  EXPECT_EQ(got, kText);
  EXPECT_TRUE(fs::is_fifo(out("pipe")));
}

TEST_F(CliOutput, ALinkStaysALink) {
  std::ofstream(out("target")) << "old";
  fs::create_symlink("target", out("link"));
  fs::create_symlink("absent", out("dangling"));
  EXPECT_EQ(write_to(out("link")), "");
  EXPECT_TRUE(fs::is_symlink(out("link")));
  EXPECT_EQ(content_of(out("target")), kText);
  EXPECT_EQ(write_to(out("dangling")), "");
  EXPECT_TRUE(fs::is_symlink(out("dangling")));
  EXPECT_EQ(content_of(out("absent")), kText);
  EXPECT_EQ(files(), 4U);
}

TEST_F(CliOutput, AFileKeepsItsModeAndANewOneGetsTheUmasks) {
  std::ofstream(out("private")) << "old";
  ::chmod(out("private").c_str(), 0600);
  EXPECT_EQ(write_to(out("private")), "");
  EXPECT_EQ(content_of(out("private")), kText);
  EXPECT_EQ(mode_of(out("private")), 0600U);
  EXPECT_EQ(write_to(out("new"), "umask 027;"), "");
  EXPECT_EQ(mode_of(out("new")), 0640U);
  EXPECT_EQ(files(), 2U);
}

TEST_F(CliOutput, AFailureLeavesTheOldFileAndNothingElse) {
  std::ofstream(out("y.npy")) << "old";
  // No file may grow beyond 512 bytes, as on a full disk.
  const Outcome full = tenon("run " + gelu() + " --target cpu --random 1 --dim rows=64 --output y=" + out("y.npy"),
                             "trap '' XFSZ; ulimit -f 1; TENON_CACHE=0");
#ifdef TENON_WITH_CPU
  EXPECT_EQ(full.code, 1);
  EXPECT_TRUE(contains(full.text, "tenon: i/o error: cannot write '" + out("y.npy") + "': File too large\n" +
                                      "  help: check the path, its permissions and the space left\n"))
      << full.text;
#endif
  EXPECT_EQ(content_of(out("y.npy")), "old");
  EXPECT_TRUE(contains(write_to(out("absent/f.tn")), "cannot write '" + out("absent/f.tn") + "': No such file"));
  EXPECT_TRUE(contains(write_to(out()), "cannot write '" + out() + "': Is a directory"));
  EXPECT_EQ(files(), 1U);
}

TEST_F(CliOutput, AFullStandardOutputIsAnErrorOfEveryCommand) {
  const std::string graph = gelu();
  for (const std::string& command :
       {std::string("version"), std::string("ops"), std::string("switches"), std::string("doctor"),
        std::string("cache stats"), std::string("cache verify"), std::string("--help"), std::string("--version"),
        std::string("run --help"), "fmt " + graph, "dump --emit graph " + graph, "dump --emit json " + graph,
        "dump --target sm_90a " + graph, "explain --target sm_90a " + graph,
#ifdef TENON_WITH_CPU
        "run --target cpu --random 1 --dim rows=2 " + graph, "run --target cpu --random 1 --dim rows=2 --json " + graph,
        "bench --target cpu --seconds 0.01 --dim rows=2 " + graph
#endif
       }) {
    const Outcome outcome = tenon(command, "", "2>&1 >/dev/full");
    EXPECT_EQ(outcome.code, 1) << command;
    EXPECT_TRUE(contains(outcome.text, "i/o error: cannot write to standard output: No space left on device"))
        << command << ": " << outcome.text;
  }
}

#ifdef TENON_WITH_CPU
TEST_F(CliOutput, AnArrayGoesWhereATextGoes) {
  const std::string run = "run " + gelu() + " --target cpu --input x=" + x() + " --output y=";
  ASSERT_EQ(::mkfifo(out("pipe").c_str(), 0600), 0);
  static std::string got;  // outlives the thread
  std::thread reader([pipe = out("pipe")] { got = content_of(pipe); });
  EXPECT_EQ(tenon(run + out("pipe")).code, 0);
  EXPECT_TRUE(fs::is_fifo(out("pipe")));
  if (fs::is_fifo(out("pipe"))) {
    reader.join();
    EXPECT_EQ(parse_npy(got).shape, (std::vector<std::int64_t>{2, 64}));
  } else {
    reader.detach();  // it waits for a pipe that has no name any more
  }
  std::ofstream(out("target")) << "old";
  ::chmod(out("target").c_str(), 0600);
  fs::create_symlink("target", out("link"));
  EXPECT_EQ(tenon(run + out("link")).code, 0);
  EXPECT_TRUE(fs::is_symlink(out("link")));
  EXPECT_EQ(read_npy(out("target")).shape, (std::vector<std::int64_t>{2, 64}));
  EXPECT_EQ(mode_of(out("target")), 0600U);
  EXPECT_EQ(files(), 3U);
}

TEST_F(CliOutput, ADashIsStandardOutput) {
  const std::string run = "run " + gelu() + " --target cpu --input x=" + x();
  const Outcome piped = tenon(run + " --check --output y=-", "", "2>&1 >" + path("y.npy"));
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(read_npy(path("y.npy")).shape, (std::vector<std::int64_t>{2, 64}));
  EXPECT_TRUE(contains(piped.text, "check y: ok"));
  EXPECT_FALSE(fs::exists("-"));
  EXPECT_EQ(tenon("run " + gelu() + " --target cpu --input x=- --output y=-", "", "<" + x() + " 2>&1 >/dev/null").code,
            0);

  const Outcome twice = tenon(run + " --json --output y=-");
  EXPECT_EQ(twice.code, 2);
  EXPECT_TRUE(contains(twice.text, "standard output is to hold several things")) << twice.text;
  const Terminal terminal;
  const Outcome shown = tenon(run + " --output y=-", "", "2>&1 >" + terminal.path());
  EXPECT_EQ(shown.code, 2);
  EXPECT_TRUE(contains(shown.text, "--output to standard output, which is a terminal")) << shown.text;
}

TEST_F(CliOutput, ANpyFileThatIsNoneIsAnErrorForPeople) {
  const auto refusal = [&](const std::string& file, const std::string& environment = "") {
    const Outcome outcome = tenon("run " + gelu() + " --target cpu --input x=" + file, environment);
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    return outcome.text;
  };
  EXPECT_EQ(refusal(out()), "tenon: i/o error: it is a folder, not a file\n  at " + out() +
                                "\n  help: name a file that numpy.save wrote\n");
  std::ofstream(path("empty.npy")).flush();
  EXPECT_EQ(refusal(path("empty.npy")),
            "tenon: i/o error: the file is empty\n  at " + path("empty.npy") + "\n  help: write it with numpy.save\n");
  if (::geteuid() != 0) {
    ::chmod(x().c_str(), 0);
    EXPECT_TRUE(contains(refusal(path("x.npy")), "cannot open the file: Permission denied"));
    ::chmod(path("x.npy").c_str(), 0600);
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::string head = npy_head(ir::make_array(DType::f32, {1, 64}));
  head.replace(head.find("(1, 64), }            "), 22, "(268435456, 64), }    ");
  std::ofstream(path("huge.npy"), std::ios::binary) << head;
  fs::resize_file(path("huge.npy"), (std::uint64_t{64} << 30) + head.size());
  EXPECT_TRUE(contains(refusal(path("huge.npy"), "ulimit -v 16000000;"), "of the file do not fit in memory"));
#endif
}
#endif

TEST_F(CliOutput, ACubinIsNotShownOnATerminal) {
  const Terminal terminal;
  const Outcome outcome = tenon("dump " + gelu() + " --emit cubin --target sm_90a", "", "2>&1 >" + terminal.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text,
            "tenon: argument error: --emit cubin to a terminal\n"
            "  help: write it to a file with -o FILE, or send it to a pipe; --emit sass shows it as text\n");
}

TEST_F(CliOutput, ADisassemblerReadsACubinThatHasNoFile) {
  if (!has_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  fs::create_directories(path("tools"));
  std::ofstream(path("tools/nvdisasm")) << "#!/bin/sh\nhead -c 4 \"$1\" | tail -c 3\n";
  ::chmod(path("tools/nvdisasm").c_str(), 0700);
  const Outcome outcome =
      tenon("dump " + gelu() + " --emit sass --target sm_90a", "PATH=" + path("tools") + ":$PATH TMPDIR=" + out());
  EXPECT_EQ(outcome.text, "ELF\n");
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace tenon
