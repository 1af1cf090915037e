// What random graphs hold, and what they never do.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::test {

/// Tables in Markdown of `count` graphs from seed `first` on, and for schedules of `large` large ones too: draws,
/// operators, dtypes, pairs of neighbours, rules by which the planner refused, kernel classes, and the fields of the
/// schedules chosen for the CPU and for sm_90a. Rows of 0 are what is never drawn.
std::string coverage(std::uint64_t first, std::uint64_t count, std::uint64_t large);

}  // namespace tenon::test
