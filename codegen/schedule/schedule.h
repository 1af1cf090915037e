// Schedules: the choices for one kernel that its body leaves open. Plain data, printed, parsed and verified
// (text.cpp, verify.cpp). One struct for each kernel class, which both emitters read; a field that means
// nothing to a target stays at its default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codegen/target/target.h"

namespace tenon::codegen {

struct Kernel;
struct SharedSweeps;

/// What is asked of the caches. Hints: no result depends on them, and no other field.
struct CachePolicy {
  bool streaming = false;        ///< stores bypass the caches: the data is larger than they are and not read again
  bool streaming_loads = false;  ///< CUDA: so do vector loads of what is read once
  bool keep_reads = false;       ///< CUDA: the L2 is to keep lines that are read rather than those that are written

  bool operator==(const CachePolicy&) const = default;
};

/// A tile of a Map kernel. Accesses that are contiguous along another axis than the innermost pass through it: on CUDA
/// it lies in shared memory, on a CPU in scratch memory of the thread.
struct MapTile {
  int axis = -1;       ///< those accesses are contiguous along it
  int rows = 0;        ///< extent along `axis`
  int columns = 0;     ///< and along the innermost axis
  int vector = 1;      ///< CUDA: consecutive elements along `axis` that a thread moves, as far as alignment allows
  bool shift = false;  ///< CUDA: rows that begin at any element move as aligned vectors, shifted on their way through
                       ///< the tile; a vector's columns then overlap with its neighbour's

  bool operator==(const MapTile&) const = default;
};

struct MapSchedule {
  int threads = 256;    ///< CUDA: of a block
  int vector = 1;       ///< consecutive elements of the innermost axis that one thread or SIMD operation handles
  bool flat = false;    ///< CUDA: of the domain in row-major order instead, across the ends of rows; with a tile, both
                        ///< sides of it are such runs (codegen/analysis/flat_tile.h)
  int unroll = 1;       ///< vectors of a thread
  bool spread = false;  ///< CUDA: they lie side by side along the outermost axis and share what does not vary along it;
                        ///< `unroll` divides the axis
  bool interleave = false;  ///< CPU: a turn's vectors are computed side by side; what is read beside stores that bypass
                            ///< the caches is fetched ahead
  bool interior = false;    ///< where guards of one axis hold (analysis/interior.h) they are left out: a CPU's loop is
                            ///< cut there, a thread of CUDA has another body
  int strip = 1;            ///< CUDA: points of the axis before the innermost that a thread has, all of its vector's,
                            ///< so that what they share is loaded once
  bool overlaps = false;    ///< CUDA: a thread loads the stretches of analysis/overlap.h once
  bool staged = false;      ///< CUDA: the rows that elements are gathered from come to shared memory of a block, whose
                            ///< threads have `strip` of them, and `unroll` vectors of each (analysis/gathered_rows.h)
  std::optional<MapTile> tile = {};
  CachePolicy cache = {};
  std::int64_t grain = 0;  ///< CPU: elements of one task

  bool operator==(const MapSchedule&) const = default;
};

/// Who works on one row (one point of the kept axes).
enum class RowMapping : std::uint8_t {
  thread,  ///< a thread reduces a row alone
  warp,    ///< the lanes of a warp share a row
  block,   ///< a thread block shares a row
  column,  ///< threads lie along the innermost kept axis and walk the reduced axes: coalesced outer reductions
};

struct RowTeam {
  RowMapping mapping = RowMapping::block;
  int threads = 256;  ///< CUDA: of a block
  int lanes = 32;     ///< CUDA, warp: lanes that share a row, a power of two; a warp has 32 / lanes rows
  int cluster = 1;    ///< CUDA, block: thread blocks that share a row through each other's shared memory (sm_90 on)
  int grid = 1;       ///< CUDA, block: thread blocks that share a row and meet in memory; all blocks run at once and
                      ///< walk over the rows
  int columns = 32;   ///< CUDA, column: threads of a block along the kept axis, a power of two

  bool operator==(const RowTeam&) const = default;
};

/// Each sweep reads the row again.
struct Reread {
  bool online = false;   ///< a maximum and the exponentials shifted by it are summed in one sweep, rescaled
  int unroll = 1;        ///< CUDA: steps of the loop over a row whose loads are in flight together
  bool moments = false;  ///< CUDA: a mean and the squares around it are summed in one sweep, tile by tile

  bool operator==(const Reread&) const = default;
};
/// CUDA: each thread keeps its elements of the row in registers.
struct InRegisters {
  int elements = 0;  ///< capacity of a thread

  bool operator==(const InRegisters&) const = default;
};
/// CUDA, block: in shared memory, and in registers what does not fit.
struct InShared {
  int elements = 0;      ///< capacity of a thread
  int shared = 0;        ///< of those, what lies in shared memory
  int unroll = 2;        ///< steps of the loop over what lies in shared memory
  bool moments = false;  ///< a mean and the squares around it are summed in one sweep, each thread around its own mean

  bool operator==(const InShared&) const = default;
};
/// CPU: what is dear to compute again stays in a buffer (codegen/analysis/dear_values.h).
struct InBuffer {
  bool operator==(const InBuffer&) const = default;
};
/// What is kept of a row from one sweep to the next.
using Keep = std::variant<Reread, InRegisters, InShared, InBuffer>;

/// Every team has rows of its own.
struct WholeRows {
  bool operator==(const WholeRows&) const = default;
};
/// There are few rows: several teams share each, and a second function combines their parts.
struct Splits {
  int parts = 2;
  RowMapping finish = RowMapping::thread;  ///< CUDA: who combines the parts of a row: a thread, a warp or a block

  bool operator==(const Splits&) const = default;
};
/// CUDA, block or warp: a fixed number of blocks walk over all rows, and keep the outer reductions of theirs.
struct PersistentBlocks {
  int blocks = 1;
  int stages = 0;     ///< rows under way while one is worked on: one waits in registers, more in shared memory
  bool bulk = false;  ///< block: all of them in shared memory; one thread asks for a whole row at once (sm_90 on)

  bool operator==(const PersistentBlocks&) const = default;
};
/// How the rows are dealt to blocks.
using Cut = std::variant<WholeRows, Splits, PersistentBlocks>;

/// CUDA: blocks on a multiprocessor.
struct Occupancy {
  int least = 0;  ///< it must have registers for so many; 0: as the compiler likes
  int most = 0;   ///< it takes no more, by the shared memory that each asks for; 0: as many as fit

  bool operator==(const Occupancy&) const = default;
};

struct ReduceSchedule {
  RowTeam team = {};
  int vector = 1;       ///< elements of an access: of the innermost reduced axis; column: of the innermost kept one
  bool peeled = false;  ///< CUDA: vectors begin at 16-byte boundaries; threads take the ends of a row as elements
  bool staged = false;  ///< CUDA, thread and warp: the rows of a block, which lie one behind the other, come to shared
                        ///< memory and leave it as one run (codegen/analysis/staged_rows.h)
  Keep keep = {};
  Cut cut = {};
  CachePolicy cache = {};
  Occupancy occupancy = {};
  int in_flight = 4;         ///< CPU: vectors of a turn: of a row, whose reductions have as many accumulators (twice as
                             ///< many where little is computed of an element); column: of neighbouring rows
  std::int64_t grain = 0;    ///< CPU: rows of one task
  bool late_stores = false;  ///< CPU: a row's elements are stored in turns with the sweeps over the row behind it

  bool operator==(const ReduceSchedule&) const = default;
};

/// `parts` of each row, which `finish` combines, or the whole row.
Cut in_parts(int parts, RowMapping finish = RowMapping::thread);
/// The same schedule with other parts of a row.
void set_parts(ReduceSchedule& schedule, int parts);
/// The choices of a schedule that reads its rows again; others have none.
Reread& reread(ReduceSchedule& schedule);

/// Whether rows stay in registers or shared memory from one sweep to the next.
bool holds_rows(const ReduceSchedule& schedule);
/// Of a held row: the capacity of a thread in elements, and what of it lies in shared memory; 0 where none is held.
int held_elements(const ReduceSchedule& schedule);
int shared_elements(const ReduceSchedule& schedule);
/// Of a row that is read again; else false and 1.
bool is_online(const ReduceSchedule& schedule);
bool has_moments(const ReduceSchedule& schedule);
/// What shares a sweep with what it depends on (codegen/analysis/rounds.h).
SharedSweeps shared_of(const ReduceSchedule& schedule);
int unroll_of(const ReduceSchedule& schedule);
/// Who combines the parts of a row.
RowMapping finish_of(const ReduceSchedule& schedule);
/// Parts of each row, 1 where it is whole.
int parts_of(const ReduceSchedule& schedule);
/// Null where blocks have no fixed number.
const PersistentBlocks* persistent_blocks(const ReduceSchedule& schedule);
/// Threads that share a row.
int team_size(const ReduceSchedule& schedule);

enum class MainLoop : std::uint8_t {
  simt,        ///< scalar FMA on registers, operands through shared memory: every dtype
  mma_sync,    ///< warp-level tensor cores (sm_75: f16; sm_80 and later: f16, bf16, tf32)
  mma_3xtf32,  ///< the same of f32, each element of which is two numbers of tf32 (sm_80 and later)
  wgmma,       ///< tensor cores of warpgroups, operands by boxes (sm_90a: f16, bf16)
  stream,      ///< few rows or columns: mma_sync on what warps, which divide the depth, load into registers (f16, bf16)
  cpu,         ///< packed panels and a vector micro-kernel
};

/// How an operand of a wgmma main loop comes into shared memory.
enum class Feed : std::uint8_t {
  boxes,    ///< one thread asks for boxes that a tensor map describes
  threads,  ///< a warpgroup reads, computes on and writes it
};

struct ContractSchedule {
  MainLoop loop = MainLoop::simt;
  int tile_m = 64, tile_n = 64, tile_k = 16;  ///< of a block (CPU: cache block; stream: tile_k is a warp's)
  int warps_m = 2, warps_n = 2;               ///< warps of a block along m and n
  int warps_k = 1;  ///< stream: warps that divide the depth; simt, mma_3xtf32: groups of warps, of a tile's depth
  int stages = 2;   ///< tiles of operands in flight
  int vector_a = 1, vector_b = 1;  ///< elements per load of each operand
  int products = 1;                ///< wgmma: of the same rows, which share tile_n columns of a tile
  int consumers = 2;               ///< wgmma: warpgroups that multiply
  bool turns = false;              ///< wgmma: each multiplies whole tiles while another hands its sums out
  int lead = 0;  ///< wgmma: steps by which the first of two is ahead, so that one multiplies while another hands out
  Feed feed_a = Feed::boxes, feed_b = Feed::boxes;  ///< wgmma
  int producers = 1;                                ///< wgmma: warpgroups that bring operands, step by step in turns
  int cluster = 1;           ///< wgmma: blocks with neighbouring tiles along m, which share tiles of b
  int parts = 1;             ///< wgmma: blocks of a cluster that divide the depth of one tile
  int split_k = 1;           ///< wgmma: blocks that divide the depth of one tile, and leave their sums in memory
  bool box_results = false;  ///< wgmma: results leave shared memory as boxes, while the next tile is multiplied
  int block_steps = 0;       ///< wgmma: steps of the depth whose sums are added to totals; 0: there are none
  bool bounded = false;      ///< tiles and depth that masks of positions hide are skipped (analysis/product_bounds.h)
  bool streaming_loads = false;  ///< stream: what is read once bypasses the caches
  int micro_m = 0;               ///< CPU: rows of the micro-kernel, which is two vectors wide

  bool operator==(const ContractSchedule&) const = default;
};

struct AttendSchedule {
  MainLoop loop = MainLoop::simt;
  int tile_q = 64, tile_kv = 64;
  int vector = 1;      ///< elements per load of q, k and v
  int stages = 2;      ///< wgmma: tiles of keys, and of values, that are there or on their way
  bool turns = false;  ///< wgmma: one warpgroup multiplies while another has its softmax
  int parts = 1;       ///< wgmma: blocks of a cluster that divide the keys of a tile of queries
  int split_kv = 1;    ///< wgmma: blocks that divide them, and leave their sums in memory
  int resident = 1;    ///< wgmma: blocks that a multiprocessor runs at once
  bool block_mask =
      false;  ///< wgmma, cpu: tiles of keys that masks hide are found, and skipped (analysis/tile_tests.h)
  bool score_boxes = false;  ///< wgmma: what scores read comes as boxes (analysis/read_ahead.h)

  bool operator==(const AttendSchedule&) const = default;
};

using Schedule = std::variant<MapSchedule, ReduceSchedule, ContractSchedule, AttendSchedule>;

/// The heuristics' choice for `kernel` on `target`; the kernel's own schedule is not looked at.
Schedule choose_schedule(const Kernel& kernel, const Target& target);

/// Schedules worth trying for `kernel` on `target`: the heuristics' choice first, then a handful around it. Every one
/// is legal, and no two are the same.
std::vector<Schedule> candidate_schedules(const Kernel& kernel, const Target& target);

/// Whether `schedule` does nothing that is switched off.
bool respects(const Schedule& schedule, const Features& may);

/// "map threads=256 vector=4": fields that have their default are left out.
std::string print(const Schedule& schedule);
/// What print wrote. Error(parse) names the word that is wrong.
Schedule parse_schedule(std::string_view text);

/// Why `kernel` cannot be written with `schedule` for `target`, a sentence; empty where it can.
std::string verify(const Schedule& schedule, const Kernel& kernel, const Target& target);

}  // namespace tenon::codegen
