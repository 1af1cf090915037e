// What the emitters of Contract and Attend share: operands and results as the lambdas that the main loops of the
// prelude call (tile.cuh), and the grid over batches and tiles.
#pragma once

#include <string>
#include <vector>

#include "codegen/analysis/box.h"
#include "codegen/analysis/tiling.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/emit/cuda/vectors.h"
#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen::cuda {

/// "bf16", "tf32", "float": an element of a tile.
std::string tile_type(TileElement element);

/// "const auto a = make_operand<8, true, true>([&](int m, int k) { … });"
void emit_operand(Writer& out, const Kernel& kernel, const std::string& name, const OperandPart& part,
                  TileElement element, const TileAccess& access, const CacheHints& cache = {});

/// The same as make_operand_ahead: what it loads apart from what becomes of it.
void emit_operand_ahead(Writer& out, const Kernel& kernel, const std::string& name, const OperandPart& part,
                        TileElement element, const TileAccess& access, const CacheHints& cache = {});

/// A tile of an operand of warpgroups that threads bring.
struct FedTile {
  int outer = 0;        ///< extent
  bool of_rows = true;  ///< of the result, else of its columns
  bool whole = false;   ///< no tile reaches beyond the operand
  int registers = 32;   ///< for what is loaded at once
};
/// "const auto load_a = make_fed_tile<boxed_tile<bf16, 128, true>, 8, true>(…);": what threads load and what becomes of
/// it, at a place of a batch; make_copied_tile where it is copied as it lies.
void emit_fed_tile(Writer& out, const Kernel& kernel, const std::string& name, const OperandPart& part,
                   const std::vector<int>& batch, TileElement element, const TileAccess& access, const FedTile& tile);

/// "const i64 b0 = …;" for the batch axes, from the batch's number.
void decode_batch(Writer& out, const Kernel& kernel, const std::vector<int>& batch, const std::string& number);

/// "const auto out = make_result<8>([&](int m, int n, const pack<float, 8>& x3) { … });": the epilogue of a contraction
/// at neighbouring columns.
void emit_result(Writer& out, const Kernel& kernel, const ContractParts& parts, TileElement element);

/// The same as make_result_ahead, with what the epilogue reads apart from it.
void emit_result_ahead(Writer& out, const Kernel& kernel, const ContractParts& parts, TileElement element);

/// The same as make_result_boxes: the one result as boxes of tensor map number `map`.
void emit_result_boxes(Writer& out, const Kernel& kernel, const ContractParts& parts, TileElement element,
                       const BoxAccess& box, std::size_t map);

/// "(int)b0", or "(int)(b0 * 8 + b1)": where the dimension's axes are.
std::string box_coordinate(const Kernel& kernel, const std::vector<int>& axes);

/// Boxes of `lines` lines of 128 bytes along the access's contiguous axis.
TensorMap tensor_map(const Kernel& kernel, const BoxAccess& access, int lines);

/// Boxes of 16 rows of 64 bytes, as results of warps leave.
TensorMap result_map(const Kernel& kernel, const BoxAccess& access);

/// A contraction, or an attention, whose main loop is wgmma.
Source emit_contract_wgmma(const Kernel& kernel, const Target& target);
Source emit_attend_wgmma(const Kernel& kernel, const Target& target);

/// The product of the extents of `axes`.
Dim extent_of_axes(const Kernel& kernel, const std::vector<int>& axes);

}  // namespace tenon::codegen::cuda
