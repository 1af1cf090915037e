// The main loop of warpgroups (contract_wgmma.cuh) on the host.
#include <gtest/gtest.h>

#include "tests/codegen/tensor_reference.h"
#include "tests/harness/cuda_on_host.h"

namespace tenon::test {
namespace {

using codegen::ContractSchedule;
using codegen::MainLoop;

const codegen::Target& target() {
  static const codegen::Target hopper = codegen::cuda_target("sm_90a");
  return hopper;
}

void expect_product(const MatmulCase& c, const ContractSchedule& schedule) {
  SCOPED_TRACE(c.name);
  Kernel kernel = matmul_kernel(c, target());
  kernel.schedule = schedule;
  const codegen::Source source = emit_cuda(kernel, target());
  const CudaOnHost host(source);
  for (const Bindings& at : c.bindings)
    check_matmul(c, at,
                 run(kernel, source, at, [&](const auto&, std::vector<Bytes>& operands, const Bindings& bindings) {
                   std::vector<void*> pointers;
                   for (Bytes& operand : operands) pointers.push_back(operand.data());
                   host.run(pointers, bindings);
                 }));
}

TEST(Warpgroups, Multiply) {
  expect_product({.name = "nn", .a = DType::bf16, .b = DType::bf16, .out = DType::bf16, .m = 100, .n = 72, .k = 200},
                 {.loop = MainLoop::wgmma, .tile_m = 64, .tile_n = 64, .tile_k = 64, .stages = 3, .consumers = 1});
}

}  // namespace
}  // namespace tenon::test
