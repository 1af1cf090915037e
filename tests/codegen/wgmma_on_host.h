// Products of warpgroups that run on the host (hopper_on_host.h), at any sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/codegen/tensor_reference.h"
#include "tests/harness/cuda_on_host.h"

namespace tenon::test {

const codegen::Target& hopper();

/// Sizes are symbols: "b", "m", "n", "k". Rows of the operands are multiples of `divisor_n` and `divisor_k`.
MatmulCase any_size(std::int64_t divisor_n, std::int64_t divisor_k);

/// `schedule`: what follows "contract loop=wgmma tile_k=64".
Kernel wgmma_kernel(const MatmulCase& c, const std::string& schedule);

/// Inputs and outputs, as `run` gives them. `seed`: of the order in which threads run and copies land.
std::vector<Array> run_on_host(const CudaOnHost& host, const Kernel& kernel, const codegen::Source& source,
                               const Bindings& at, std::uint64_t seed);

/// That the kernel gives what it should at each of the case's bindings.
void expect_product(const MatmulCase& c, const Kernel& kernel, std::uint64_t seed = 1);
void expect_product(const MatmulCase& c, const std::string& schedule);

}  // namespace tenon::test
