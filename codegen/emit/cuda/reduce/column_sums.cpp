// See columns.h.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/reduce/columns.h"
#include "codegen/emit/cuda/reduce/long_sums.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {

ColumnSums::ColumnSums(Writer& out, const Rows& rows, const Sweep& sweep, int vector, int across)
    : out_(out),
      rows_(rows),
      sweep_(sweep),
      reduces_(sweep.reduces),
      vector_(vector),
      across_(across),
      members_(rows.schedule.team.threads / across) {
  if (sweep.moments) std::erase(reduces_, sweep.moments->sum);
  long_ = long_sums(rows, reduces_, members_);
  long_online_ = sweep.online && !long_sums(rows, {sweep.online->sum}, members_).empty();
}

void ColumnSums::for_each_column(const std::string& statement) const {
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
  if (sweep_.online) {
    const Online& online = *sweep_.online;
    const std::string type = value_type(rows_.kernel.instr(online.sum).dtype);
    out_.line(fmt::format("pack<{0}, {1}> a{2} = {{}}, shift{2} = {{}};", type, vector_, online.sum));
    if (long_online_) {
      out_.line(fmt::format("{} t{}[{}] = {{}};", type_of_blocks(rows_, members_), online.sum, vector_));
      out_.line(fmt::format("float at{}[{}] = {{}};", online.sum, vector_), "their shift");
    }
  }
  if (!sweep_.moments) return;
  const Moments& moments = *sweep_.moments;
  for (const InstrId id : {moments.sum, moments.squares}) {
    out_.line(fmt::format("pack<double, {}> t{} = {{}};", vector_, id), "of whole blocks");
    out_.line(fmt::format("pack<float, {}> a{} = {{}};", vector_, id));
  }
  out_.line(fmt::format("pack<float, {}> x{} = {{}};", vector_, moments.mean), "pivot");
  out_.line(fmt::format("int n{} = 0;", moments.squares));
}

void ColumnSums::emit_pivot(const Points& points) {
  const Moments& moments = *sweep_.moments;
  Points first = points;
  first.stores.clear();
  first.accumulators.reduces = {moments.sum};
  compute_from_results(rows_.kernel, {rows_.kernel.instr(moments.sum).args[0]}, reductions_of(rows_.kernel), first);
  cuda::emit_points(out_, rows_.kernel, first);
  for_each_column(fmt::format("x{0}[j] = moved_pivot(0.0f, a{1}[j], 1), a{1}[j] = 0;", moments.mean, moments.sum));
}

void ColumnSums::emit_points(const Points& points) {
  if (!sweep_.moments) return cuda::emit_points(out_, rows_.kernel, points);
  const Moments& moments = *sweep_.moments;
  Kernel shifted = rows_.kernel;  // whose sum is of x - mean
  const InstrId square = shifted.instr(moments.squares).args[0];
  shifted.body[static_cast<std::size_t>(moments.sum)].args[0] = shifted.instr(square).args[0];
  std::vector<bool> results = reductions_of(shifted);
  results[static_cast<std::size_t>(moments.mean)] = true;
  Points with_squares = points;
  std::vector<InstrId>& reduces = with_squares.accumulators.reduces;
  reduces.push_back(moments.squares);
  std::vector<InstrId> roots;
  for (InstrId id : reduces) roots.push_back(shifted.instr(id).args[0]);
  compute_from_results(shifted, roots, results, with_squares);
  cuda::emit_points(out_, shifted, with_squares);
  out_.line(fmt::format("++n{};", moments.squares));
}

void ColumnSums::emit_shift(const std::string& from) {
  const Online& online = *sweep_.online;
  out_.line(fmt::format("const {} v{} = {};", value_type(rows_.kernel.instr(online.maximum).dtype), online.maximum,
                        origin_of_shift(online, from + "[j]")));
  define(out_, rows_, online.shift_instrs);
}

void ColumnSums::rescale() {
  const Online& online = *sweep_.online;
  out_.unrolled("j", vector_);
  emit_shift(fmt::format("a{}", online.maximum));
  out_.line(fmt::format("a{0}[j] = rescaled(a{0}[j], shift{0}[j], v{1});", online.sum, online.shift));
  out_.line(fmt::format("shift{}[j] = v{};", online.sum, online.shift));
  out_.close();
}

Points ColumnSums::online_points(const Points& points) const {
  const Online& online = *sweep_.online;
  out_.line(fmt::format("const pack<{}, {}> x{} = shift{};", value_type(rows_.kernel.instr(online.sum).dtype), vector_,
                        online.shift, online.sum));
  Points behind = points;
  behind.stores.clear();
  behind.accumulators.reduces = {online.sum};
  std::vector<bool> results = reductions_of(rows_.kernel);
  results[static_cast<std::size_t>(online.shift)] = true;
  compute_from_results(rows_.kernel, rows_.kernel.instr(online.sum).args, results, behind);
  return behind;
}

void ColumnSums::end_block() {
  for (InstrId id : long_) for_each_column(fmt::format("t{0}[j] += a{0}[j], a{0}[j] = 0;", id));
  if (long_online_) {
    const Online& online = *sweep_.online;
    out_.unrolled("j", vector_);
    out_.line(fmt::format("t{0}[j] = rescaled(t{0}[j], at{0}[j], shift{0}[j]) + a{0}[j];", online.sum));
    out_.line(fmt::format("at{0}[j] = shift{0}[j], a{0}[j] = 0;", online.sum));
    out_.close();
  }
  if (!sweep_.moments) return;
  const Moments& moments = *sweep_.moments;
  out_.unrolled("j", vector_);
  out_.line(fmt::format("add_around(t{0}[j], t{1}[j], a{0}[j], a{1}[j], x{2}[j], n{1});", moments.sum, moments.squares,
                        moments.mean));
  out_.line(fmt::format("x{0}[j] = moved_pivot(x{0}[j], a{1}[j], n{2});", moments.mean, moments.sum, moments.squares));
  out_.line(fmt::format("a{}[j] = a{}[j] = 0;", moments.sum, moments.squares));
  out_.close();
  out_.line(fmt::format("n{} = 0;", moments.squares));
}

void ColumnSums::add_blocks() {
  for (InstrId id : long_) for_each_column(fmt::format("a{0}[j] = (float)t{0}[j];", id));
  if (long_online_) for_each_column(fmt::format("a{0}[j] = (float)t{0}[j];", sweep_.online->sum));
}

void ColumnSums::collect_moments() {
  for (const InstrId id : {sweep_.moments->sum, sweep_.moments->squares})
    out_.line(
        fmt::format("const pack<double, {}> p{} = {};", vector_, id, combined(fmt::format("t{}", id), kAddDoubles)));
}

std::string ColumnSums::combined(const std::string& value, const std::string& function) const {
  if (members_ == 1) return value;
  return fmt::format("reduce_columns<{}, {}>({}, {})", across_, rows_.schedule.team.threads, value, function);
}

std::string ColumnSums::collected(InstrId id) {
  if (members_ == 1) return fmt::format("a{}", id);
  const Combination how = combination(rows_.kernel, id);
  out_.line(fmt::format("const pack<{}, {}> all{} = {};", how.type, vector_, id,
                        combined(fmt::format("a{}", id), how.function)));
  return fmt::format("all{}", id);
}

std::string ColumnSums::collected_online() {
  const Online& online = *sweep_.online;
  const std::string sum = fmt::format("a{}", online.sum);
  if (members_ == 1) return sum;
  out_.unrolled("j", vector_);
  emit_shift(fmt::format("all{}", online.maximum));
  out_.line(fmt::format("a{0}[j] = rescaled(a{0}[j], shift{0}[j], v{1});", online.sum, online.shift));
  out_.close();
  const Combination how = combination(rows_.kernel, online.sum);
  out_.line(fmt::format("const pack<{}, {}> all{} = {};", how.type, vector_, online.sum, combined(sum, how.function)));
  return fmt::format("all{}", online.sum);
}

void ColumnSums::emit_parts(const std::string& condition, const std::string& row) {
  const auto part = [&](std::size_t slot, const std::string& type, const std::string& all) {
    out_.open_if(condition);
    for_each_column(partial_statement(rows_, slot, row + " + j", type, all + "[j]"));
    out_.close_if(condition);
  };
  for (std::size_t slot = 0; slot < sweep_.reduces.size(); ++slot)
    if (const InstrId id = sweep_.reduces[slot]; !sweep_.moments || id != sweep_.moments->sum)
      part(slot, combination(rows_.kernel, id).type, collected(id));
  if (sweep_.online)
    part(slot_of_online(sweep_), value_type(rows_.kernel.instr(sweep_.online->sum).dtype), collected_online());
  if (!sweep_.moments) return;
  collect_moments();
  part(slot_of_sum(sweep_), "double", fmt::format("p{}", sweep_.moments->sum));
  part(slot_of_squares(sweep_), "double", fmt::format("p{}", sweep_.moments->squares));
}

std::vector<bool> reductions_of(const Kernel& kernel) {
  std::vector<bool> reductions(kernel.body.size());
  for (std::size_t i = 0; i < kernel.body.size(); ++i) reductions[i] = kernel.body[i].kind == InstrKind::reduce;
  return reductions;
}

void compute_from_results(const Kernel& kernel, const std::vector<InstrId>& roots, const std::vector<bool>& results,
                          Points& points) {
  points.instrs = needed(kernel, roots, results);
  std::vector<InstrId> used;
  const auto use = [&](InstrId id) {
    if (results[static_cast<std::size_t>(id)] && !contains(used, id)) used.push_back(id);
  };
  for (InstrId id : roots) use(id);
  for (InstrId id : points.instrs)
    for (InstrId operand : operands_of(kernel.instr(id))) use(operand);
  points.instrs.insert(points.instrs.end(), used.begin(), used.end());
  std::sort(points.instrs.begin(), points.instrs.end());
  for (InstrId id : used)
    if (!contains(points.registers.held, id)) points.registers.held.push_back(id);
}

}  // namespace tenon::codegen::cuda
