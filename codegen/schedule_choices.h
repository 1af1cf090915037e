// The heuristics of each kernel class: codegen/schedule_<class>.cpp. Behind choose_schedule.
#pragma once

#include <optional>

#include "codegen/kernel.h"
#include "codegen/schedule.h"

namespace tenon::codegen {

MapSchedule choose_map_schedule(const Kernel& kernel, const Target& target);
/// What might be better than `chosen` (codegen/candidates_map.cpp).
std::vector<MapSchedule> map_alternatives(const Kernel& kernel, const MapSchedule& chosen);
ReduceSchedule choose_reduce_schedule(const Kernel& kernel, const Target& target);
/// Whether more of what each element of a row loads lies along the innermost kept axis than along the innermost reduced
/// one. `kept`: the number of kept axes.
bool column_wise(const Kernel& kernel, std::size_t kept);
/// Of one element of a persistent row: the bytes in registers, when most.
std::int64_t held_bytes(const Kernel& kernel);
/// `chosen`, which reads its rows again, with rows in the registers of a cluster of blocks; where there are clusters,
/// and rows that fit one.
std::optional<ReduceSchedule> clustered(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen);
/// For a kernel with outer reductions (codegen/schedule_outer.cpp), and what might be better than `chosen` for one.
ReduceSchedule choose_outer_schedule(const Kernel& kernel, const Target& target);
std::vector<ReduceSchedule> outer_alternatives(const Kernel& kernel, const Target& target,
                                               const ReduceSchedule& chosen);
/// `chosen`, which reads its rows again, with rows in the shared memory, and if need be in registers, of `cluster`
/// blocks of `threads`, so that `blocks` fit a multiprocessor; where rows fit.
std::optional<ReduceSchedule> in_shared_memory(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen,
                                               int cluster, int threads, int blocks);
/// What might be better than `chosen` (codegen/candidates_reduce.cpp).
std::vector<ReduceSchedule> reduce_alternatives(const Kernel& kernel, const Target& target,
                                                const ReduceSchedule& chosen);
ContractSchedule choose_contract_schedule(const Kernel& kernel, const Target& target);
AttendSchedule choose_attend_schedule(const Kernel& kernel, const Target& target);
/// For every class on a CPU (codegen/schedule_cpu.cpp).
Schedule choose_cpu_schedule(const Kernel& kernel, const Target& target);
/// What might be better than `chosen` (codegen/candidates_cpu.cpp).
std::vector<Schedule> cpu_alternatives(const Schedule& chosen);

}  // namespace tenon::codegen
