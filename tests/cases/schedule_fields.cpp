// One line for each field of codegen/schedule.h. The sizes are asserted, so that a new field is not forgotten.
#include "tests/cases/schedule_fields.h"

#include <fmt/format.h>

#include <type_traits>

namespace tenon::test {
namespace {

using codegen::AttendSchedule;
using codegen::ContractSchedule;
using codegen::MainLoop;
using codegen::MapSchedule;
using codegen::ReduceSchedule;
using codegen::RowMapping;

std::string text(RowMapping mapping) {
  switch (mapping) {
    case RowMapping::thread: return "thread";
    case RowMapping::warp: return "warp";
    case RowMapping::block: return "block";
    case RowMapping::column: return "column";
  }
  return "";
}

std::string text(MainLoop loop) {
  switch (loop) {
    case MainLoop::simt: return "simt";
    case MainLoop::mma_sync: return "mma_sync";
    case MainLoop::cpu: return "cpu";
  }
  return "";
}

template <typename T>
  requires std::is_arithmetic_v<T>
std::string text(T value) {
  return fmt::format("{}", value);
}

#define FIELD(name) {kClass + #name, text(s.name), text(none.name)}

std::vector<Field> fields(const MapSchedule& s) {
  const std::string kClass = "map.";
  const MapSchedule none;
  static_assert(sizeof(MapSchedule) == 56, "a field was added: list it here");
  return {FIELD(threads),   FIELD(vector),          FIELD(flat),         FIELD(unroll),     FIELD(spread),
          FIELD(streaming), FIELD(streaming_loads), FIELD(keep_reads),   FIELD(interleave), FIELD(grain),
          FIELD(tile_axis), FIELD(tile_rows),       FIELD(tile_columns), FIELD(tile_shift), FIELD(tile_vector)};
}

std::vector<Field> fields(const ReduceSchedule& s) {
  const std::string kClass = "reduce.";
  const ReduceSchedule none;
  static_assert(sizeof(ReduceSchedule) == 88, "a field was added: list it here");
  return {FIELD(mapping),         FIELD(threads),    FIELD(lanes),      FIELD(cluster),      FIELD(columns),
          FIELD(vector),          FIELD(unroll),     FIELD(peeled),     FIELD(online),       FIELD(streaming),
          FIELD(streaming_loads), FIELD(keep_reads), FIELD(persistent), FIELD(row_elements), FIELD(shared_elements),
          FIELD(resident),        FIELD(at_most),    FIELD(grain),      FIELD(late_stores),  FIELD(splits),
          FIELD(walkers),         FIELD(ahead),      FIELD(bulk)};
}

std::vector<Field> fields(const ContractSchedule& s) {
  const std::string kClass = "contract.";
  const ContractSchedule none;
  static_assert(sizeof(ContractSchedule) == 44, "a field was added: list it here");
  return {FIELD(loop),   FIELD(tile_m),   FIELD(tile_n),   FIELD(tile_k),  FIELD(warps_m), FIELD(warps_n),
          FIELD(stages), FIELD(vector_a), FIELD(vector_b), FIELD(micro_m), FIELD(micro_n)};
}

std::vector<Field> fields(const AttendSchedule& s) {
  const std::string kClass = "attend.";
  const AttendSchedule none;
  static_assert(sizeof(AttendSchedule) == 24, "a field was added: list it here");
  return {FIELD(loop), FIELD(tile_q), FIELD(tile_kv), FIELD(warps), FIELD(stages), FIELD(vector)};
}

#undef FIELD

}  // namespace

std::vector<Field> fields_of(const codegen::Schedule& schedule) {
  return std::visit([](const auto& s) { return fields(s); }, schedule);
}

std::vector<std::string> all_fields() {
  std::vector<std::string> names;
  for (const codegen::Schedule& schedule : {codegen::Schedule(MapSchedule()), codegen::Schedule(ReduceSchedule()),
                                            codegen::Schedule(ContractSchedule()), codegen::Schedule(AttendSchedule())})
    for (const Field& field : fields_of(schedule)) names.push_back(field.name);
  return names;
}

}  // namespace tenon::test
