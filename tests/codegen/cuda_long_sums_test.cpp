// Long sums of generated CUDA on the host, by schedules that leave a thread hundreds of terms and more: equal ones, so
// that naive sums drift off in proportion to their length.
#include <cmath>

#include "codegen/schedule/schedule.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/harness/cuda_on_host.h"

namespace tenon::codegen {
namespace {

constexpr double kTenth = 0.1F;

// The greatest relative error of the results, which should be `expected`, where every element is 0.1.
double worst_error(const std::string& text, double expected, const Adjust& adjust, const Bindings& bindings = {}) {
  const CudaKernel run = one_cuda_kernel(text, bindings, adjust);
  std::vector<ir::HostArray> arrays;
  std::vector<void*> pointers;
  const auto add = [&](ir::ValueId value) {
    std::vector<std::int64_t> shape;
    for (const Dim& extent : run.plan.graph.type(value).shape) shape.push_back(extent.evaluate(bindings));
    arrays.push_back(ir::make_array(run.plan.graph.type(value).dtype, shape));
    for (std::int64_t i = 0; i < ir::element_count(arrays.back()); ++i) ir::set_real(arrays.back(), i, kTenth);
  };
  for (ir::ValueId input : run.plan.graph.inputs) add(input);
  const std::size_t inputs = arrays.size();
  for (ir::ValueId output : run.plan.graph.outputs) add(output);
  for (ir::HostArray& array : arrays) pointers.push_back(array.bytes.data());
  test::run_cuda_on_host(run.source, pointers, bindings);
  double worst = 0;
  for (std::size_t array = inputs; array < arrays.size(); ++array)
    for (std::int64_t i = 0; i < ir::element_count(arrays[array]); ++i)
      worst = std::max(worst, std::fabs(ir::get_real(arrays[array], i) / expected - 1));
  return worst;
}

Adjust with(RowMapping mapping, int threads, int vector, int unroll, int splits = 1) {
  return [=](Kernel& kernel) {
    ReduceSchedule& schedule = std::get<ReduceSchedule>(kernel.schedule);
    const bool online = is_online(schedule);
    schedule = {};
    schedule.team.mapping = mapping;
    schedule.team.threads = threads;
    schedule.vector = vector;
    schedule.keep = Reread{online, unroll};
    schedule.cut = in_parts(splits);
  };
}

TEST(CudaLongSums, ARowOfABlock) {
  const char* sum = "graph g(x: f32[2, 60000]) { y = sum(x, axis=1); return y }";
  for (const int unroll : {1, 4})
    for (const int vector : {1, 4})
      EXPECT_LT(worst_error(sum, 60000 * kTenth, with(RowMapping::block, 32, vector, unroll)), 2e-6);
}

TEST(CudaLongSums, ARowOfAThread) {
  EXPECT_LT(worst_error("graph g(x: f32[3, 20000]) { y = sum(x, axis=1); return y }", 20000 * kTenth,
                        with(RowMapping::thread, 32, 1, 1)),
            2e-6);
}

TEST(CudaLongSums, SizesKnownWhenItRuns) {
  EXPECT_LT(worst_error("graph g(x: f32[n, m]) { y = sum(x, axis=1); return y }", 60001 * kTenth,
                        with(RowMapping::block, 32, 1, 1), {{"n", 2}, {"m", 60001}}),
            2e-6);
}

TEST(CudaLongSums, PartsOfRows) {
  EXPECT_LT(worst_error("graph g(x: f32[1, 120000]) { y = sum(x, axis=1); return y }", 120000 * kTenth,
                        with(RowMapping::block, 32, 4, 2, 2)),
            2e-6);
}

TEST(CudaLongSums, Columns) {
  const char* sum = "graph g(x: f32[30000, 8]) { y = sum(x, axis=0); return y }";
  for (const int splits : {1, 3})
    EXPECT_LT(worst_error(sum, 30000 * kTenth,
                          [&](Kernel& kernel) {
                            with(RowMapping::column, 32, 2, 2, splits)(kernel);
                            std::get<ReduceSchedule>(kernel.schedule).team.columns = 4;
                          }),
              2e-6);
}

// The first elements of every thread are ten times as much as the others in the sum.
TEST(CudaLongSums, OfExponentialsInTheSweepOfTheirMaximum) {
  const char* sum = R"(graph g(x: f32[1, 240000]) {
    c = where(less(iota(shape=[240000]), 256), add(x, 2.302585092994046), x)
    y = exp(sub(logsumexp(c, axis=1, keepdims=true), x))
    return y
  })";
  for (const int unroll : {1, 2})
    EXPECT_LT(worst_error(sum, 242304,
                          [&](Kernel& kernel) {
                            with(RowMapping::block, 32, 4, unroll)(kernel);
                            reread(std::get<ReduceSchedule>(kernel.schedule)).online = true;
                          }),
              3e-6);
}

// Around a mean that is a thousand deviations away.
TEST(CudaLongSums, OfSquaresInTheSweepOfTheirMean) {
  const char* variance = R"(graph g(x: f32[1, 240000]) {
    odd = equal(mod(iota(shape=[240000], dtype=i32), 2), 1)
    y = var(where(odd, add(x, 1000.0), add(x, 1002.0)), axis=1)
    return y
  })";
  for (const int splits : {1, 2})
    EXPECT_LT(worst_error(variance, 1.0,
                          [&](Kernel& kernel) {
                            with(RowMapping::block, 32, 4, 4, splits)(kernel);
                            reread(std::get<ReduceSchedule>(kernel.schedule)).moments = true;
                          }),
              2e-6);
}

TEST(CudaLongSums, OfSquaresDownColumns) {
  const char* variance = R"(graph g(x: f32[60000, 4]) {
    odd = equal(mod(iota(shape=[60000, 1], axis=0, dtype=i32), 2), 1)
    y = var(where(odd, add(x, 1000.0), add(x, 1002.0)), axis=0)
    return y
  })";
  for (const int splits : {1, 3})
    EXPECT_LT(worst_error(variance, 1.0,
                          [&](Kernel& kernel) {
                            with(RowMapping::column, 32, 2, 4, splits)(kernel);
                            auto& schedule = std::get<ReduceSchedule>(kernel.schedule);
                            schedule.team.columns = 2;
                            reread(schedule).moments = true;
                          }),
              2e-6);
}

TEST(CudaLongSums, OfExponentialsDownColumns) {
  for (const int splits : {1, 3})
    EXPECT_LT(worst_error("graph g(x: f32[60000, 4]) { y = exp(logsumexp(mul(x, 0.0), axis=0)); return y }", 60000.0,
                          [&](Kernel& kernel) {
                            with(RowMapping::column, 32, 2, 4, splits)(kernel);
                            auto& schedule = std::get<ReduceSchedule>(kernel.schedule);
                            schedule.team.columns = 2;
                            reread(schedule).online = true;
                          }),
              6e-6);
}

// Blocks of the depth have 512 terms.
TEST(CudaLongSums, OfProducts) {
  const auto as_planned = [](Kernel&) {};
  EXPECT_LT(worst_error("graph g(a: f32[3, 32768], b: f32[32768, 4]) { y = matmul(a, b); return y }",
                        32768 * kTenth * kTenth, as_planned),
            6e-6);
  const double rounded = 0.0999755859375;  // 0.1 in tf32
  EXPECT_LT(worst_error("graph g(a: f32[3, 32768], b: f32[32768, 4]) { return matmul(a, b, tf32=true) }",
                        32768 * rounded * rounded, as_planned),
            6e-6);
}

}  // namespace
}  // namespace tenon::codegen
