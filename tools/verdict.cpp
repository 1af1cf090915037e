// See verdict.h.
#include "tools/verdict.h"

#include <fmt/format.h>

#include "tools/terminal.h"

namespace tenon::tools {

std::string share_of(std::int64_t part, std::int64_t all) {
  return fmt::format("{} of {} elements ({:.3g} %)", part, all,
                     all == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(all));
}

std::string verdict(bool equal, std::int64_t undecided, std::int64_t elements) {
  constexpr std::int64_t kMany = 100;  // one in so many
  if (!equal) return "DIFFERS";
  return undecided > elements / kMany ? "UNDECIDED in " + share_of(undecided, elements) : "ok";
}

std::string toned(const std::string& verdict) {
  return toned(verdict == "ok" ? Tone::good : verdict == "DIFFERS" ? Tone::bad : Tone::warning, verdict);
}

}  // namespace tenon::tools
