// Contract and Attend kernels on a real GPU. Skipped where there is no GPU, driver or NVRTC.
#include <gtest/gtest.h>

#include <optional>

#include "runtime/cuda/device.h"
#include "tests/codegen/tensor_reference.h"
#include "tests/runtime/installed_nvrtc.h"

namespace tenon::test {
namespace {

namespace cuda = runtime::cuda;

struct Machine {
  std::shared_ptr<const cuda::Nvrtc> nvrtc;
  cuda::DevicePtr device;
  std::string arch;
};

std::optional<Machine> find_machine() {
  try {
    Machine machine;
    machine.nvrtc = cuda::open_nvrtc(nvrtc_search());
    machine.device = cuda::Device::open(cuda::open_driver(), 0);
    machine.arch = cuda::arch_for(machine.device->info().major, machine.device->info().minor, *machine.nvrtc);
    return machine;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void launch_on(const Machine& machine, const codegen::Source& source, std::vector<Bytes>& operands,
               const Bindings& bindings) {
  const auto compiled = cuda::compile(*machine.nvrtc, source.text, source.entry, machine.arch);
  const cuda::Module module(machine.device, compiled.cubin);
  const auto function = module.function(source.entry, static_cast<std::size_t>(source.launch.shared_bytes));
  std::vector<cuda::DeviceBuffer> buffers;
  std::vector<cuda::DevicePointer> pointers;
  for (const Bytes& operand : operands) {
    buffers.emplace_back(machine.device, operand.size());
    buffers.back().upload(operand);
    pointers.push_back(buffers.back().address());
  }
  std::vector<std::int64_t> dims;
  for (const std::string& name : source.dims) dims.push_back(bindings.at(name));
  std::vector<void*> arguments;
  for (cuda::DevicePointer& pointer : pointers) arguments.push_back(&pointer);
  for (std::int64_t& dim : dims) arguments.push_back(&dim);
  cuda::LaunchConfig config;
  config.grid.x = static_cast<unsigned>(source.launch.grid_x.evaluate(bindings));
  config.block.x = static_cast<unsigned>(source.launch.block);
  config.dynamic_shared_bytes = static_cast<unsigned>(source.launch.shared_bytes);
  const cuda::Stream stream(machine.device);
  const cuda::CurrentContext current(*machine.device);
  if (config.grid.x > 0)
    launch(machine.device->driver(), function, config, stream.get(), arguments.data(), source.entry);
  stream.synchronize();
  for (std::size_t i = 0; i < operands.size(); ++i) buffers[i].download(operands[i]);
}

class TensorKernelsOnTheGpu : public testing::Test {
 protected:
  void SetUp() override {
    machine_ = find_machine();
    if (!machine_) GTEST_SKIP() << "no GPU";
  }
  std::vector<Array> run_here(const Kernel& kernel, const codegen::Target& target, const Bindings& at) const {
    return run(kernel, emit_cuda(kernel, target), at, [this](const auto& source, auto& operands, const auto& bindings) {
      launch_on(*machine_, source, operands, bindings);
    });
  }
  std::optional<Machine> machine_;
};

// The text for an older architecture, compiled for this device, too.
TEST_F(TensorKernelsOnTheGpu, MultiplyMatrices) {
  for (const std::string& arch : {machine_->arch, std::string("sm_80"), std::string("sm_75")}) {
    codegen::Target target = codegen::cuda_target(arch);
    target.may.wgmma = false;  // no tensor maps here
    for (const MatmulCase& c : matmul_cases())
      for (const Bindings& at : c.bindings) {
        SCOPED_TRACE(c.name + " as on " + arch);
        check_matmul(c, at, run_here(matmul_kernel(c, target), target, at));
      }
  }
}

TEST_F(TensorKernelsOnTheGpu, Attend) {
  for (const std::string& arch : {machine_->arch, std::string("sm_75")}) {
    const codegen::Target target = codegen::cuda_target(arch);
    for (const AttentionCase& c : attention_cases())
      for (const Bindings& at : c.bindings) {
        SCOPED_TRACE(c.name + " as on " + arch);
        const Kernel kernel = attention_kernel(c, target);
        check_attention(c, at, kernel, run_here(kernel, target, at));
      }
  }
}

}  // namespace
}  // namespace tenon::test
