// The CUDA text of Reduce kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "codegen/source.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/kernel_builder.h"
#include "tests/codegen/text_checks.h"

namespace tenon::codegen {
namespace {

using ir::Op;
using test::KernelBuilder;

const Dim rows = Dim::symbol("rows");

Source emitted(Kernel& kernel, bool schedule = true) {
  const Target target = test::cuda_target_for("sm_90a");
  if (schedule) kernel.schedule = choose_schedule(kernel, target);
  const Source source = emit_cuda(kernel, target);
  test::expect_compiles_everywhere(source);
  return source;
}

void with_rows(Kernel& kernel) {
  kernel.dims = {"rows"};
  kernel.symbols["rows"] = {1, 1 << 16, 1};
}

// y = exp(x - max) / sum over the last axis of [rows, columns].
Kernel softmax(DType dtype, const Dim& columns) {
  KernelBuilder b(ir::KernelClass::reduce, {{"i0", rows}, {"r1", columns, true}});
  const int x = b.input(dtype, {rows, columns}), y = b.output(dtype, {rows, columns});
  const Index at = Index::axis(0) * columns + Index::axis(1);
  const InstrId value = b.load(x, at);
  const InstrId largest = b.reduce(Op::max, value, dtype);
  const InstrId exp = b.map(Op::exp, {b.map(Op::sub, {value, largest})});
  b.store(y, at, b.map(Op::div, {exp, b.reduce(Op::sum, exp, DType::f32)}));
  with_rows(b.kernel);
  return b.kernel;
}

// One reduction of [rows, columns] along its last axis.
Kernel one_reduction(Op op, DType from, DType to, const Dim& columns) {
  KernelBuilder b(ir::KernelClass::reduce, {{"i0", rows}, {"r1", columns, true}});
  const int x = b.input(from, {rows, columns}), y = b.output(to, {rows});
  b.store(y, Index::axis(0), b.reduce(op, b.load(x, Index::axis(0) * columns + Index::axis(1)), to));
  with_rows(b.kernel);
  return b.kernel;
}

TEST(CudaReduce, ReadsAsIfWritten) {
  Kernel kernel = softmax(DType::bf16, 1024);
  std::cout << test::kernel_part(emitted(kernel).text) << print(kernel.schedule) << "\n";
}

TEST(CudaReduce, Dump) {
  for (const Op op : {Op::argmax, Op::sum}) {
    Kernel kernel = one_reduction(op, DType::f32, op == Op::sum ? DType::f32 : DType::i64, 50304);
    std::cout << test::kernel_part(emitted(kernel).text) << print(kernel.schedule) << "\n";
  }
  for (const Dim& columns : {Dim(8), Dim(100), Dim(4096), Dim(50304), Dim(50257), Dim::symbol("rows")}) {
    Kernel kernel = softmax(DType::bf16, columns);
    std::cout << test::kernel_part(emitted(kernel).text) << print(kernel.schedule) << "\n";
  }
}

}  // namespace
}  // namespace tenon::codegen
