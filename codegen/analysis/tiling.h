// How the operands of a contraction become tiles in shared memory: of which dtype, in which direction they are read,
// how many elements at once. Used by the schedules, which record it, and by the CUDA emitter, which follows it.
#pragma once

#include <cstdint>

#include "codegen/lower/parts.h"
#include "codegen/target/target.h"

namespace tenon::codegen {

/// The elements of both tiles, and what multiplies them.
using TileElement = ir::ContractionElement;
TileElement tile_element(const Kernel& kernel, InstrId contract, const Target& target);
/// The same for warpgroups, which multiply f8 as it is stored where the numerics allow it and boxes bring both operands
/// along the depth.
TileElement warpgroup_element(const Kernel& kernel, const ContractParts& parts, const Target& target);

/// How the threads of a block read one operand.
struct TileAccess {
  bool along_depth = true;  ///< neighbouring threads lie along the contraction's axis, else along the outer axis
  int vector = 1;           ///< neighbouring elements that a thread takes at once
  bool as_stored = false;   ///< one load, whose elements need no conversion
  bool widened = false;     ///< one load of 8-bit elements for a tile of 16-bit ones
  bool async = false;       ///< copied by cp.async: as_stored, and in the direction of the tile's lines
};
/// Which way the lines of a tile run in shared memory. The transposition of 16-bit elements on the way to the tensor
/// cores is free; other tiles have one direction.
enum class Lines : std::uint8_t { as_read, along_depth, along_outer };
Lines contract_lines(TileElement element);
/// The elements of the tiles of a main loop that is neither warpgroups' nor a stream, and how their lines run. Plain
/// multiplications, and those of f32 in parts, take f32 whatever tensor cores would.
TileElement loop_element(const ContractSchedule& schedule, const Kernel& kernel, InstrId contract,
                         const Target& target);
Lines loop_lines(const ContractSchedule& schedule, TileElement element);
TileAccess tile_access(const Kernel& kernel, const OperandPart& part, TileElement element, Lines lines,
                       const Target& target, int vector_limit = 16);

/// The same of a matrix that warpgroups multiply and threads bring: b, and with it the second one of a pair, whose
/// lines run the same way.
TileAccess columns_access(const Kernel& kernel, const ContractParts& parts, const OperandPart& part,
                          TileElement element, const Target& target);

/// Words of 4 bytes that `vector` neighbours along `axis` are loaded in: what they share and what two loads read is
/// counted once.
int loaded_words(const Kernel& kernel, const OperandPart& part, int axis, int vector);

/// How many products along the depth tensor cores add up before a total gets their sum, a multiple of 64 (the fewest
/// that warpgroups multiply), or 0: all of them. What was asked for; else fewer than all for results in 32 bits of a
/// depth that is known to be long, so that an error does not grow with it, and for f8 as it is stored.
int block_terms(const Kernel& kernel, InstrId contract, TileElement element);

/// Bytes of `matrix_tile` and `plain_tile` of the prelude (tile.cuh).
std::int64_t matrix_tile_bytes(int outer, int depth, bool along_depth, DType dtype);
std::int64_t plain_tile_bytes(int outer, int depth, DType dtype);
/// Whether a main loop of f32 in parts looks for the end of the depth within a tile: what that spares of a short depth
/// is more than the 3 % that looking costs (H200).
bool ends_early(const ContractSchedule& schedule, const Kernel& kernel, const ContractParts& parts);
/// Bytes of `f32_tile` (contract_3xtf32.cuh).
std::int64_t f32_tile_bytes(int outer, int depth, bool along_depth);
/// Dynamic shared memory of a contract kernel.
std::int64_t shared_bytes(const ContractSchedule& schedule, TileElement element, const TileAccess& a,
                          const TileAccess& b);

/// The same of a main loop of warpgroups (contract_wgmma.cuh): tiles, barriers, and the sums of each warp on their way
/// out.
std::int64_t wgmma_shared_bytes(const ContractSchedule& schedule);

/// The operands of a streaming main loop (contract_stream.cuh): the matrix, which is read once, and the few rows or
/// columns that all of its tiles share.
struct StreamParts {
  bool few_are_rows = true;  ///< the result's
  OperandPart matrix, few;
  TileAccess matrix_access, few_access;
  bool ahead = false;  ///< the matrix is kept as it is loaded, a turn ahead: it lies along the depth and is converted
  int chunk = 32;      ///< steps of the depth that the lanes of a warp take at once: four have those of a row
  int words = 0;       ///< of 4 bytes that a lane loads of each row of a chunk
};
constexpr int kWidestStreamed = 32;  // steps of the depth that a lane loads at once, of values of 4 bits 16 bytes
StreamParts stream_parts(const ContractSchedule& schedule, const Kernel& kernel, const ContractParts& parts,
                         TileElement element, const Target& target);
/// Of a thread: what is under way, its sums, addresses, and elements that are converted. With fewer, compilers spill.
int stream_registers(const ContractSchedule& schedule, const Kernel& kernel, const Target& target);
/// Its dynamic shared memory: the sums of each warp.
std::int64_t stream_shared_bytes(const ContractSchedule& schedule);

/// Element and padded extents of an attend kernel's tiles.
struct AttendTiles {
  TileElement element;
  int depth = 0,
      width = 0;        ///< of d and e, multiples of 16; scalar arithmetic cuts both instead: width is that of a block
  int score_bytes = 0;  ///< warpgroups: of an element that scores read where boxes can bring it (read_ahead.h)
};
AttendTiles attend_tiles(const Kernel& kernel, const AttendParts& parts, const Target& target);
/// The same for warpgroups, which multiply f8 as it is stored (as f8e4m3 here, whichever kinds there are) where the
/// numerics allow it: weights are f8e4m3 at a scale, and values lie along the keys.
AttendTiles warpgroup_tiles(const Kernel& kernel, const AttendParts& parts, const Target& target);
/// Dynamic shared memory of an attend kernel.
std::int64_t shared_bytes(const AttendSchedule& schedule, const AttendTiles& tiles);

/// Columns of values that warpgroups multiply: whole turns of their results.
int wgmma_width(const AttendTiles& tiles);
/// Tiles that an attend kernel whose main loop is wgmma (codegen/prelude/attend_wgmma.cuh) holds: of queries, and of
/// what the scores of its warpgroups read.
struct AttendStages {
  int queries = 1, scores = 0;
};
/// Its dynamic shared memory, with so many.
std::int64_t wgmma_shared_bytes(const AttendSchedule& schedule, const AttendTiles& tiles, AttendStages stages);
/// What a block may have of it, so that `resident` blocks fit.
std::int64_t wgmma_shared_limit(const AttendSchedule& schedule, const Target& target);
/// What it holds: two of each, so that the next one comes while this one is used, where both fit; one of queries first.
AttendStages attend_stages(const AttendSchedule& schedule, const AttendTiles& tiles, const Target& target);

/// The neighbouring columns that an epilogue handles at once: as wide as its stores and the extent of `axis` allow.
int epilogue_vector(const Kernel& kernel, int axis, int limit);

}  // namespace tenon::codegen
