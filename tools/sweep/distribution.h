// What many shares come to: a line for all of them and for each class.
#pragma once

#include <cstddef>
#include <vector>

namespace tenon::tools::sweep {

struct Distribution {
  std::size_t count = 0;
  double median = 0, p5 = 0, worst = 0;  ///< 0 where there is none
};

Distribution distribution(std::vector<double> shares);

}  // namespace tenon::tools::sweep
