// See long_sums.h.
#include "codegen/emit/cuda/reduce/long_sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/rounds.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kFewTerms = 512;
constexpr int kBlockTerms = 64;
constexpr int kFewBlocks = 128;

// What one thread adds up, at most.
std::int64_t terms_of_thread(const Rows& rows, int members) {
  const std::int64_t parts = std::int64_t{members} * parts_of(rows.schedule) * rows.schedule.team.cluster;
  return rows.length.bounds(rows.kernel.symbols).max / parts;
}

}  // namespace

std::vector<InstrId> long_sums(const Rows& rows, const std::vector<InstrId>& reduces, int members) {
  if (holds_rows(rows.schedule) || terms_of_thread(rows, members) <= kFewTerms) return {};
  std::vector<InstrId> sums;
  for (const InstrId id : reduces) {
    const Instr& instr = rows.kernel.instr(id);
    if (adds_reals(instr) && compute_type(instr.dtype) == DType::f32) sums.push_back(id);
  }
  return sums;
}

const char* type_of_blocks(const Rows& rows, int members) {
  return terms_of_thread(rows, members) <= kFewBlocks * kBlockTerms ? "float" : "double";
}

int turns_of_block(int terms) { return std::max(1, kBlockTerms / terms); }

void open_block(Writer& out, const Rows& rows, const std::string& first, const std::string& end, std::int64_t step) {
  const std::string type = index_type(rows.kernel);
  out.open(fmt::format("for ({0} block = {1}; block < {2}; block += {3}) {{", type, first, end, step));
  out.line(fmt::format("const {0} stop = block + min(({0}){1} - block, ({0}){2});", type, parenthesized(end), step));
}

}  // namespace tenon::codegen::cuda
