// The heuristics of each kernel class: codegen/schedule/<class>.cpp. Behind choose_schedule.
#pragma once

#include <optional>

#include "codegen/analysis/row_shape.h"
#include "codegen/kernel/kernel.h"
#include "codegen/lower/parts.h"
#include "codegen/schedule/schedule.h"

namespace tenon::codegen {

/// Of the L2: more does not stay there until somebody reads it again. Measured on an H100, 32 MB of its 50.
constexpr int kCachedPercent = 64;
/// Of a row, that a thread keeps in registers: ten 16-byte vectors.
constexpr int kMaxHeldBytes = 160;

MapSchedule choose_map_schedule(const Kernel& kernel, const Target& target);
/// Whether `schedule` may be spread: something is the same along the outermost axis, and the vectors along it fill
/// whole blocks (codegen/schedule/spread.cpp).
bool may_spread(const Kernel& kernel, const MapSchedule& schedule);
/// `chosen`, spread where a tensor that all share would not stay in the caches.
MapSchedule spread_where_it_pays(const Kernel& kernel, const Target& target, const MapSchedule& chosen);
/// Gives `schedule` flat vectors of `vector` points and no tile where all that lies across does so within some short
/// axes, whose elements a thread finds in the L1 (bf16 [1122448, 4, 7] turned on an H200: 56 us through a flat tile, 38
/// without; rolled as well 229 and 38). False where it is left as it was.
bool turn_short_axes(MapSchedule& schedule, const Kernel& kernel, int vector);
/// Gives `schedule` a flat tile of vectors of up to `vector` points where a load lies across the domain, and the tile
/// that it has, if any, has short rows (codegen/schedule/map_flat_tile.cpp). False where it is left as it was.
bool choose_flat_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target, int vector);
/// Rows that are gathered from in shared memory, where that brings less than their elements would one by one. `cost`:
/// issue slots of an element (codegen/schedule/map_gather.cpp).
std::optional<MapSchedule> gather_from_shared_memory(const Kernel& kernel, const Target& target, std::int64_t cost);
/// What might be better than `chosen` (codegen/schedule/map_candidates.cpp).
std::vector<MapSchedule> map_alternatives(const Kernel& kernel, const MapSchedule& chosen);
ReduceSchedule choose_reduce_schedule(const Kernel& kernel, const Target& target);
/// Whether more of what each element of a row loads lies along the innermost kept axis than along the innermost reduced
/// one. `kept`: the number of kept axes.
bool column_wise(const Kernel& kernel, std::size_t kept);
/// For a kernel for which that is so (codegen/schedule/reduce_columns.cpp).
ReduceSchedule choose_column_schedule(const Kernel& kernel, const Target& target);
/// The choice for columns that are taken one by one, although vectors might be peeled off their rows.
ReduceSchedule single_columns(const Kernel& kernel, const Target& target);
/// The choice for rows, which neither registers nor shared memory keep from one sweep to the next.
ReduceSchedule rereading(const Kernel& kernel, const Target& target);
/// Enough steps of the loop over a row, each of `vector` elements a thread, for the bytes in flight, none that a row
/// does not have.
int choose_unroll(const Kernel& kernel, int vector, std::int64_t steps);
/// Whether so many single elements are under way, at places that take quotients to find or in a tile of moments, that
/// the compiler, left to itself, orders their loads for more threads than that pays for, or spills (H200: sums of bf16
/// [133222536] times one of nine 385 us, 139 with 64 registers a thread; of a GELU down f32 [2048, 101, 19, 7] 124 and
/// 59; but greatest of tanh down f32 [864, 32769], one axis, 43 and 52, and behind a mask of places 422 and 526).
bool is_many_singles(const Kernel& kernel, const ReduceSchedule& schedule);
inline constexpr int kResidentOfSingles = 1024;
/// Whether a tile keeps what is dear (analysis/held.h). It takes some 80 registers of a thread: a multiprocessor has
/// three blocks of 256, each of which counts as more threads where parts are chosen.
bool keeps_dear_tile(const Kernel& kernel, const SharedSweeps& shared);
inline constexpr int kThreadsOfDear = 256, kResidentOfDear = 768, kCountOfDear = 341;
/// Parts of each row that one sweep reads, where the blocks would not fill the device: of some unrolled steps.
int choose_splits(const Target& target, const RowShape& shape, int rows_of_block, std::int64_t elements_of_part,
                  int threads);
/// Who combines the parts of split rows: a thread where there are many rows, else as many as there are parts for.
RowMapping finishing_team(const Kernel& kernel);
/// The blocks for which a multiprocessor must have registers (Occupancy::least), where nothing else chose them: those
/// that are to run at once.
int blocks_with_registers(const Kernel& kernel, const Target& target, const ReduceSchedule& schedule);
bool one_sweep(const Kernel& kernel, const SharedSweeps& shared);
/// Whether `one_read` of more than the caches hold, of `most_percent` of the L2 at most, should pass them by, where no
/// elements are stored: what is loaded need not push out what others left there, and have it written to memory
/// meanwhile. That is some 5 us saved, once; such loads are 3 % slower.
bool streams_past(const Kernel& kernel, const Target& target, bool one_read, int most_percent);
/// Holds the row in registers when it fits in `most` elements of each thread.
void hold_row(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape, int most);
/// `chosen`, which reads its rows again, with rows in the registers of a cluster of blocks; where there are clusters,
/// and rows that fit one.
std::optional<ReduceSchedule> clustered(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen);
/// `chosen`, with rows in the shared memory, and if need be in registers, of `cluster` or `grid` blocks of `threads`,
/// so that `blocks` fit a multiprocessor; where rows fit.
std::optional<ReduceSchedule> in_shared_memory(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen,
                                               int cluster, int threads, int blocks, int grid = 1);
/// `chosen`, where several sweeps go over its rows, with rows in the shared memory of blocks that meet in memory, of
/// which a multiprocessor runs `resident`. Teams of blocks have rows of their own, in as many turns as the fewest
/// blocks a row would take, and then as many blocks a row as there are.
std::optional<ReduceSchedule> by_grid(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen,
                                      int resident);
/// `chosen`, where several sweeps go over its rows, with rows in shared memory instead: of as few blocks as a row fits,
/// small ones that leave room for a second row on a multiprocessor, which loads while the first is worked on, or one
/// large one; of more where there are too few rows for all multiprocessors; of all that run at once where no cluster
/// holds a row. Where registers hold the rows, only what
/// leaves that room.
std::optional<ReduceSchedule> read_once(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen);
/// Rows that a block of `threads` takes as one run, `lanes` a row, where it can (codegen/schedule/reduce_staged.cpp).
std::optional<ReduceSchedule> staged_rows(const Kernel& kernel, const Target& target, int threads, int lanes);
/// The choice of those, where rows are short and vectors along them narrow, and there are enough of them.
std::optional<ReduceSchedule> choose_staged(const Kernel& kernel, const Target& target);
/// The choice for rows that no run has.
ReduceSchedule choose_rows_apart(const Kernel& kernel, const Target& target);
/// For a kernel with outer reductions (codegen/schedule/reduce_outer.cpp), and what might be better than `chosen` for
/// one.
ReduceSchedule choose_outer_schedule(const Kernel& kernel, const Target& target);
std::vector<ReduceSchedule> outer_alternatives(const Kernel& kernel, const Target& target,
                                               const ReduceSchedule& chosen);
/// What might be better than `chosen` (codegen/schedule/reduce_candidates.cpp).
std::vector<ReduceSchedule> reduce_alternatives(const Kernel& kernel, const Target& target,
                                                const ReduceSchedule& chosen);
ContractSchedule choose_contract_schedule(const Kernel& kernel, const Target& target);
std::vector<ContractSchedule> contract_alternatives(const Kernel& kernel, const Target& target,
                                                    const ContractSchedule& chosen);
/// f32 in parts of tf32, where tensor cores take it and the product is large enough
/// (codegen/schedule/contract_f32.cpp), and what might be better.
std::optional<ContractSchedule> choose_f32_parts(const Kernel& kernel, const ContractParts& parts,
                                                 const Target& target);
std::vector<ContractSchedule> f32_parts_alternatives(const Kernel& kernel, const ContractParts& parts,
                                                     const Target& target);
AttendSchedule choose_attend_schedule(const Kernel& kernel, const Target& target);
std::vector<AttendSchedule> attend_alternatives(const Kernel& kernel, const AttendSchedule& chosen);
/// For every class on a CPU (codegen/schedule/cpu.cpp).
Schedule choose_cpu_schedule(const Kernel& kernel, const Target& target);
/// Whether several tasks can share a row: one sweep reads it, and stores nothing.
bool may_split_on_cpu(const Kernel& kernel, bool online);
/// Whether a buffer can hold what is kept of a row: the row is the innermost axis.
bool may_keep_dear_values(const Kernel& kernel);
/// Whether a maximum and a sum can share a sweep, after which no element is wanted again. What else uses the maximum
/// may see the sign of a zero. What is the same for a whole vector is computed ahead of the vectors, and so of the
/// shifts.
bool shares_the_only_sweep(const Kernel& kernel);
/// Whether the kernel walks over rows several times and only its last sweep stores their elements, and nothing else.
bool stores_may_be_late(const Kernel& kernel, const ReduceSchedule& schedule);
/// What might be better than `chosen` (codegen/schedule/cpu_candidates.cpp).
std::vector<Schedule> cpu_alternatives(const Kernel& kernel, const Schedule& chosen);

}  // namespace tenon::codegen
