// What a test was at when it ended the process: a signal's last words.
#pragma once

#include <cstdint>

namespace tenon::test {

/// While it lives, a signal that ends the process first prints "NAME=NUMBER ended the process" to stderr. One at a
/// time.
class CrashReport {
 public:
  CrashReport(const char* name, std::uint64_t number);
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;
};

}  // namespace tenon::test
