// Kernels written by hand, compiled for this machine and run: what the tests of the CPU target share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"
#include "ir/interpret/interpret.h"

namespace tenon::test {

/// Builds a Kernel instruction by instruction, keeping track of what depends on which axis.
struct KernelBuilder {
  explicit KernelBuilder(ir::KernelClass kernel_class, const std::string& name = "k");

  codegen::Kernel kernel;

  codegen::Index axis(const Dim& extent, bool reduced = false);
  int operand(DType dtype, Shape shape, bool written = false);
  codegen::InstrId load(int operand, const codegen::Index& offset, std::vector<codegen::Guard> guards = {});
  codegen::InstrId map(ir::Op op, std::vector<codegen::InstrId> args, DType dtype);
  codegen::InstrId literal(ir::Scalar value, DType dtype);
  codegen::InstrId index(const codegen::Index& index, DType dtype);
  codegen::InstrId reduce(ir::Op op, codegen::InstrId arg, std::vector<int> axes, DType dtype);
  codegen::InstrId contract(codegen::InstrId a, codegen::InstrId b, std::vector<int> axes, DType dtype);
  codegen::InstrId add(codegen::Instr instr);
  void store(codegen::InstrId value, const codegen::Index& offset, DType dtype, Shape shape);
  void symbol(const std::string& name, SymbolBounds bounds = {0, 1 << 20, 1});
};

/// Runs `kernel` on this machine with the CPU heuristics' schedule (or its own). `inputs` in operand order; the
/// outputs' shapes are evaluated at `bindings`. Output memory is surrounded by guard bands, which are checked.
struct RunOptions {
  Bindings bindings = {};
  bool keep_schedule = false;
  int vector_bytes = 0;  ///< 0: the machine's
  int threads = 1;
  std::int64_t l3_bytes = 0;  ///< 0: the machine's; what exceeds it is streamed, in rows of any length
  std::size_t misalign = 0;   ///< bytes by which outputs are off a 64-byte boundary
};
std::vector<ir::HostArray> run(codegen::Kernel kernel, const std::vector<ir::HostArray>& inputs,
                               const RunOptions& options = {});

codegen::Target test_target(const RunOptions& options = {});

/// f32 arrays for short tests.
ir::HostArray floats(std::vector<std::int64_t> shape, const std::vector<float>& values);
std::vector<float> to_floats(const ir::HostArray& array);
/// Numbers in [low, high) from a fixed sequence.
std::vector<float> numbers(std::size_t count, float low, float high, std::uint32_t seed = 1);
template <typename T>
ir::HostArray array_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  ir::HostArray array{dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  for (std::size_t i = 0; i < array.bytes.size(); ++i)
    array.bytes[i] = reinterpret_cast<const std::byte*>(values.data())[i];
  return array;
}
template <typename T>
std::vector<T> values_of(const ir::HostArray& array) {
  const auto* data = reinterpret_cast<const T*>(array.bytes.data());
  return {data, data + array.bytes.size() / sizeof(T)};
}

}  // namespace tenon::test
