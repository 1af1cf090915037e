// Random inputs made on the target itself, since a gigabyte of them takes a host seconds, and outputs of which it is
// known that every element was written.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/memory.h"
#include "tenon/compile.h"

namespace tenon::tools {

using runtime::Memory;

/// A graph's inputs and outputs in a target's memory.
struct BenchData {
  std::vector<Memory> memory;
  std::vector<Buffer> inputs, outputs;
};

std::int64_t bytes_of(const Buffer& buffer);

/// Inputs: standard normal reals, fair bools; integers that index an axis (of take, of cross_entropy's classes) from
/// all of it, others from 0 to 9. Outputs hold what the memory held.
BenchData random_data(const ir::Graph& graph, const Bindings& bindings,
                      const std::shared_ptr<const runtime::Backend>& backend, const Options& options);

/// Writes each buffer's bytes to FOLDER/GRAPH.in0.bin, … and GRAPH.out0.bin, …, for other programs to check. Error(io).
void save_data(const runtime::Backend& backend, const BenchData& data, const std::string& folder,
               const std::string& graph);

/// How many elements of the outputs `run` leaves unwritten: those that hold the pattern they were filled with, for each
/// of two patterns. (The second is tried only where an element holds the first.)
std::int64_t unwritten_elements(const runtime::Backend& backend, std::span<const Buffer> outputs,
                                const std::function<void()>& run);

}  // namespace tenon::tools
