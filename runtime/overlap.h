// Buffers that overlap: outputs must lie apart from each other and from all inputs, but for elementwise updates in
// place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace tenon::runtime {

/// For each output of the plan the inputs, in order, whose buffer it may be: those of the same dtype and shape that the
/// map kernel which writes it reads only at the element that it writes, from which that element is computed, and that
/// nothing reads beside or behind this kernel.
std::vector<std::vector<int>> in_place_inputs(const ir::Plan& plan, const LaunchRecord& record);

/// Why no kernel may write output `output` of the graph over input `input`, in words; empty where one may. Beside what
/// in_place_inputs allows, a kernel of rows may that adds to the input what it reduces (one number for each row), and
/// any kernel where all others that read the input, and it does not, have run before. Of a record whose outputs are all
/// of the graph's.
std::string why_not_in_place(const ir::Plan& plan, const LaunchRecord& record, int input, int output);

/// Error(argument) that names both where an output overlaps with another output, or with an input that is not one of
/// in_place_inputs at exactly the same bytes; and where an input that is updated overlaps with anything. Whether some
/// output lies in the place of an input. The buffers have the
/// record's shapes. O((inputs + outputs) log outputs).
bool check_overlaps(const ir::Graph& graph, const LaunchRecord& record, std::span<const Buffer> inputs,
                    std::span<const Buffer> outputs);

}  // namespace tenon::runtime
