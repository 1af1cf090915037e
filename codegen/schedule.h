// Schedules: the numbers of one kernel. Plain data: printed, searched, cached. One struct for each kernel class, read
// by both emitters; a field that means nothing to a target stays at its default.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "codegen/target.h"

namespace tenon::codegen {

struct Kernel;

struct MapSchedule {
  int threads = 256;       ///< CUDA: per block
  int vector = 1;          ///< consecutive elements of the innermost axis that one thread or SIMD operation handles
  bool flat = false;       ///< CUDA: of the domain in row-major order instead, across the ends of rows
  int unroll = 1;          ///< vectors in flight per thread
  bool spread = false;     ///< CUDA: those lie side by side along the outermost axis, which `unroll` divides, and share
                           ///< what does not vary along it
  bool streaming = false;  ///< stores bypass the caches: the data is larger than they are and not read again
  bool streaming_loads = false;  ///< CUDA: so do vector loads of what no other point reads
  bool keep_reads = false;       ///< CUDA: the L2 is to keep lines that are read rather than those that are written
  bool interleave = false;  ///< CPU: the vectors of a turn are computed side by side, and what is read beside stores
                            ///< that bypass the caches is fetched ahead
  std::int64_t grain = 0;   ///< CPU: elements of one task

  // Accesses that are contiguous along another axis than the innermost: on CUDA they pass through a tile in shared
  // memory, on a CPU through scratch memory of the thread.
  int tile_axis = -1;       ///< the axis along which those accesses are contiguous; -1: none, and no tile
  int tile_rows = 0;        ///< extent of a block's or task's tile along tile_axis
  int tile_columns = 0;     ///< and along the innermost axis
  bool tile_shift = false;  ///< CUDA: rows that begin at any element move as aligned vectors, shifted on their way
                            ///< through the tile, of which a vector's columns overlap with its neighbour's
  int tile_vector = 1;  ///< CUDA: consecutive elements along tile_axis that a thread moves, as far as alignment allows
};

/// Who works on one row (one point of the kept axes).
enum class RowMapping : std::uint8_t {
  thread,  ///< a thread reduces a row alone
  warp,    ///< the lanes of a warp share a row
  block,   ///< a thread block shares a row
  column,  ///< threads lie along the innermost kept axis and walk the reduced axes: coalesced outer reductions
};

struct ReduceSchedule {
  RowMapping mapping = RowMapping::block;
  int threads = 256;
  int lanes = 32;       ///< CUDA, warp: lanes that share a row, a power of two; a warp has 32 / lanes rows
  int cluster = 1;      ///< CUDA, block: thread blocks that share a row through each other's shared memory (sm_90 on)
  int columns = 32;     ///< CUDA, column: threads of a block along the kept axis, a power of two
  int vector = 1;       ///< elements per access: of the innermost reduced axis; column: of the innermost kept one
  int unroll = 1;       ///< CUDA, not persistent: steps of the loop over a row whose loads are in flight together
  bool peeled = false;  ///< CUDA: vectors begin at 16-byte boundaries; threads take the ends of a row as elements
  bool online = false;  ///< a maximum and the exponentials shifted by it are summed in one sweep, rescaled
  bool streaming = false;        ///< element stores bypass the caches
  bool streaming_loads = false;  ///< CUDA: so do vector loads of elements, where they are read once
  bool keep_reads = false;       ///< CUDA: as MapSchedule::keep_reads, of lines of rows
  bool persistent = false;  ///< CUDA: the row stays in registers between rounds instead of being read again; CPU: what
                            ///< is dear to compute again stays in a buffer (codegen/dear_values.h)
  int row_elements = 0;     ///< CUDA, persistent: capacity per thread, in elements
  int shared_elements = 0;  ///< CUDA, block, persistent: of those, what lies in shared memory rather than in registers
  int resident = 0;         ///< CUDA: blocks for which a multiprocessor must have registers; 0: as the emitter likes
  int at_most = 0;  ///< CUDA, block: blocks that a multiprocessor takes, by the shared memory that each asks for;
                    ///< 0: as many as fit
  std::int64_t grain = 0;    ///< CPU: rows of one task
  bool late_stores = false;  ///< CPU: a row's elements are stored in turns with the sweeps over the row behind it
  int splits = 1;            ///< parts of the reduced axes reduced in parallel when there are few rows
  int walkers = 0;           ///< CUDA, block, with outer reductions: blocks that walk over all rows
  int ahead = 0;      ///< with walkers: rows under way while one is worked on; one in registers, more in shared memory
  bool bulk = false;  ///< all of these in shared memory; one thread asks for a whole row at once (sm_90 on)
};

enum class MainLoop : std::uint8_t {
  simt,      ///< scalar FMA on registers, operands through shared memory: every dtype
  mma_sync,  ///< warp-level tensor cores (sm_75: f16; sm_80 and later: f16, bf16, tf32)
  cpu,       ///< packed panels and a vector micro-kernel
};

struct ContractSchedule {
  MainLoop loop = MainLoop::simt;
  int tile_m = 64, tile_n = 64, tile_k = 16;  ///< of a block (CPU: cache block)
  int warps_m = 2, warps_n = 2;               ///< warps of a block along m and n
  int stages = 2;                             ///< tiles of operands in flight
  int vector_a = 1, vector_b = 1;             ///< elements per load of each operand
  int micro_m = 0, micro_n = 0;               ///< CPU: micro-kernel
};

struct AttendSchedule {
  MainLoop loop = MainLoop::simt;
  int tile_q = 64, tile_kv = 64;
  int warps = 4;
  int stages = 1;
  int vector = 1;  ///< elements per load of q, k and v
};

using Schedule = std::variant<MapSchedule, ReduceSchedule, ContractSchedule, AttendSchedule>;

/// The heuristics' choice for `kernel` on `target`; the kernel's own schedule is not looked at.
Schedule choose_schedule(const Kernel& kernel, const Target& target);

/// Schedules worth trying for `kernel` on `target`: the heuristics' choice first, then a handful around it. Every one
/// is legal, and no two have the same text.
std::vector<Schedule> candidate_schedules(const Kernel& kernel, const Target& target);

/// "map threads=256 vector=4 unroll=1".
std::string print(const Schedule& schedule);

}  // namespace tenon::codegen
