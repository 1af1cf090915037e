// Limits of the heuristics that the planner's cost model has to know as well (src/driver/assumed_cost.cpp).
#pragma once

namespace tenon::codegen {

constexpr int kMostSharing = 8;          ///< blocks of a cluster whose shared memory has a row
constexpr int kMostBlocksOfCluster = 8;  ///< that every device of sm_90 starts
constexpr int kDepthParts = 4;           ///< blocks of a cluster that divide the depth of a tile, where several do
constexpr int kAttendExtent = 256;       ///< of depth and width of an attention by tensor cores
constexpr int kAttendColumns = 128;      ///< of values of 4 bytes that a block mixes by plain lanes
constexpr int kAttendRows = 64;          ///< queries of a block by plain lanes
constexpr int kSumsBesideTwo = 64;       ///< of a thread where four warpgroups multiply and bring operands of threads
/// Elements that one warpgroup of threads computes and brings to a product of warpgroups in a clock, as whole products
/// show it (bench/results/matmul-log.md): 4.4 to 4.9 of 8-bit weights, 4.0 to 4.6 behind a relu.
/// CostModel::fed_elements_ns follows it.
constexpr double kFedElementsOfClock = 4.5;
/// The same where the producer never waits, by the instructions of its loop (350 for a thread's 64 bytes of weights):
/// what tiles are compared by. Both rates chose the same tiles in the cases of that log.
constexpr double kIssuedElementsOfClock = 8;
constexpr int kMostWithRing = 2;  ///< blocks on a multiprocessor that walk over rows, with a ring of them

}  // namespace tenon::codegen
