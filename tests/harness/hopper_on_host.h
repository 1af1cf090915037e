// The blocks of a cluster with what sm_90a has beside older devices: barriers that count arrivals and bytes, boxes,
// products of warpgroups, turns. Everything that may be late is: copies land, and products run, when all threads wait,
// one at a time and in an order that a seed gives. A wait, fence or arrival that is missing then shows as an error, as
// NaN, or as threads that all wait.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/harness/hopper_shim.h"

namespace tenon::test {

struct ClusterLaunch {
  unsigned first_block = 0, blocks = 1;  ///< the cluster's first, and how many the grid has
  int cluster = 1, threads = 128, shared_bytes = 0;
  std::vector<const void*> maps;
  std::uint64_t seed = 0;
  std::function<void(const HostThread& self)> body;    ///< of each thread
  std::function<void(const HostThread& self)> resume;  ///< ahead of each time that it goes on
};

/// std::runtime_error for what no device would do right.
void run_cluster(const ClusterLaunch& launch);

}  // namespace tenon::test
