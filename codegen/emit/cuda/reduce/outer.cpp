// See outer.h.
#include "codegen/emit/cuda/reduce/outer.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/outer_parts.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

constexpr int kColumns = 32;     // neighbours of a block of the second function
constexpr int kMostBytes = 160;  // of a column's parts that a thread has under way

int blocks(const Rows& rows) { return persistent_blocks(rows.schedule)->blocks; }

// Where the parts of outer reduction number `slot` begin: each block has one for every element of a row.
std::string partials(const Rows& rows, std::size_t slot, const std::string& type) {
  return scratch_parts(rows, rows.length, blocks(rows), slot, type);
}

// Elements of an accumulator that are stored together.
int part_width(const Rows& rows, InstrId id) {
  return combination(rows.kernel, id).is_arg ? 1
                                             : std::min(rows.schedule.vector, 16 / accumulator_bytes(rows.kernel, id));
}

// Whether a thread of `members` that share a column has all of its parts under way at once.
bool at_once(const Rows& rows, InstrId id, int members) {
  return (blocks(rows) + members - 1) / members * accumulator_bytes(rows.kernel, id) <= kMostBytes;
}

// Of a column, in the second function: few, which combine theirs sooner, but enough to have all parts under way.
int finishing_members(const Rows& rows) {
  const std::vector<InstrId> all = outer_reductions(rows);
  int members = 8;
  while (members < 32 && !std::all_of(all.begin(), all.end(), [&](InstrId id) { return at_once(rows, id, members); }))
    members *= 2;
  return members;
}

}  // namespace

std::vector<InstrId> outer_reductions(const Rows& rows) {
  std::vector<InstrId> all;
  for (const Sweep& sweep : rows.rounds.sweeps) all.insert(all.end(), sweep.outer.begin(), sweep.outer.end());
  return all;
}

void declare_outer(Writer& out, const Rows& rows, int chunks) {
  const int vector = rows.schedule.vector;
  const std::vector<InstrId> all = outer_reductions(rows);
  for (InstrId id : all)
    out.line(fmt::format("pack<{}, {}> a{}[{}];", combination(rows.kernel, id).type, vector, id, chunks));
  out.unrolled("c", chunks);
  out.unrolled("j", vector);
  for (InstrId id : all) {
    const Combination how = combination(rows.kernel, id);
    out.line(fmt::format("a{}[c][j] = {};", id, how.identity));
  }
  out.close();
  out.close();
}

namespace {

// "(float*)scratch + blockIdx.x * 96"
std::string part_of_block(const Rows& rows, InstrId id, std::size_t slot) {
  return fmt::format("{} + blockIdx.x * {}", partials(rows, slot, combination(rows.kernel, id).type),
                     parenthesized(dim_text(rows.length, rows.names)));
}

}  // namespace

void emit_outer_parts(Writer& out, const Rows& rows, Walk& walk) {
  const int opened = walk.open_elements();
  std::size_t slot = 0;
  for (InstrId id : outer_reductions(rows))
    out.line(fmt::format("store<{}, {}>({} + {}, a{}[c]);", rows.schedule.vector, part_width(rows, id),
                         part_of_block(rows, id, slot++), rows.element(), id));
  walk.close(opened);
}

void emit_outer_of_warps(Writer& out, const Rows& rows, const Walk& walk) {
  const RowTeam& team = rows.schedule.team;
  out.unrolled("c", walk.chunks());
  std::size_t slot = 0;
  for (InstrId id : outer_reductions(rows))
    out.line(fmt::format("leave_outer<{0}, {1}>({2} + c * {3}, {4} - c * {3}, a{5}[c], shared, {6});", team.lanes,
                         team.threads, part_of_block(rows, id, slot++), walk.step(), dim_text(rows.length, rows.names),
                         id, combination(rows.kernel, id).function));
  out.close();
}

Finisher outer_finisher(const Rows& rows, const Target& target) {
  const Kernel& kernel = rows.kernel;
  const std::vector<InstrId> all = outer_reductions(rows);
  Finisher result;
  const int members = finishing_members(rows), threads = kColumns * members;
  result.block = threads;
  result.grid = blocks_of(rows.length, kColumns);
  result.scratch_bytes = scratch_bytes(rows.length, blocks(rows), all.size());
  Writer& out = result.body;
  join_stream(out, target);
  const std::string length = dim_text(rows.length, rows.names);
  out.line(fmt::format("const u32 own = blockIdx.x * {0} + threadIdx.x % {0};", kColumns));
  out.line(fmt::format("const int member = threadIdx.x / {};", kColumns));
  out.line(fmt::format("const bool inside = own < {};", length));
  out.line(fmt::format("const u32 place = inside ? own : {} - 1;", length));
  decode_axes(out, kernel, rows.kept, kernel.axes.size(), "place");
  std::vector<bool> defined(kernel.body.size(), false);
  for (std::size_t slot = 0; slot < all.size(); ++slot) {
    const InstrId id = all[slot];
    const Combination how = combination(rows.kernel, id);
    out.line(fmt::format("pack<{}, 1> a{};", how.type, id));
    out.line(fmt::format("a{}[0] = {}<{}, {}>({} + place, {}, member, {}, {});", id,
                         at_once(rows, id, members) ? "combine_at_once" : "combine_parts", blocks(rows), members,
                         partials(rows, slot, how.type), length, how.typed_identity(), how.function));
  }
  for (InstrId id : all) {
    emit_result(out, rows, id,
                fmt::format("reduce_columns<{}, {}>(a{}, {})[0]", kColumns, threads, id,
                            combination(rows.kernel, id).function));
    defined[static_cast<std::size_t>(id)] = true;
  }
  define(out, rows, needed(kernel, roots_of(kernel, rows.rounds.outer_stores), defined));
  for (int store : rows.rounds.outer_stores)
    out.line(conditional_store(kernel, store_at(kernel, store), rows.names, "member == 0 && inside"));
  return result;
}

}  // namespace tenon::codegen::cuda
