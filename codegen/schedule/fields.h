// The fields of every schedule in one table for each struct, from which schedules are printed, parsed and counted. A
// reader `f` is told of each field in order: its name, its value and its default. Behind a choice (Keep, Cut) stand the
// fields of what is chosen.
#pragma once

#include <array>

#include "codegen/schedule/schedule.h"

namespace tenon::codegen {

/// The words for an enum's values or a variant's alternatives, in their order; the variants' first is the default.
inline constexpr std::array kRowMappings = {"thread", "warp", "block", "column"};
inline constexpr std::array kMainLoops = {"simt", "mma_sync", "mma_3xtf32", "wgmma", "stream", "cpu"};
inline constexpr std::array kFeeds = {"boxes", "threads"};
inline constexpr std::array kKeeps = {"reread", "registers", "shared", "buffer"};
inline constexpr std::array kCuts = {"whole", "splits", "persistent_blocks"};

inline constexpr const auto& words(RowMapping) { return kRowMappings; }
inline constexpr const auto& words(MainLoop) { return kMainLoops; }
inline constexpr const auto& words(Feed) { return kFeeds; }
inline constexpr const auto& words(const Keep&) { return kKeeps; }
inline constexpr const auto& words(const Cut&) { return kCuts; }

template <typename S, typename T, typename F>
void field(F& f, const char* name, S& s, T S::* member) {
  f(name, s.*member, S{}.*member);
}

template <typename F>
void fields(F& f, CachePolicy& s) {
  field(f, "streaming", s, &CachePolicy::streaming);
  field(f, "streaming_loads", s, &CachePolicy::streaming_loads);
  field(f, "keep_reads", s, &CachePolicy::keep_reads);
}

template <typename F>
void fields(F& f, MapTile& s) {
  field(f, "axis", s, &MapTile::axis);
  field(f, "rows", s, &MapTile::rows);
  field(f, "columns", s, &MapTile::columns);
  field(f, "tile_vector", s, &MapTile::vector);
  field(f, "shift", s, &MapTile::shift);
}

template <typename F>
void fields(F& f, MapSchedule& s) {
  field(f, "threads", s, &MapSchedule::threads);
  field(f, "vector", s, &MapSchedule::vector);
  field(f, "flat", s, &MapSchedule::flat);
  field(f, "unroll", s, &MapSchedule::unroll);
  field(f, "spread", s, &MapSchedule::spread);
  field(f, "interleave", s, &MapSchedule::interleave);
  field(f, "interior", s, &MapSchedule::interior);
  field(f, "overlaps", s, &MapSchedule::overlaps);
  field(f, "strip", s, &MapSchedule::strip);
  field(f, "staged", s, &MapSchedule::staged);
  f.optional("tile", s.tile);
  fields(f, s.cache);
  field(f, "grain", s, &MapSchedule::grain);
}

template <typename F>
void fields(F& f, RowTeam& s) {
  field(f, "team", s, &RowTeam::mapping);
  field(f, "threads", s, &RowTeam::threads);
  field(f, "lanes", s, &RowTeam::lanes);
  field(f, "cluster", s, &RowTeam::cluster);
  field(f, "grid", s, &RowTeam::grid);
  field(f, "columns", s, &RowTeam::columns);
}

template <typename F>
void fields(F& f, Reread& s) {
  field(f, "online", s, &Reread::online);
  field(f, "unroll", s, &Reread::unroll);
  field(f, "moments", s, &Reread::moments);
}

template <typename F>
void fields(F& f, InRegisters& s) {
  field(f, "elements", s, &InRegisters::elements);
}

template <typename F>
void fields(F& f, InShared& s) {
  field(f, "elements", s, &InShared::elements);
  field(f, "shared", s, &InShared::shared);
  field(f, "shared_unroll", s, &InShared::unroll);
  field(f, "moments", s, &InShared::moments);
}

template <typename F>
void fields(F&, InBuffer&) {}

template <typename F>
void fields(F&, WholeRows&) {}

template <typename F>
void fields(F& f, Splits& s) {
  field(f, "parts", s, &Splits::parts);
  field(f, "finish", s, &Splits::finish);
}

template <typename F>
void fields(F& f, PersistentBlocks& s) {
  field(f, "blocks", s, &PersistentBlocks::blocks);
  field(f, "stages", s, &PersistentBlocks::stages);
  field(f, "bulk", s, &PersistentBlocks::bulk);
}

template <typename F>
void fields(F& f, Occupancy& s) {
  field(f, "least_blocks", s, &Occupancy::least);
  field(f, "most_blocks", s, &Occupancy::most);
}

template <typename F>
void fields(F& f, ReduceSchedule& s) {
  fields(f, s.team);
  field(f, "vector", s, &ReduceSchedule::vector);
  field(f, "peeled", s, &ReduceSchedule::peeled);
  field(f, "staged", s, &ReduceSchedule::staged);
  f.choice("keep", s.keep);
  f.choice("cut", s.cut);
  fields(f, s.cache);
  fields(f, s.occupancy);
  field(f, "in_flight", s, &ReduceSchedule::in_flight);
  field(f, "grain", s, &ReduceSchedule::grain);
  field(f, "late_stores", s, &ReduceSchedule::late_stores);
}

template <typename F>
void fields(F& f, ContractSchedule& s) {
  field(f, "loop", s, &ContractSchedule::loop);
  field(f, "tile_m", s, &ContractSchedule::tile_m);
  field(f, "tile_n", s, &ContractSchedule::tile_n);
  field(f, "tile_k", s, &ContractSchedule::tile_k);
  field(f, "warps_m", s, &ContractSchedule::warps_m);
  field(f, "warps_n", s, &ContractSchedule::warps_n);
  field(f, "warps_k", s, &ContractSchedule::warps_k);
  field(f, "stages", s, &ContractSchedule::stages);
  field(f, "vector_a", s, &ContractSchedule::vector_a);
  field(f, "vector_b", s, &ContractSchedule::vector_b);
  field(f, "products", s, &ContractSchedule::products);
  field(f, "consumers", s, &ContractSchedule::consumers);
  field(f, "turns", s, &ContractSchedule::turns);
  field(f, "lead", s, &ContractSchedule::lead);
  field(f, "feed_a", s, &ContractSchedule::feed_a);
  field(f, "feed_b", s, &ContractSchedule::feed_b);
  field(f, "producers", s, &ContractSchedule::producers);
  field(f, "cluster", s, &ContractSchedule::cluster);
  field(f, "parts", s, &ContractSchedule::parts);
  field(f, "split_k", s, &ContractSchedule::split_k);
  field(f, "box_results", s, &ContractSchedule::box_results);
  field(f, "block_steps", s, &ContractSchedule::block_steps);
  field(f, "bounded", s, &ContractSchedule::bounded);
  field(f, "streaming_loads", s, &ContractSchedule::streaming_loads);
  field(f, "micro_m", s, &ContractSchedule::micro_m);
}

template <typename F>
void fields(F& f, AttendSchedule& s) {
  field(f, "loop", s, &AttendSchedule::loop);
  field(f, "tile_q", s, &AttendSchedule::tile_q);
  field(f, "tile_kv", s, &AttendSchedule::tile_kv);
  field(f, "vector", s, &AttendSchedule::vector);
  field(f, "stages", s, &AttendSchedule::stages);
  field(f, "turns", s, &AttendSchedule::turns);
  field(f, "parts", s, &AttendSchedule::parts);
  field(f, "split_kv", s, &AttendSchedule::split_kv);
  field(f, "resident", s, &AttendSchedule::resident);
  field(f, "block_mask", s, &AttendSchedule::block_mask);
  field(f, "score_boxes", s, &AttendSchedule::score_boxes);
}

}  // namespace tenon::codegen
