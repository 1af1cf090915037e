// Reduce kernels whose rows lie side by side in memory: a thread has neighbouring rows, the columns of its vectors.
// columns.cpp has those whose length vectors divide, columns_peeled.cpp the others; both accumulate in ColumnSums.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/reduce/team.h"

namespace tenon::codegen::cuda {

/// A Reduce kernel whose schedule maps columns.
Source emit_columns(const Kernel& kernel, const Target& target);
/// The same where the schedule is peeled. Rows `vector` apart are aligned alike, so each part takes the rows of one
/// alignment: its vectors begin at aligned addresses, which are the same columns in all of them.
Source emit_peeled_columns(const Kernel& kernel, const Target& target);

/// One sweep's reductions of a thread's `vector` columns, in "pack<float, 4> a<id>". Sums that are long (long_sums.h)
/// add the a<id> of each block to t<id>.
class ColumnSums {
 public:
  /// `across`: threads of a block along the columns. The others share theirs.
  ColumnSums(Writer& out, const Rows& rows, const std::vector<InstrId>& reduces, int vector, int across);

  /// Threads that share a column.
  int members() const { return members_; }
  bool has_blocks() const { return !long_.empty(); }
  void declare();
  void end_block();
  void add_blocks();
  /// "b7" for the team's result of reduction 7, which is defined here, or "a7" where the team is one thread.
  std::string collected(InstrId id);
  /// Saves the results as this part's, where `condition` holds; `row` is the number of the first column.
  void emit_parts(const std::string& condition, const std::string& row);
  void for_each_column(const std::string& statement);

 private:
  Writer& out_;
  const Rows& rows_;
  const std::vector<InstrId>& reduces_;
  int vector_, across_, members_;
  std::vector<InstrId> long_;
};

}  // namespace tenon::codegen::cuda
