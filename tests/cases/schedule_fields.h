// The fields of a schedule by name.
#pragma once

#include <string>
#include <vector>

#include "codegen/schedule/schedule.h"

namespace tenon::test {

struct Field {
  std::string name;  ///< "reduce.mapping"
  std::string value;
  std::string fallback;  ///< what it is where nothing chooses it
};

/// Every field of the schedule.
std::vector<Field> fields_of(const codegen::Schedule& schedule);

/// The names of every field there is.
std::vector<std::string> all_fields();

}  // namespace tenon::test
