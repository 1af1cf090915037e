// What a check against the interpreter has shown, in words.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::tools {

/// "12 of 320 elements (3.75 %)".
std::string share_of(std::int64_t part, std::int64_t all);

/// "ok", "DIFFERS", or "UNDECIDED in 12 of 320 elements (3.75 %)": ok is said of what was decided, and more than one
/// element in a hundred on which the interpreter's disturbed runs disagree, so that any value would do, is said first.
std::string verdict(bool equal, std::int64_t undecided, std::int64_t elements);

/// A verdict in its colour, for a line on stdout.
std::string toned(const std::string& verdict);

}  // namespace tenon::tools
