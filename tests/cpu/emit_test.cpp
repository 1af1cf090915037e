// What the LLVM emitter writes for targets that need not be this machine.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/cpu/compile.h"
#include "runtime/cpu/host.h"
#include "tests/cpu/kernels.h"

namespace tenon::test {
namespace {

using codegen::Index;
using codegen::InstrId;
using ir::Op;

codegen::Target target_of(const std::string& cpu, int vector_bytes) {
  codegen::Target target;
  target.may = codegen::cpu_features();
  target.cpu = cpu;
  target.vector_bytes = vector_bytes;
  return target;
}

std::string emit(codegen::Kernel kernel, const codegen::Target& target) {
  kernel.schedule = codegen::choose_schedule(kernel, target);
  return codegen::emit_llvm(kernel, target).text;
}

// Checks that `lines` occur in this order.
void check_lines(const std::string& text, const std::vector<std::string>& lines) {
  std::size_t from = 0;
  for (const std::string& line : lines) {
    const std::size_t found = text.find(line, from);
    ASSERT_NE(found, std::string::npos) << "no '" << line << "' behind offset " << from << " in\n" << text;
    from = found + line.size();
  }
}

KernelBuilder unary(Op op, std::int64_t n) {
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(n);
  k.store(k.map(op, {k.load(k.operand(DType::f32, {n}), i)}, DType::f32), i, DType::f32, {n});
  return k;
}

TEST(CpuEmit, VectorsAreWrittenOutInTheTargetsWidth) {
  check_lines(emit(unary(Op::neg, 1000).kernel, target_of("x86-64-v4", 64)),
              {"load <16 x float>", "fneg <16 x float>", "store <16 x float>", "llvm.masked.store.v16f32"});
  check_lines(emit(unary(Op::neg, 1000).kernel, target_of("x86-64-v3", 32)), {"load <8 x float>", "fneg <8 x float>"});
}

// An output of the same dtype may lie where the input does.
TEST(CpuEmit, OnlyWhatNoOutputMayLieOverIsInvariant) {
  const auto is_invariant = [](DType to) {
    KernelBuilder k(ir::KernelClass::map);
    const Index i = k.axis(1024);
    k.store(k.map(Op::cast, {k.load(k.operand(DType::f32, {1024}), i)}, to), i, to, {1024});
    return emit(k.kernel, target_of("x86-64-v4", 64)).find("!invariant.load") != std::string::npos;
  };
  EXPECT_FALSE(is_invariant(DType::f32));
  EXPECT_TRUE(is_invariant(DType::f64));
}

TEST(CpuEmit, ADivisibleExtentNeedsNoMask) {
  EXPECT_EQ(emit(unary(Op::neg, 1024).kernel, target_of("x86-64-v4", 64)).find("masked"), std::string::npos);
}

TEST(CpuEmit, WhatExceedsTheCachesIsStreamed) {
  check_lines(emit(unary(Op::neg, 64 << 20).kernel, target_of("x86-64-v4", 64)),
              {"store <16 x float>", "align 64, !nontemporal"});
  EXPECT_EQ(emit(unary(Op::neg, 1000).kernel, target_of("x86-64-v4", 64)).find("!nontemporal"), std::string::npos);
}

// LLVM would make one store of a truncation and a store around the caches, through them. On AVX-512 there are more such
// pairs, so they are looked at whatever this machine is.
TEST(CpuEmit, NarrowedResultsAreStreamedInMachineCodeToo) {
  const codegen::Target machine = runtime::cpu::host_target();
  std::vector<codegen::Target> targets{target_of("x86-64-v4", 16), target_of("x86-64-v4", 32),
                                       target_of("x86-64-v4", 64)};
  for (int bytes = 16; bytes <= machine.vector_bytes; bytes *= 2) {
    targets.push_back(machine);
    targets.back().vector_bytes = bytes;
  }
  for (const codegen::Target& target : targets)
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i8, DType::i16,
                              DType::u8, DType::i32, DType::f64, DType::bool_}) {
      const std::int64_t n = 64 << 20;
      KernelBuilder k(ir::KernelClass::map);
      const Index i = k.axis(n);
      k.store(k.map(Op::cast, {k.load(k.operand(DType::f32, {n}), i)}, dtype), i, dtype, {n});
      const std::string text = runtime::cpu::assembly_text(emit(k.kernel, target), target);
      const bool fills_a_register = target.vector_bytes / 4 * size_of(dtype) >= 16;
      EXPECT_TRUE(!fills_a_register || text.find("movnt") != std::string::npos)
          << name_of(dtype) << " " << target.vector_bytes << " " << target.cpu;
    }
}

// Widened for nothing, and narrowed again: what is only moved stays as it is stored.
TEST(CpuEmit, WhatIsRoundedAlreadyIsNotRoundedAgain) {
  const auto roundings = [](bool rounded) {
    KernelBuilder k(ir::KernelClass::map);
    const Index i = k.axis(1024);
    InstrId x = k.load(k.operand(DType::f32, {1024}), i);
    if (rounded) {
      codegen::Instr round;
      round.kind = codegen::InstrKind::round;
      round.dtype = DType::bf16;
      round.args = {x};
      x = k.add(round);
    }
    k.store(x, i, DType::bf16, {1024});
    const std::string text = emit(k.kernel, target_of("x86-64-v4", 64));
    int count = 0;
    for (std::size_t at = text.find("fcmp uno"); at != std::string::npos; at = text.find("fcmp uno", at + 1)) ++count;
    return count;
  };
  EXPECT_GT(roundings(false), 0);
  EXPECT_EQ(roundings(true), roundings(false));
}

TEST(CpuEmit, TanhAndErfAreWrittenOutAndAtanIsSleefs) {
  for (const Op op : {Op::tanh, Op::erf})
    EXPECT_EQ(emit(unary(op, 1024).kernel, target_of("x86-64-v4", 64)).find("Sleef"), std::string::npos);
  check_lines(emit(unary(Op::atan, 1024).kernel, target_of("x86-64-v4", 64)),
              {"call <16 x float> @Sleef_atanf16_u10avx512f"});
  check_lines(emit(unary(Op::atan, 1024).kernel, target_of("x86-64-v3", 32)),
              {"call <8 x float> @Sleef_atanf8_u10avx2"});
}

// LLVM's own lowering of its maximum takes six.
TEST(CpuEmit, AMaximumOf16IsOneInstructionButForNaN) {
  const auto of = [](const codegen::Target& target) {
    KernelBuilder k(ir::KernelClass::map);
    const Index i = k.axis(1024);
    const InstrId x = k.load(k.operand(DType::f32, {1024}), i), y = k.load(k.operand(DType::f32, {1024}), i);
    k.store(k.map(Op::maximum, {x, y}, DType::f32), i, DType::f32, {1024});
    return emit(k.kernel, target);
  };
  check_lines(of(target_of("x86-64-v4", 64)), {"llvm.x86.avx512.mask.range.ps.512", "fcmp uno", "select"});
  check_lines(of(target_of("x86-64-v3", 32)), {"llvm.maximum.v8f32"});
}

// exp(x - shift) over its sum: a quotient by the reciprocal, corrected, where there is an fma. And a maximum that looks
// at nothing but which is larger, since the sum finds any NaN.
TEST(CpuEmit, ASoftmaxDividesOnceARowAndItsMaximumIsOneInstruction) {
  const codegen::Target machine = runtime::cpu::host_target();
  for (int bytes = 32; bytes <= machine.vector_bytes; bytes *= 2) {
    KernelBuilder k(ir::KernelClass::reduce);
    const Index i = k.axis(64), r = k.axis(1024, true);
    const InstrId x = k.load(k.operand(DType::f32, {64, 1024}), i * 1024 + r);
    const InstrId most = k.reduce(Op::max, x, {1}, DType::f32);
    const InstrId empty = k.map(Op::equal, {most, k.literal(-HUGE_VAL, DType::f32)}, DType::bool_);
    const InstrId shift = k.map(Op::where, {empty, k.literal(0.0, DType::f32), most}, DType::f32);
    const InstrId weight = k.map(Op::exp, {k.map(Op::sub, {x, shift}, DType::f32)}, DType::f32);
    const InstrId sum = k.reduce(Op::sum, weight, {1}, DType::f32);
    k.store(k.map(Op::div, {weight, sum}, DType::f32), i * 1024 + r, DType::f32, {64, 1024});
    codegen::Target target = machine;
    target.vector_bytes = bytes;
    const std::string text = runtime::cpu::assembly_text(emit(k.kernel, target), target);
    EXPECT_NE(text.find("vdivss"), std::string::npos) << text;
    EXPECT_EQ(text.find("vdivps"), std::string::npos) << text;
    EXPECT_EQ(text.find("vrangeps"), std::string::npos) << text;
    EXPECT_EQ(text.find("vcmpunordps"), std::string::npos) << text;
  }
}

TEST(CpuEmit, WhatDoesNotVaryInALoopStandsBeforeIt) {
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(64), j = k.axis(4096);
  const InstrId row = k.map(Op::sqrt, {k.load(k.operand(DType::f32, {64}), i)}, DType::f32);
  const InstrId x = k.load(k.operand(DType::f32, {64, 4096}), i * 4096 + j);
  k.store(k.map(Op::mul, {x, row}, DType::f32), i * 4096 + j, DType::f32, {64, 4096});
  check_lines(emit(k.kernel, target_of("x86-64-v4", 64)),
              {"row:", "call float @llvm.sqrt.f32", "fmul contract <16 x float>", "row.end"});
}

TEST(CpuEmit, AContractionIsAMicroKernelOnPackedBlocks) {
  KernelBuilder k(ir::KernelClass::contract);
  const Index i = k.axis(256), j = k.axis(256), r = k.axis(256, true);
  const InstrId a = k.load(k.operand(DType::bf16, {256, 256}), i * 256 + r);
  const InstrId b = k.load(k.operand(DType::bf16, {256, 256}), r * 256 + j);
  k.store(k.contract(a, b, {2}, DType::bf16), i * 256 + j, DType::bf16, {256, 256});
  check_lines(emit(k.kernel, target_of("x86-64-v4", 64)),
              {"call ptr @tenon_scratch", "load <16 x i16>", "call void @k_micro", "define internal void @k_micro",
               "@llvm.fmuladd.v16f32"});
}

TEST(CpuEmit, TheSameKernelGivesTheSameText) {
  const codegen::Target target = target_of("x86-64-v4", 64);
  EXPECT_EQ(emit(unary(Op::exp, 1000).kernel, target), emit(unary(Op::exp, 1000).kernel, target));
}

}  // namespace
}  // namespace tenon::test
