// See distribution.h.
#include "tools/sweep/distribution.h"

#include <algorithm>
#include <cmath>

namespace tenon::tools::sweep {

Distribution distribution(std::vector<double> shares) {
  if (shares.empty()) return {};
  std::sort(shares.begin(), shares.end());
  const auto at = [&](double share) {
    return shares[static_cast<std::size_t>(std::lround(share * static_cast<double>(shares.size() - 1)))];
  };
  return {shares.size(), at(0.5), at(0.05), shares.front()};
}

}  // namespace tenon::tools::sweep
