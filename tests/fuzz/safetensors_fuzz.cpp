// Any bytes as a .safetensors file: its tensors, within the file and one behind the other, or a tenon::Error; and their
// header is written and read back unchanged.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/api/safetensors_header.h"
#include "tenon/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    std::vector<src::SafetensorsEntry> entries = src::read_safetensors_header(bytes, "fuzz.safetensors");
    const std::size_t begin = entries.empty() ? size : entries.front().begin;
    std::size_t at = begin;
    for (src::SafetensorsEntry& entry : entries) {
      if (entry.begin != at || entry.end < entry.begin || entry.end > size) std::abort();
      at = entry.end;
      entry.begin -= begin;
      entry.end -= begin;
    }
    const std::string again = src::safetensors_head(entries, 256) + std::string(bytes.substr(begin));
    if (src::read_safetensors_header(again, "").size() != entries.size()) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) std::abort();
  }
  return 0;
}
