// Tuned executables: the same results, schedules that are found again, candidates that are all right.
#include "src/driver/tune.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "runtime/memory.h"
#include "src/driver/pipeline.h"
#include "tests/harness/targets.h"
#include "tests/runtime/temporary_folder.h"

namespace tenon::test {
namespace {

// A row reduction, a column reduction, and a map that transposes.
const char* const kGraph = R"(graph g(x: f32[rows, 384]) {
  a = mul(exp(x), 2)
  b = softmax(a)
  c = sum(mul(x, x), axis=0)
  d = add(transpose(x), 1)
  return b, c, d
})";

class Tuned : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    require(GetParam());
    options.cache_dir = (folder.path() / "cache").string();
  }
  Executable compiled() const {
    const auto backend = src::open_backend(GetParam(), options);
    return src::make_executable(src::plan(ir::parse(kGraph), *backend, options), backend, options);
  }

  const TemporaryFolder folder;
  Options options = default_options();
};

TEST_P(Tuned, RunsGiveTheSameResults) {
  if (IsSkipped() || HasFatalFailure()) return;
  const Array x = Array::normal({100, 384}, 1);
  const auto expected = compiled()({x});
  options.tune = true;
  const Executable tuned = compiled();
  for (int run = 0; run < 2; ++run) {
    const auto results = tuned({x});
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto* got = reinterpret_cast<const float*>(results[i].bytes.data());
      const auto* wanted = reinterpret_cast<const float*>(expected[i].bytes.data());
      for (std::size_t at = 0; at < results[i].bytes.size() / sizeof(float); ++at)
        ASSERT_NEAR(got[at], wanted[at], 1e-4f * std::abs(wanted[at]) + 1e-6f) << "output " << i << ", element " << at;
    }
  }
}

// Every candidate computes the right thing, winners are kept, and a second search finds nothing left to do.
TEST_P(Tuned, KernelsAreSearchedOnce) {
  if (IsSkipped() || HasFatalFailure()) return;
  options.disable = {"packing"};  // what wins may join a pack, whose members share a block's threads
  const auto backend = src::open_backend(GetParam(), options);
  const Executable executable = src::make_executable(src::plan(ir::parse(kGraph), *backend, options), backend, options);
  const auto record = executable.impl().record_for({{"rows", 100}});
  std::vector<runtime::Memory> memory;
  const auto buffer = [&](std::vector<std::int64_t> shape) {
    std::int64_t bytes = 4;
    for (const std::int64_t extent : shape) bytes *= extent;
    memory.push_back(runtime::allocate(*backend, bytes));
    return Buffer{memory.back().get(), DType::f32, std::move(shape)};
  };
  const Array x = Array::normal({100, 384}, 2);
  const Buffer inputs[] = {buffer({100, 384})};
  backend->copy_in(inputs[0].data, x.bytes.data(), x.bytes.size(), nullptr);
  const Buffer outputs[] = {buffer({100, 384}), buffer({384}), buffer({384, 100})};
  const auto tunings = src::open_tunings(options);
  src::TuneSettings settings;
  settings.seconds = 0.001;
  std::size_t told = 0, tried = 0;
  settings.progress = [&](const std::string&, std::size_t, std::size_t) { ++told; };
  const auto found = src::tune(executable.impl(), *record, inputs, outputs, *tunings, options, settings);
  ASSERT_FALSE(found.empty());
  for (const src::KernelTuning& tuning : found) {
    tried += tuning.trials.size();
    EXPECT_GE(tuning.trials.size(), 2u) << tuning.kernel;
    EXPECT_LE(tuning.best_us(), tuning.heuristic_us()) << tuning.kernel;
    for (const src::Trial& trial : tuning.trials)
      EXPECT_TRUE(trial.right()) << tuning.kernel << ", " << codegen::print(trial.schedule) << ": " << trial.different
                                 << " elements differ " << trial.refused;
  }
  EXPECT_EQ(told, tried);
  const auto again = src::open_tunings(options);
  EXPECT_TRUE(src::tune(executable.impl(), *record, inputs, outputs, *again, options, settings).empty());
  const Executable later = src::make_executable(src::plan(ir::parse(kGraph), *backend, options), backend, options);
  std::size_t won = 0;
  for (const KernelInfo& kernel : later.kernels({{"rows", 100}}))
    for (const src::KernelTuning& tuning : found)
      won += tuning.kernel == kernel.name && codegen::print(tuning.trials[tuning.best].schedule) == kernel.schedule;
  EXPECT_EQ(won, found.size());
}

// Those of long rows and of odd ones, of columns of odd rows, and of vectors spread along a batch.
TEST_P(Tuned, EveryCandidateIsRight) {
  if (IsSkipped() || HasFatalFailure()) return;
  struct Case {
    const char* text;
    std::vector<std::int64_t> x, y;
  };
  const Case cases[] = {
      {"graph g(x: f32[3, 40000]) { y = softmax(x)\n return y }", {3, 40000}, {3, 40000}},
      {"graph g(x: f32[3, 40001]) { y = softmax(x)\n return y }", {3, 40001}, {3, 40001}},
      {"graph g(x: f32[70, 4095]) { y = sum(x, axis=1)\n return y }", {70, 4095}, {70}},
      {"graph g(x: f32[1500, 301]) { y = sum(x, axis=0)\n return y }", {1500, 301}, {301}},
      {"graph g(x: f32[8, 64, 256]) { y = mul(x, slice(x, start=[0], stop=[1]))\n return y }",
       {8, 64, 256},
       {8, 64, 256}},
  };
  const auto backend = src::open_backend(GetParam(), options);
  for (const Case& each : cases) {
    const Executable executable =
        src::make_executable(src::plan(ir::parse(each.text), *backend, options), backend, options);
    std::vector<runtime::Memory> memory;
    const auto buffer = [&](const std::vector<std::int64_t>& shape) {
      std::int64_t bytes = 4;
      for (const std::int64_t extent : shape) bytes *= extent;
      memory.push_back(runtime::allocate(*backend, bytes));
      return Buffer{memory.back().get(), DType::f32, shape};
    };
    const Array x = Array::normal(each.x, 3);
    const Buffer inputs[] = {buffer(each.x)}, outputs[] = {buffer(each.y)};
    backend->copy_in(inputs[0].data, x.bytes.data(), x.bytes.size(), nullptr);
    const auto tunings = src::open_tunings(options);
    src::TuneSettings settings;
    settings.seconds = 0.001;
    for (const src::KernelTuning& tuning :
         src::tune(executable.impl(), *executable.impl().record_for({}), inputs, outputs, *tunings, options, settings))
      for (const src::Trial& trial : tuning.trials)
        EXPECT_TRUE(trial.right()) << each.text << "\n"
                                   << codegen::print(trial.schedule) << ": " << trial.different << " elements differ "
                                   << trial.refused;
  }
}

TENON_ON_EACH_TARGET(Tuned);

}  // namespace
}  // namespace tenon::test
