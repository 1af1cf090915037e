// Reduce kernels whose rows lie side by side in memory: a thread has neighbouring rows, the columns of its vectors.
// columns.cpp has those whose length vectors divide, columns_peeled.cpp the others; both accumulate in ColumnSums.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/reduce/team.h"

namespace tenon::codegen::cuda {

/// A Reduce kernel whose schedule maps columns.
Source emit_columns(const Kernel& kernel, const Target& target);
/// The same where the schedule is peeled. Rows `vector` apart are aligned alike, so each part takes the rows of one
/// alignment: its vectors begin at aligned addresses, which are the same columns in all of them.
Source emit_peeled_columns(const Kernel& kernel, const Target& target);

/// One sweep's reductions of a thread's `vector` columns, in "pack<float, 4> a<id>". Sums that are long (long_sums.h)
/// add the a<id> of each block to t<id>. So do moments, of which a block adds up x - pivot and its squares. The pivot
/// stands for the mean: it is the thread's first element, then the mean of the block before. A tile's own mean, as rows
/// have it, would cost each column as many instructions as its elements do. An online sum is that of the tiles so far,
/// of exponentials shifted by shift<id>, which follows from their maximum.
class ColumnSums {
 public:
  /// `across`: threads of a block along the columns. The others share theirs.
  ColumnSums(Writer& out, const Rows& rows, const Sweep& sweep, int vector, int across);

  /// Threads that share a column.
  int members() const { return members_; }
  bool has_blocks() const { return !long_.empty() || long_online_ || sweep_.moments.has_value(); }
  void declare();
  /// Writes the pivot of moments, at the thread's first element of its columns, whose scope is open.
  void emit_pivot(const Points& points);
  /// Adds one element of each column. `points` has what the sweep computes.
  void emit_points(const Points& points);
  /// Behind the maxima of a tile: the online sum so far gets their shift.
  void rescale();
  /// What adds one element of each column to the online sum, whose shift is defined here as the vector that it uses.
  /// `points` has what the sweep computes.
  Points online_points(const Points& points) const;
  void end_block();
  void add_blocks();
  /// The team's sums of x and of x² as "p7" and "p9", vectors of double.
  void collect_moments();
  /// The team's online sum as "b7" or "a7", once collected(maximum) is there.
  std::string collected_online();
  /// "b7" for the team's result of reduction 7, which is defined here, or "a7" where the team is one thread.
  std::string collected(InstrId id);
  /// Saves the results as this part's, where `condition` holds; `row` is the number of the first column.
  void emit_parts(const std::string& condition, const std::string& row);
  void for_each_column(const std::string& statement) const;

 private:
  std::string combined(const std::string& value, const std::string& function) const;
  // v<shift> of column j, from the maxima `from` of all columns.
  void emit_shift(const std::string& from);

  Writer& out_;
  const Rows& rows_;
  const Sweep& sweep_;
  std::vector<InstrId> reduces_;  // without those of moments
  int vector_, across_, members_;
  std::vector<InstrId> long_;
  bool long_online_ = false;
};

/// Which instructions are reductions.
std::vector<bool> reductions_of(const Kernel& kernel);
/// Has the run compute `roots` from those of `results` that they need, which are vectors x<id> of the columns.
void compute_from_results(const Kernel& kernel, const std::vector<InstrId>& roots, const std::vector<bool>& results,
                          Points& points);

}  // namespace tenon::codegen::cuda
