#include "tests/codegen/wgmma_on_host.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace tenon::test {
namespace {

constexpr int kPoints = 128;  // of rows and of columns: most of them

}  // namespace

const codegen::Target& hopper() {
  static const codegen::Target target = codegen::cuda_target("sm_90a");
  return target;
}

MatmulCase any_size(std::int64_t divisor_n, std::int64_t divisor_k) {
  MatmulCase c;
  c.a = c.b = c.out = DType::bf16;
  c.batch = Dim::symbol("b"), c.m = Dim::symbol("m"), c.n = Dim::symbol("n"), c.k = Dim::symbol("k");
  c.symbols = {{"b", {0, 16, 1}},
               {"m", {0, 4096, std::max(divisor_n, divisor_k)}},
               {"n", {0, 4096, divisor_n}},
               {"k", {0, 4096, divisor_k}}};
  return c;
}

Kernel wgmma_kernel(const MatmulCase& c, const std::string& schedule) {
  Kernel kernel = matmul_kernel(c, hopper());
  kernel.schedule = codegen::parse_schedule("contract loop=wgmma tile_k=64 " + schedule);
  return kernel;
}

std::vector<Array> run_on_host(const CudaOnHost& host, const Kernel& kernel, const codegen::Source& source,
                               const Bindings& at, std::uint64_t seed) {
  return run(kernel, source, at, [&](const auto&, std::vector<Bytes>& operands, const Bindings& bindings) {
    std::vector<void*> pointers;
    for (Bytes& operand : operands) pointers.push_back(operand.data());
    host.run(pointers, bindings, seed);
  });
}

void expect_product(const MatmulCase& c, const Kernel& kernel, std::uint64_t seed) {
  SCOPED_TRACE(c.name + ": " + print(kernel.schedule));
  ASSERT_EQ(verify(kernel.schedule, kernel, hopper()), "");
  const codegen::Source source = emit_cuda(kernel, hopper());
  const CudaOnHost host(source);
  for (const Bindings& at : c.bindings) {
    std::string sizes;
    for (const auto& [name, size] : at) sizes += fmt::format(" {} = {}", name, size);
    SCOPED_TRACE(sizes);
    try {
      check_matmul(c, at, run_on_host(host, kernel, source, at, seed++), kPoints);
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

void expect_product(const MatmulCase& c, const std::string& schedule) { expect_product(c, wgmma_kernel(c, schedule)); }

}  // namespace tenon::test
