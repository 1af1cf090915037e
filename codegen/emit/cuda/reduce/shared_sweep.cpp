// Reductions that share a sweep with one that they depend on: the sum of exponentials that a maximum shifts, and the
// squares around a mean. Each is right of what was read so far, or of a tile, and is brought to the row's maximum or
// mean later.
#include <fmt/format.h>

#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/reduce/emitter.h"
#include "codegen/emit/cuda/reduce/long_sums.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {

void ReduceEmitter::emit_online_points(const Online& online, const Points& first, const std::vector<InstrId>& kept,
                                       bool again) {
  Points points = first;
  points.instrs = instrs_behind(kernel_, online.instrs, online.sum, kept);
  points.stores.clear();
  points.accumulators.reduces = {online.sum};
  if (!again) {
    for (InstrId id : plain_loads(first.instrs))  // in x<id> from the same step
      if (first.lanes.vector > 1 && width_of(kernel_, kernel_.instr(id).access, first.lanes) != 0)
        points.registers.held.push_back(id);
    points.registers.index.clear();
  }
  for (const InstrId id : kept) points.registers.held.push_back(id);
  std::erase_if(points.registers.saved, [&](InstrId id) { return contains(kept, id); });
  out_.open("{");
  out_.line(fmt::format("const {} v{} = {};", value_type(kernel_.instr(online.maximum).dtype), online.maximum,
                        origin_of_shift(online, fmt::format("a{}", online.maximum))),
            "so far");
  define(out_, rows_, online.shift_instrs);
  out_.line(fmt::format("a{0} = rescaled(a{0}, shift{0}, v{1});", online.sum, online.shift));
  out_.line(fmt::format("shift{} = v{};", online.sum, online.shift));
  const int opened = again ? walk_.open_elements() : 0;
  emit_points(out_, kernel_, points);
  walk_.close(opened);
  out_.close();
}

void ReduceEmitter::emit_online_result(const Sweep& sweep) {
  const Online& online = *sweep.online;
  const std::string type = value_type(kernel_.instr(online.sum).dtype);
  const bool split = parts_of(schedule_) > 1;
  if (split)
    out_.line(fmt::format("const {0} v{1} = p{1};", value_type(kernel_.instr(online.maximum).dtype), online.maximum));
  define(out_, rows_, online.shift_instrs);
  out_.line(fmt::format("a{0} = rescaled(a{0}, shift{0}, v{1});", online.sum, online.shift));
  for (InstrId id : long_sums(rows_, {online.sum}, team_.size)) {
    out_.line(fmt::format("t{0} = rescaled(t{0}, at{0}, v{1});", id, online.shift));
    add_blocks({id});
  }
  const std::string all = collected(rows_, team_, online.sum);
  if (!split) return emit_result(out_, rows_, online.sum, online_sum(online, all));
  out_.line(fmt::format("const {} p{} = {};", type, online.sum, all));
  save_part(slot_of_online(sweep), type, fmt::format("p{}", online.sum));
}

void ReduceEmitter::declare_moments(const Moments& moments) {
  out_.line(fmt::format("double t{} = 0, t{} = 0;", moments.sum, moments.squares), "of whole tiles");
}

void ReduceEmitter::count_points(const Moments& moments) {
  out_.line(fmt::format("n{} += {};", moments.squares, lanes_.vector));
}

void ReduceEmitter::emit_tile_moments(const Moments& moments, const Points& first, const std::vector<InstrId>& kept) {
  Points points = first;
  points.instrs = kept.empty() ? moments.instrs : instrs_behind(kernel_, moments.instrs, moments.squares, kept);
  for (const InstrId id : kept) points.registers.held.push_back(id);
  points.stores.clear();
  points.accumulators.reduces = {moments.squares};
  out_.open("{");
  std::string count = fmt::format("n{}", moments.squares);
  if (!shared_.empty()) count = fmt::format("({0} > 0 ? {0} : 1)", count);  // a thread may have none of the row
  out_.line(fmt::format("const float v{} = a{} / {};", moments.mean, moments.sum, count), "of the tile");
  out_.line(fmt::format("float a{} = 0;", moments.squares));
  if (!shared_.empty()) emit_shared_points(points);
  if (walk_.chunks() > 0) {
    const int opened = walk_.open_elements();
    emit_points(out_, kernel_, points);
    walk_.close(opened);
  }
  out_.line(
      fmt::format("t{0} += squares_around_zero(a{0}, a{1}, v{2}, n{0});", moments.squares, moments.sum, moments.mean));
  add_tile(moments);
  out_.close();
}

void ReduceEmitter::emit_edge_moments(const Moments& moments) {
  out_.line(fmt::format("t{} += (double)a{} * a{};", moments.squares, moments.sum, moments.sum));
  add_tile(moments);
}

void ReduceEmitter::add_tile(const Moments& moments) {
  out_.line(fmt::format("t{0} += a{0};", moments.sum));
  out_.line(fmt::format("a{} = 0;", moments.sum));
}

void ReduceEmitter::emit_moments_result(const Sweep& sweep) {
  const Moments& moments = *sweep.moments;
  if (schedule_.team.grid > 1) {
    out_.line(fmt::format("const pack<double, 2> both = meeting.reduce(pack<double, 2>{{{{t{}, t{}}}}}, {});",
                          moments.sum, moments.squares, kAddDoubles));
    out_.line(fmt::format("const double p{} = both[0], p{} = both[1];", moments.sum, moments.squares));
  } else {
    for (const InstrId id : {moments.sum, moments.squares})
      out_.line(fmt::format("const double p{} = {};", id, collected_double(team_, fmt::format("t{}", id))));
  }
  if (parts_of(schedule_) == 1) return emit_moments(out_, rows_, moments, "p");
  save_part(slot_of_sum(sweep), "double", fmt::format("p{}", moments.sum));
  save_part(slot_of_squares(sweep), "double", fmt::format("p{}", moments.squares));
}

}  // namespace tenon::codegen::cuda
