// Fuzz target: any bytes as the JSON form; see text_fuzz.cpp.
#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tenon::ir::fuzz_reader({reinterpret_cast<const char*>(data), size}, tenon::ir::parse_json);
  return 0;
}
