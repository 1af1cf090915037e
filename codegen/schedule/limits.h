// Limits of the heuristics that the planner's cost model has to know as well (src/driver/assumed_cost.cpp).
#pragma once

#include <array>

namespace tenon::codegen {

constexpr int kMostSharing = 8;          ///< blocks of a cluster whose shared memory has a row
constexpr int kMostBlocksOfCluster = 8;  ///< that every device of sm_90 starts
constexpr int kMostSplit = 64;           ///< blocks that divide the depth of a tile and leave sums in memory
constexpr int kDepthParts = 4;           ///< blocks of a cluster that divide the depth of a tile, where several do
constexpr int kAttendExtent = 256;       ///< of depth and width of an attention by tensor cores
constexpr int kAttendColumns = 128;      ///< of values of 4 bytes that a block mixes by plain lanes
constexpr int kAttendRows = 64;          ///< queries of a block by plain lanes
constexpr int kSumsBesideTwo = 64;       ///< of a thread where four warpgroups multiply and bring operands of threads
/// Elements that one warpgroup of threads computes and brings to a product of warpgroups in a clock, by the
/// instructions of its loop (350 for a thread's 64 bytes of weights). CostModel::fed_elements_ns is this at the clock
/// of an H100.
constexpr double kFedElementsOfClock = 8;
/// Share of the multiprocessors on which clusters of so many blocks find places at once: an H100 has places for 66, 39,
/// 30, 22, 17, 15 and 15 clusters of 2 to 8 blocks.
constexpr std::array<double, kMostBlocksOfCluster + 1> kShareOfClusters = {1,     1,     1,     0.887, 0.91,
                                                                           0.834, 0.773, 0.796, 0.91};
constexpr int kMostWithRing = 2;  ///< blocks on a multiprocessor that walk over rows, with a ring of them

}  // namespace tenon::codegen
