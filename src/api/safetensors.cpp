// .safetensors files to weights that lie in the mapped file, and back.
#include <algorithm>

#include "src/api/mapped_file.h"
#include "src/api/safetensors_header.h"
#include "src/api/write_file.h"
#include "tenon/weights.h"

namespace tenon {

Weights load_safetensors(const std::string& path) {
  const auto file = std::make_shared<const src::MappedFile>(path);
  const std::span<const std::byte> bytes = file->bytes();
  Weights weights;
  for (src::SafetensorsEntry& entry :
       src::read_safetensors_header({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path)) {
    const std::byte* data = entry.begin == entry.end ? nullptr : bytes.data() + entry.begin;
    weights.add(std::move(entry.name), {entry.dtype, std::move(entry.shape), data}, file);
  }
  return weights;
}

namespace {

// What kernels on the host read as it is: at a multiple of this, and so is what follows it.
constexpr std::size_t kAligned = 16;

// Where it leaves what follows: the greatest power of two up to kAligned that divides its bytes.
std::size_t alignment_behind(const Weights::Entry& entry) {
  const std::size_t bytes = entry.view.byte_size() | kAligned;
  return bytes & ~(bytes - 1);
}

}  // namespace

void save_safetensors(const std::string& path, const Weights& weights) {
  std::vector<const Weights::Entry*> order;
  for (const Weights::Entry& entry : weights) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const Weights::Entry* a, const Weights::Entry* b) {
    return alignment_behind(*a) > alignment_behind(*b);
  });
  std::vector<src::SafetensorsEntry> entries;
  std::size_t at = 0;
  for (const Weights::Entry* entry : order) {
    const std::size_t end = at + entry->view.byte_size();
    entries.push_back({entry->name, entry->view.dtype, entry->view.shape, at, end});
    at = end;
  }
  const std::string head = src::safetensors_head(entries, kHostAlignment);
  FileWriter file(path);
  file.write(head);
  for (const Weights::Entry* entry : order) {
    const std::span<const std::byte> bytes = entry->view.bytes();
    file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  file.finish();
}

}  // namespace tenon
