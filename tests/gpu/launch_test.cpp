// What a launch may take beside pointers and sizes, by hand-written kernels in place of a graph's own: tensor maps that
// are encoded once and follow the buffers, zeroed memory that stays zero, and grids of as many blocks as fit the
// device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ir/text/text.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tests/harness/forwarding.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

using codegen::LaunchRule;
using codegen::Source;

// Every launch has the source that is given.
class HandWritten final : public ForwardingBackend {
 public:
  HandWritten(std::shared_ptr<const runtime::Backend> inner, Source source)
      : ForwardingBackend(std::move(inner)), source_(std::move(source)) {}
  Source emit(const codegen::Launch&) const override { return source_; }

 private:
  const Source source_;
};

Executable with_kernel(const std::string& graph, const Source& source) {
  const auto backend = std::make_shared<const HandWritten>(backend_of("cuda"), source);
  return src::make_executable(src::plan(ir::parse(graph), *backend, default_options()), backend, default_options());
}

bool has_tensor_maps() { return backend_of("cuda")->target().sm >= 90; }

Array array_of(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  Array array{DType::f32, std::move(shape), std::vector<std::byte>(values.size() * 4)};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

std::vector<float> floats(const Array& array) {
  std::vector<float> values(array.bytes.size() / 4);
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

// A block copies a box of 8 x 32 into shared memory and writes it out, 1 added, box after box.
const char* const kBoxes = R"(
typedef unsigned long long u64;
struct __align__(64) tensor_map { u64 words[16]; };
__device__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }

__device__ void add_one(const tensor_map& map, float* out, int boxes_in_row, int boxes, int row) {
  __shared__ __align__(128) float box[8][32];
  __shared__ __align__(8) u64 barrier;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&barrier)));
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  unsigned phase = 0;
  for (int i = blockIdx.x; i < boxes; i += gridDim.x, phase ^= 1) {
    const int x = i % boxes_in_row * 32, y = i / boxes_in_row * 8;
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(&barrier)), "r"(1024));
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
              address_of(box)), "l"(&map), "r"(x), "r"(y), "r"(address_of(&barrier)) : "memory");
    }
    unsigned done = 0;
    while (!done)
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(done) : "r"(address_of(&barrier)), "r"(phase) : "memory");
    for (int at = threadIdx.x; at < 256; at += blockDim.x)
      out[(y + at / 32) * row + x + at % 32] = box[at / 32][at % 32] + 1;
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(128) boxes(const float* in, float* out, float* scratch, long long n,
                                                        const __grid_constant__ tensor_map map) {
  add_one(map, scratch, (int)n / 32, (int)n, (int)n);
}

extern "C" __global__ void __launch_bounds__(128) boxes_finish(const float* in, float* out, float* scratch, long long n,
                                                               const __grid_constant__ tensor_map map) {
  add_one(map, out, (int)n / 32, (int)n, (int)n);
}
)";

codegen::TensorMap boxes_of(int pointer) {
  return {.pointer = pointer, .extents = {Dim::symbol("n"), 256}, .strides = {Dim::symbol("n")}, .box = {32, 8}};
}

TEST(Launch, TensorMapsFollowTheBuffers) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  if (!has_tensor_maps()) GTEST_SKIP() << "tensor maps are for sm_90 and later";
  Source source{kBoxes, "boxes", {}, {"n"}};
  source.launch = {.grid_x = Dim::symbol("n"), .resident = true, .block = 128, .tensor_maps = {boxes_of(0)}};
  source.finish_entry = "boxes_finish";  // of what the first function left in the scratch memory
  source.finish = {.grid_x = Dim::symbol("n"), .resident = true, .block = 128, .tensor_maps = {boxes_of(2)}};
  source.scratch_bytes = Dim::symbol("n") * Dim(256 * 4);
  const Executable executable = with_kernel("graph g(x: f32[256, n]) { y = add(x, 2); return y }", source);
  for (const std::int64_t n : {64, 1024, 64}) {
    std::vector<float> values(static_cast<std::size_t>(256 * n));
    std::iota(values.begin(), values.end(), static_cast<float>(n));
    const std::vector<float> result = floats(executable({array_of(values, {256, n})})[0]);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result[i], values[i] + 2) << n << " " << i;
  }
}

// Blocks add their sums to a counter's side; the last to come writes the total and leaves the memory as it was.
const char* const kTotal = R"(
extern "C" __global__ void __launch_bounds__(256) total(const int* in, int* out, unsigned* zeroed, long long n) {
  int sum = 0;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) sum += in[i];
  atomicAdd((int*)zeroed + 1, sum);
  __threadfence();
  __syncthreads();
  if (threadIdx.x != 0 || atomicAdd(zeroed, 1u) != gridDim.x - 1) return;
  *out = atomicExch((int*)zeroed + 1, 0);
  zeroed[0] = 0;
}
)";

TEST(Launch, ZeroedMemoryStaysZero) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  Source source{kTotal, "total", {}, {"n"}};
  source.launch = {.grid_x = (Dim::symbol("n") + Dim(255)).floor_div(256), .resident = true, .block = 256};
  source.zeroed_bytes = 8;
  const Executable executable = with_kernel("graph g(x: i32[n]) { y = sum(x); return y }", source);
  for (int run = 0; run < 20; ++run) {
    const std::int64_t n = 1000 + 77777 * run;
    Array x{DType::i32, {n}, std::vector<std::byte>(static_cast<std::size_t>(4 * n))};
    std::vector<int> values(static_cast<std::size_t>(n), run + 1);
    std::memcpy(x.bytes.data(), values.data(), x.bytes.size());
    const Array y = executable({x})[0];
    int sum = 0;
    std::memcpy(&sum, y.bytes.data(), 4);
    ASSERT_EQ(sum, static_cast<int>(n) * (run + 1)) << run;
  }
}

TEST(Launch, ResidentBlocksAreWholeClusters) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  if (!has_tensor_maps()) GTEST_SKIP() << "clusters are for sm_90 and later";
  const auto backend = backend_of("cuda");
  const auto resident = [&](int cluster) {
    Source source{
        fmt::format("extern \"C\" __global__ void __cluster_dims__({}, 1, 1) __launch_bounds__(1024) f(int* out) "
                    "{{ extern __shared__ int s[]; s[threadIdx.x] = 1; out[0] = s[0]; }}",
                    cluster),
        "f",
        {},
        {}};
    source.launch = {.resident = true, .block = 1024, .shared_bytes = 200000, .cluster = cluster};
    return backend->load(source, backend->build(source))->resident_blocks;
  };
  const int multiprocessors = backend->target().multiprocessors;
  EXPECT_EQ(resident(1), multiprocessors);
  for (const int cluster : {2, 4, 8}) {
    const std::int64_t blocks = resident(cluster);
    EXPECT_EQ(blocks % cluster, 0) << cluster;
    EXPECT_GT(blocks, multiprocessors / 2) << cluster;
    EXPECT_LE(blocks, multiprocessors) << cluster;
  }
}

}  // namespace
}  // namespace tenon::test
