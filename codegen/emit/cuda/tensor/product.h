// The one wgmma instruction that a main loop uses, as a lambda (PTX ISA: wgmma.mma_async).
#pragma once

#include <string>

#include "codegen/emit/cuda/text/writer.h"
#include "tenon/dtype.h"

namespace tenon::codegen::cuda {

/// A product of 64 rows, one step of 32 bytes along the depth.
struct WarpgroupProduct {
  std::string name = "multiply";
  DType a = DType::bf16, b = DType::bf16;
  int columns = 64;
  bool across_a = false, across_b = false;  ///< lines do not lie along the depth; of 16 bits only
  bool a_in_registers = false;              ///< a fragment of 16 bits for a descriptor
};

/// "const auto multiply = [](float (&d)[128], u64 a, u64 b, bool add) { … };": d = a b, or d += a b. A fragment is
/// "const u32 (&a)[4]".
void emit_product(Writer& out, const WarpgroupProduct& product);

}  // namespace tenon::codegen::cuda
