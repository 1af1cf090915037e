// Any bytes as a .npy file: an array or a tenon::Error, and what was read is written and read back unchanged.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/api/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::optional<DType> wanted :
       {std::optional<DType>(), std::optional(DType::f8e4m3), std::optional(DType::i32)}) {
    try {
      const ir::HostArray array = parse_npy(bytes, wanted, "fuzz.npy");
      const ir::HostArray back =
          parse_npy(ir::element_count(array) < 65536 ? format_npy(array) : std::string(bytes), array.dtype);
      if (back.shape != array.shape || back.dtype != array.dtype) std::abort();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) std::abort();
    }
  }
  return 0;
}
