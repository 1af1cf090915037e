// Rows and teams. A Reduce kernel deals its rows to teams of threads, and a row's elements to the threads of its team.
// All emitters of Reduce kernels use what stands here: a row's number, its parts, its results and their second
// function.
#pragma once

#include <string>
#include <vector>

#include "codegen/analysis/rounds.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen::cuda {

/// The threads that share a row.
struct Team {
  int rows = 1;         ///< of a block
  int size = 1;         ///< threads of one row
  int each = 1;         ///< neighbouring rows that a thread has
  std::string row;      ///< the number of this thread's rows within the block, in units of `each`
  std::string member;   ///< this thread's place in its row's team
  std::string collect;  ///< the prelude's collective, "" when the team is one thread
  bool stays = true;    ///< a thread beyond the last row: it takes part in collectives and barriers
};

Team team_of(const ReduceSchedule& schedule);

/// A kernel, and what its emitters ask about its rows.
struct Rows {
  explicit Rows(const Kernel& kernel);
  const Kernel& kernel;
  const ReduceSchedule& schedule;
  Rounds rounds;
  Names names;
  std::size_t kept = 0;  ///< axes
  Dim count, length;     ///< rows, and elements of one

  /// The name of an element's row-major index in its row: the reduced axis itself when there is one.
  std::string element() const;
  std::size_t reduced() const { return kernel.axes.size() - kept; }
};

/// "const int member = …;" and, of threads that hold a column, its bounds: the compiler does not know how many a block
/// has, and would test each step of a column that its threads do not divide (H200: mean and variance down 33 f32 rows
/// by two threads each 55 us, 38 with the bounds). Of rows' blocks it then has so many loads under way that fewer run
/// (RMS norm of bf16 rows of 5120: 64 and 74).
void declare_member(Writer& out, const Rows& rows, const Team& team);

/// Blocks that share a row and meet in memory: "row_meeting<66, 512> meeting{…};" and the loop over the rows of such a
/// team of blocks, with the axes of its row and `member`.
void open_rows_of_grid(Writer& out, const Rows& rows, const Team& team, const Target& target);
/// The end of that loop.
void close_rows_of_grid(Writer& out);
/// The teams to launch, as far as the device runs them at once, and the zeroed memory by which they meet, in bytes.
Dim teams_of_grid(const Rows& rows, const Target& target);
std::int64_t meeting_bytes(const Rows& rows, const Target& target);

/// "const u32 row = …;" with the axes of the row, `member`, and `part` where rows are split. Threads beyond the last
/// row that stay work on the last row again, and `inside` is false.
void emit_row(Writer& out, const Rows& rows, const Team& team, int splits, int cluster = 1);
/// Whether the parts of a row take its tiles in turn, so that all blocks read side by side: false where each has a
/// stretch of its own.
bool parts_take_turns(const Rows& rows);
/// The bounds `begin` and `end` of this block's part of the row's elements from `first` (empty: 0) to `last`: where
/// parts take turns, of its first tile of `step` elements and of the row; else it has whole multiples of `step`.
void emit_part(Writer& out, const Rows& rows, std::int64_t step, const std::string& first, const std::string& last);
/// Whether no thread lies beyond the last row: the rows fill whole blocks or, where blocks walk over rows, whole warps.
bool whole_blocks(const Rows& rows, const Team& team);
/// When a thread stores elements of its row: "inside", or empty for always: where none is beyond the last
/// row, or those that are have returned.
std::string element_condition(const Rows& rows, const Team& team);
/// When a thread stores what there is once for each row: "member == 0 && inside".
std::string row_condition(const Rows& rows, const Team& team);

/// The function that adds sums of blocks or of tiles.
inline constexpr const char* kAddDoubles = "[](double a, double b) { return a + b; }";
/// "reduce_lanes<8>(a3, [](float a, float b) …)": the team's accumulators a<id> combined.
std::string collected(const Rows& rows, const Team& team, InstrId reduce);
/// The team's doubles added up.
std::string collected_double(const Team& team, const std::string& value);
void define(Writer& out, const Rows& rows, const std::vector<InstrId>& instrs);
/// The results of moments whose sums of x and of x² are `<name><id>`, in double.
void emit_moments(Writer& out, const Rows& rows, const Moments& moments, const std::string& name);
/// "const float v3 = a3;" for `accumulated` = "a3".
void emit_result(Writer& out, const Rows& rows, InstrId reduce, const std::string& accumulated);
void emit_row_stores(Writer& out, const Rows& rows, const Team& team);

/// Where the parts of reduction number `slot` begin in scratch: each of the parts has an accumulator of `type` for each
/// of `count`.
std::string scratch_parts(const Rows& rows, const Dim& count, int parts, std::size_t slot, const std::string& type);
/// Bytes of scratch for the parts of so many reductions.
Dim scratch_bytes(const Dim& count, int parts, std::size_t reductions);
/// The places of a sweep's reductions in scratch: `reduces`, then what shares the sweep.
std::size_t slots_of(const Sweep& sweep);
std::size_t slot_of_online(const Sweep& sweep);
/// A maximum so far as the shift's origin: "a7", or "shift_of(a7)" where nothing guards it.
std::string origin_of_shift(const Online& online, const std::string& maximum);
/// The row's online sum from that of all threads, once the maximum is known by its name, or is `maximum`.
std::string online_sum(const Online& online, const std::string& sum, const std::string& maximum = {});
std::size_t slot_of_sum(const Sweep& sweep);
std::size_t slot_of_squares(const Sweep& sweep);
/// Saves this part's accumulator `value` of reduction number `slot` of the sweep; `row` is the row's number.
std::string partial_statement(const Rows& rows, std::size_t slot, const std::string& row, const std::string& type,
                              const std::string& value);
/// The second function: combines the parts of each row in order.
Finisher finisher(const Rows& rows, const Target& target);

}  // namespace tenon::codegen::cuda
