// See columns.h.
#include <fmt/format.h>

#include "codegen/emit/cuda/reduce/columns.h"
#include "codegen/emit/cuda/reduce/long_sums.h"
#include "codegen/emit/cuda/text/expression.h"

namespace tenon::codegen::cuda {

ColumnSums::ColumnSums(Writer& out, const Rows& rows, const std::vector<InstrId>& reduces, int vector, int across)
    : out_(out),
      rows_(rows),
      reduces_(reduces),
      vector_(vector),
      across_(across),
      members_(rows.schedule.team.threads / across),
      long_(long_sums(rows, reduces, members_)) {}

void ColumnSums::for_each_column(const std::string& statement) {
  out_.unrolled("j", vector_);
  out_.line(statement);
  out_.close();
}

void ColumnSums::declare() {
  for (InstrId id : reduces_) {
    const Combination how = combination(rows_.kernel, id);
    out_.line(fmt::format("pack<{}, {}> a{};", how.type, vector_, id));
    for_each_column(fmt::format("a{}[j] = {};", id, how.identity));
  }
  for (InstrId id : long_) out_.line(fmt::format("{} t{}[{}] = {{}};", type_of_blocks(rows_, members_), id, vector_));
}

void ColumnSums::end_block() {
  for (InstrId id : long_) for_each_column(fmt::format("t{0}[j] += a{0}[j], a{0}[j] = 0;", id));
}

void ColumnSums::add_blocks() {
  for (InstrId id : long_) for_each_column(fmt::format("a{0}[j] = (float)t{0}[j];", id));
}

std::string ColumnSums::collected(InstrId id) {
  if (members_ == 1) return fmt::format("a{}", id);
  const Combination how = combination(rows_.kernel, id);
  out_.line(fmt::format("const pack<{0}, {1}> b{2} = reduce_columns<{3}, {4}>(a{2}, {5});", how.type, vector_, id,
                        across_, rows_.schedule.team.threads, how.function));
  return fmt::format("b{}", id);
}

void ColumnSums::emit_parts(const std::string& condition, const std::string& row) {
  for (std::size_t slot = 0; slot < reduces_.size(); ++slot) {
    const std::string all = collected(reduces_[slot]);
    out_.open_if(condition);
    for_each_column(
        partial_statement(rows_, slot, row + " + j", combination(rows_.kernel, reduces_[slot]).type, all + "[j]"));
    out_.close_if(condition);
  }
}

}  // namespace tenon::codegen::cuda
