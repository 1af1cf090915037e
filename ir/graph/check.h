// Internal checks: a failed one is a defect of Tenon, never the user's fault.
#pragma once

#include <string>

namespace tenon::ir {

/// Throws Error(internal) with `message` and the place of the check.
[[noreturn]] void fail_check(const char* condition, const char* file, int line, const std::string& message);

}  // namespace tenon::ir

/// Throws Error(internal) unless `condition` holds; `message` may be any expression that makes a std::string.
#define TENON_CHECK(condition, message) \
  ((condition) ? void() : ::tenon::ir::fail_check(#condition, __FILE__, __LINE__, (message)))
