// NVRTC: found in the right order, compiles for every architecture, reports resources, and its errors show the source.
#include "runtime/cuda/nvrtc.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "tests/runtime/installed_nvrtc.h"
#include "tests/runtime/temporary_folder.h"

namespace tenon::runtime::cuda {
namespace {

const char* const scale_source = R"(extern "C" __global__ void __launch_bounds__(256)
scale(const float* __restrict__ x, float* __restrict__ y, float a, long n) {
  long i = blockIdx.x * 256l + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
)";

Nvrtc nvrtc_that_knows(std::vector<int> architectures) {
  Nvrtc nvrtc;
  nvrtc.major = 12;
  nvrtc.minor = 4;
  nvrtc.architectures = std::move(architectures);
  return nvrtc;
}

template <typename Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, "");
}

class Compiling : public testing::Test {
 protected:
  void SetUp() override {
    nvrtc = test::installed_nvrtc();
    if (!nvrtc) GTEST_SKIP() << "no NVRTC on this machine";
  }
  std::shared_ptr<const Nvrtc> nvrtc;
};

TEST_F(Compiling, TheLibraryIsIdentifiedByVersionAndBuild) {
  EXPECT_GE(nvrtc->major, 12);
  EXPECT_GE(nvrtc->build_id.size(), 8u);
  EXPECT_EQ(nvrtc->path.front(), '/');
  EXPECT_TRUE(std::is_sorted(nvrtc->architectures.begin(), nvrtc->architectures.end()));
  EXPECT_TRUE(nvrtc->identity().starts_with("nvrtc " + std::to_string(nvrtc->major) + ".")) << nvrtc->identity();
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Some 1,700 pages of 4 KB otherwise, taken from the system and returned each time.
TEST_F(Compiling, MemoryIsKeptFromOneCompilationToTheNext) {
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  for (int i = 0; i < 3; ++i) compile(*nvrtc, scale_source, "scale", "sm_80", {});
  const auto before = faults();
  compile(*nvrtc, scale_source, "scale", "sm_80", {});
  EXPECT_LT(faults() - before, 600);
}
#endif

TEST_F(Compiling, AKernelCompilesToMachineCodeForEveryArchitecture) {
  for (const std::string arch : {"sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120"}) {
    const int number = std::stoi(arch.substr(3));
    const auto& known = nvrtc->architectures;
    if (std::find(known.begin(), known.end(), number) == known.end()) continue;
    const auto compiled = compile(*nvrtc, scale_source, "scale", arch);
    ASSERT_GT(compiled.cubin.size(), 100u) << arch;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(compiled.cubin.data()), 4),
              "\x7f"
              "ELF")
        << arch;
    EXPECT_TRUE(compiled.ptx.empty());
    EXPECT_TRUE(compiled.warnings.empty()) << compiled.warnings.front();
    EXPECT_GT(compiled.resources.registers, 0) << compiled.log;
    EXPECT_EQ(compiled.resources.spill_store_bytes, 0);
    EXPECT_GT(compiled.milliseconds, 0);
  }
}

TEST_F(Compiling, PtxIsReturnedOnRequest) {
  CompileOptions options;
  options.want_ptx = true;
  const auto compiled = compile(*nvrtc, scale_source, "scale", "sm_90a", options);
  EXPECT_NE(compiled.ptx.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(compiled.ptx.find(".visible .entry scale"), std::string::npos);
  EXPECT_EQ(compiled.ptx.find('\0'), std::string::npos);
}

TEST_F(Compiling, TheSameSourceGivesTheSameCode) {
  EXPECT_EQ(compile(*nvrtc, scale_source, "scale", "sm_80").cubin,
            compile(*nvrtc, scale_source, "scale", "sm_80").cubin);
}

TEST_F(Compiling, MultiplyAndAddAreContractedUnlessAskedNotTo) {
  const char* source = R"(extern "C" __global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; })";
  CompileOptions options;
  options.want_ptx = true;
  EXPECT_NE(compile(*nvrtc, source, "f", "sm_80", options).ptx.find("fma.rn.f32"), std::string::npos);
  options.fmad = false;
  EXPECT_EQ(compile(*nvrtc, source, "f", "sm_80", options).ptx.find("fma.rn.f32"), std::string::npos);
}

TEST_F(Compiling, AnErrorShowsTheLogAndTheLinesAroundIt) {
  const char* source = "extern \"C\" __global__ void f(int* a) {\n  int b = 1;\n  a[0] = b + nowhere;\n}\n";
  const auto error = error_of([&] { compile(*nvrtc, source, "f", "sm_90a"); });
  EXPECT_EQ(error.kind(), ErrorKind::compile);
  const std::string text = error.what();
  EXPECT_NE(text.find("could not compile f for sm_90a: NVRTC_ERROR_COMPILATION"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel.cu(3): error: identifier \"nowhere\" is undefined"), std::string::npos) << text;
  EXPECT_NE(text.find("     2 |   int b = 1;\n>    3 |   a[0] = b + nowhere;\n     4 | }"), std::string::npos) << text;
}

// The planner bounds pointers; dimension names may still be too many for NVRTC 12.0, which has an eighth of the room.
TEST_F(Compiling, ParametersBeyondTheirSpaceAreALimitAndNoDefect) {
  std::string source = "extern \"C\" __global__ void wide(float* y";
  for (int i = 0; i < 4100; ++i) source += ", long long n" + std::to_string(i);
  source += ") { *y = n4099; }";
  const Error error = error_of([&] { compile(*nvrtc, source, "wide", "sm_90a"); });
  EXPECT_EQ(error.kind(), ErrorKind::resource);
  EXPECT_NE(error.message().find("parameter space"), std::string::npos) << error.what();
  EXPECT_EQ(error.remedy(), "use NVRTC and a driver of CUDA 12.1 or later, or a graph with fewer dimension names");
}

TEST_F(Compiling, AnUnknownFlagIsNamed) {
  CompileOptions options;
  options.extra = {"--no-such-flag"};
  const auto error = error_of([&] { compile(*nvrtc, scale_source, "scale", "sm_90a", options); });
  EXPECT_EQ(error.kind(), ErrorKind::compile);
  EXPECT_NE(error.message().find("--no-such-flag"), std::string::npos) << error.message();
}

TEST_F(Compiling, AnUnknownArchitectureIsUnsupported) {
  for (const char* arch : {"sm_20", "sm_", "", "x86-64"}) {
    const auto error = error_of([&] { compile(*nvrtc, scale_source, "scale", arch); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << arch;
    EXPECT_NE(error.remedy().find("sm_90"), std::string::npos);
  }
}

TEST_F(Compiling, WarningsAndSpillsAreReported) {
  const char* source = R"(extern "C" __global__ void __launch_bounds__(1024, 2) spill(const float* a, float* b, int n) {
  int unused;
  float q[100];
#pragma unroll
  for (int j = 0; j < 100; ++j) q[j] = a[threadIdx.x * 100 + j];
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int j = 0; j < 100; ++j) q[j] = q[j] * q[(j * 7) % 100] + 1;
  }
#pragma unroll
  for (int j = 0; j < 100; ++j) b[threadIdx.x * 100 + j] = q[j];
})";
  const auto compiled = compile(*nvrtc, source, "spill", "sm_80");
  EXPECT_EQ(compiled.resources.registers, 32);
  EXPECT_GT(compiled.resources.spill_store_bytes, 0);
  EXPECT_GT(compiled.resources.spill_load_bytes, 0);
  EXPECT_GT(compiled.resources.stack_bytes, 0);
  ASSERT_EQ(compiled.warnings.size(), 1u);
  EXPECT_NE(compiled.warnings[0].find("\"unused\" was declared but never referenced"), std::string::npos);
}

TEST_F(Compiling, StaticSharedMemoryAndBarriersAreReportedForTheEntryAsked) {
  const char* source = R"(extern "C" __global__ void plain(float* x) { x[0] = 1; }
extern "C" __global__ void tile(float* x) {
  __shared__ float t[96];
  t[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = t[95 - threadIdx.x];
})";
  const auto tile = compile(*nvrtc, source, "tile", "sm_80").resources;
  EXPECT_EQ(tile.shared_bytes, 384);
  EXPECT_EQ(tile.barriers, 1);
  const auto plain = compile(*nvrtc, source, "plain", "sm_80").resources;
  EXPECT_EQ(plain.shared_bytes, 0);
  EXPECT_EQ(plain.barriers, 0);
}

TEST_F(Compiling, ThreadsCompileAtTheSameTime) {
  const auto expected = compile(*nvrtc, scale_source, "scale", "sm_80").cubin;
  std::vector<std::vector<std::byte>> made(4);
  std::vector<std::thread> threads;
  for (auto& cubin : made) {
    threads.emplace_back([&] { cubin = compile(*nvrtc, scale_source, "scale", "sm_80").cubin; });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& cubin : made) EXPECT_EQ(cubin, expected);
}

TEST_F(Compiling, TheBuiltinsComeFromTheFolderOfTheLibrary) {
  compile(*nvrtc, scale_source, "scale", "sm_80");
  const auto folder = std::filesystem::path(nvrtc->path).parent_path().string();
  std::ifstream maps("/proc/self/maps");
  int seen = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libnvrtc-builtins") == std::string::npos) continue;
    ++seen;
    EXPECT_NE(line.find(" " + folder + "/libnvrtc-builtins"), std::string::npos) << line;
  }
  EXPECT_GT(seen, 0);
}

TEST_F(Compiling, OneThatIsLoadedAlreadyIsTakenFirst) {
  std::vector<NvrtcAttempt> attempts;
  const auto again = open_nvrtc({}, &attempts);
  EXPECT_EQ(again->path, nvrtc->path);
  ASSERT_FALSE(attempts.empty());
  EXPECT_NE(attempts.back().where.find("(already loaded)"), std::string::npos);
  EXPECT_EQ(attempts.back().outcome, "opened");
}

TEST_F(Compiling, AFolderGivenAsPathIsSearched) {
  NvrtcSearch search;
  search.path = std::filesystem::path(nvrtc->path).parent_path().string();
  EXPECT_EQ(open_nvrtc(search)->path, nvrtc->path);
}

TEST(FindingNvrtc, APathThatHoldsNoneIsAnErrorAndNothingElseIsTried) {
  const test::TemporaryFolder folder;
  test::write_text(folder.path() / "libnvrtc.so.13", "/* GNU ld script */");
  NvrtcSearch search = test::nvrtc_search();
  search.path = folder.path().string();
  std::vector<NvrtcAttempt> attempts;
  const auto error = error_of([&] { open_nvrtc(search, &attempts); });
  EXPECT_EQ(error.kind(), ErrorKind::no_device);
  EXPECT_NE(error.remedy().find("pip install nvidia-cuda-nvrtc"), std::string::npos);
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_NE(attempts[0].outcome.find("file too short"), std::string::npos) << attempts[0].outcome;
  EXPECT_NE(error.message().find(attempts[0].where), std::string::npos);
}

TEST(FindingNvrtc, ALibraryThatIsNotNvrtcIsRefused) {
  NvrtcSearch search;
  search.path = "libm.so.6";
  const auto error = error_of([&] { open_nvrtc(search); });
  EXPECT_NE(error.message().find("does not export nvrtcVersion"), std::string::npos) << error.message();
}

// Every file that was tried, in order, up to the first that opened.
std::vector<std::string> files_tried(const NvrtcSearch& search, bool& found_by_soname) {
  std::vector<NvrtcAttempt> attempts;
  try {
    open_nvrtc(search, &attempts);
  } catch (const Error&) {
    // Nothing here need have an NVRTC.
  }
  std::vector<std::string> tried;
  found_by_soname = false;
  for (const auto& attempt : attempts) {
    if (attempt.where.front() == '/') tried.push_back(attempt.where);
    found_by_soname |= attempt.where.front() != '/' && attempt.outcome == "opened";
  }
  return tried;
}

// Exits with 0 when the places were tried in the documented order.
[[noreturn]] void try_every_place(const std::filesystem::path& root) {
  const auto fake = [&](const std::string& place) {
    std::filesystem::create_directories(root / place);
    test::write_text(root / place / "libnvrtc.so.13", "no library");
    return (root / place / "libnvrtc.so.13").string();
  };
  std::vector<std::string> in_order = {
      fake("extra"),
      fake("venv/lib/python3.12/site-packages/nvidia/cu13/lib"),
      fake("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib"),
      fake("venv/lib/python3.11/dist-packages/nvidia/cu13/lib"),
      fake("conda/lib"),
      fake("cuda/lib64"),
  };
  NvrtcSearch search;
  search.extra_folders = {(root / "extra").string()};
  search.python_prefixes = {(root / "venv").string()};
  search.conda_prefix = (root / "conda").string();
  search.toolkit_folders = {(root / "cuda").string()};
  bool found_by_soname = false;
  const auto tried = files_tried(search, found_by_soname);
  if (found_by_soname) in_order.pop_back();  // the loader's comes before toolkits
  std::_Exit(tried == in_order ? 0 : 1);
}

// In a process of its own: where an NVRTC is loaded already, no place is tried.
TEST(FindingNvrtc, WheelsCondaTheLoaderAndToolkitsAreTriedInThisOrder) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const test::TemporaryFolder folder;
  EXPECT_EXIT(try_every_place(folder.path()), testing::ExitedWithCode(0), "");
}

TEST(NvrtcLog, ResourcesAreThoseOfTheNamedKernel) {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a_long_name' for 'sm_90a'\n"
      "ptxas info    : Function properties for a_long_name\n"
      "ptxas         .     1136 bytes stack frame, 2000 bytes spill stores, 2416 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 1136 bytes cumulative stack size\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers, 512 bytes smem, 400 bytes cmem[0]\n";
  EXPECT_EQ(resources_in(log, "a"), (ResourceUse{168, 16, 512, 0, 0, 0}));
  EXPECT_EQ(resources_in(log, "a_long_name"), (ResourceUse{32, 1, 0, 1136, 2000, 2416}));
  EXPECT_EQ(resources_in(log, "b"), ResourceUse{});
}

TEST(NvrtcLog, IgnoredInstructionsCountAsWarningsThoughPtxasCallsThemInfo) {
  const std::string log =
      "kernel.cu(1): warning #177-D: variable \"b\" was declared but never referenced\n"
      "  int b;\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register "
      "requirements.\n"
      "ptxas warning : Registers are spilled to local memory in function 'f'\n"
      "ptxas info    : Used 32 registers\n";
  const auto warnings = warnings_in(log);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_TRUE(warnings[1].find("C7508") != std::string::npos);
}

TEST(Flags, AreExactAndInAFixedOrder) {
  auto nvrtc = nvrtc_that_knows({90});
  CompileOptions options;
  options.fmad = false;
  options.extra = {"-DX=1"};
  const std::vector<std::string> expected = {
      "--gpu-architecture=sm_90a",
      "--std=c++17",
      "--device-as-default-execution-space",
      "--fmad=false",
      "--ftz=false",
      "--prec-div=true",
      "--prec-sqrt=true",
      "--ptxas-options=-v",
      "-minimal",
      "-DX=1",
  };
  EXPECT_EQ(compile_flags(nvrtc, "sm_90a", options), expected);
  nvrtc.major = 13;
  nvrtc.minor = 0;
  const auto newer = compile_flags(nvrtc, "sm_90a", options);
  EXPECT_EQ(newer[newer.size() - 3], "--no-cache");
  nvrtc.major = 12;
  nvrtc.minor = 3;
  const auto older = compile_flags(nvrtc, "sm_90a", options);
  EXPECT_EQ(std::count(older.begin(), older.end(), "-minimal"), 0);  // not before 12.4
}

TEST(Architecture, IsExactWhereKnownAndElseAnOlderOneOfTheSameGeneration) {
  const auto nvrtc = nvrtc_that_knows({75, 80, 86, 89, 90, 100, 103, 120});
  EXPECT_EQ(arch_for(7, 5, nvrtc), "sm_75");
  EXPECT_EQ(arch_for(8, 0, nvrtc), "sm_80");
  EXPECT_EQ(arch_for(8, 7, nvrtc), "sm_86");
  EXPECT_EQ(arch_for(9, 0, nvrtc), "sm_90a");
  EXPECT_EQ(arch_for(10, 0, nvrtc), "sm_100a");
  EXPECT_EQ(arch_for(10, 3, nvrtc), "sm_103a");
  EXPECT_EQ(arch_for(10, 1, nvrtc), "sm_100");
  EXPECT_EQ(arch_for(12, 0, nvrtc), "sm_120");
  EXPECT_EQ(arch_for(12, 1, nvrtc), "sm_120");
  EXPECT_EQ(error_of([&] { arch_for(13, 0, nvrtc); }).kind(), ErrorKind::unsupported);
  EXPECT_EQ(error_of([&] { arch_for(7, 0, nvrtc); }).remedy(),
            "install a newer NVRTC; this one knows sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_103 sm_120");
}

}  // namespace
}  // namespace tenon::runtime::cuda
