// Fuzz target: any bytes as the text form. What is read must print and come back equal; what is not must end in an
// Error of the user's kind. Anything else, a failed internal check among it, is a finding. Formatting keeps the graph.
#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tenon::ir::fuzz_reader(text, tenon::ir::parse);
  tenon::ir::fuzz_format(text);
  return 0;
}
