// The layout of a cache file: a fixed header, three runs of bytes, a checksum. Numbers are little-endian.
#include "runtime/cache_file.h"

#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>

namespace tenon::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "cache files are written as they lie in memory");

constexpr std::array<char, 8> magic = {'T', 'E', 'N', 'O', 'N', 'K', '\r', '\n'};

struct Header {
  std::array<char, 8> magic;
  std::uint32_t format_version;
  std::uint32_t reserved;
  std::uint64_t key_size;
  std::uint64_t metadata_size;
  std::uint64_t binary_size;
};
static_assert(sizeof(Header) == 40);

using Checksum = XXH128_canonical_t;

Checksum checksum_of(const void* data, std::size_t size) {
  Checksum canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
  return canonical;
}

void append(std::vector<std::byte>& out, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

void append_field(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(" ").append(std::to_string(value.size())).append("\n").append(value).append("\n");
}

// Sizes come from the file, so they are compared without being added up first.
bool sizes_fit(const Header& header, std::size_t file_size) {
  const std::uint64_t body = file_size - sizeof(Header) - sizeof(Checksum);
  if (header.key_size > body || header.metadata_size > body - header.key_size) return false;
  return header.binary_size == body - header.key_size - header.metadata_size;
}

}  // namespace

std::string CacheKey::text() const {
  std::string all;
  all.reserve(source.size() + flags.size() + compiler.size() + 256);
  append_field(all, "format", std::to_string(cache_format_version));
  append_field(all, "tenon", tenon);
  append_field(all, "compiler", compiler);
  append_field(all, "arch", arch);
  append_field(all, "flags", flags);
  append_field(all, "source", source);
  return all;
}

std::string digest_hex(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  const Checksum digest = checksum_of(text.data(), text.size());
  std::string hex;
  for (const unsigned char byte : digest.digest) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

std::vector<std::byte> encode_cache_file(std::string_view key_text, const CacheEntry& entry) {
  const Header header{magic, cache_format_version, 0, key_text.size(), entry.metadata.size(), entry.binary.size()};
  std::vector<std::byte> file;
  file.reserve(sizeof header + key_text.size() + entry.metadata.size() + entry.binary.size() + sizeof(Checksum));
  append(file, &header, sizeof header);
  append(file, key_text.data(), key_text.size());
  append(file, entry.metadata.data(), entry.metadata.size());
  append(file, entry.binary.data(), entry.binary.size());
  const Checksum checksum = checksum_of(file.data(), file.size());
  append(file, &checksum, sizeof checksum);
  return file;
}

std::optional<CacheFileView> decode_cache_file(std::span<const std::byte> file, std::string& why) {
  const auto refuse = [&why](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  if (file.size() < sizeof(Header) + sizeof(Checksum)) return refuse("too short for a header");
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != magic) return refuse("not a Tenon cache entry");
  if (header.format_version != cache_format_version) return refuse("another format version");
  if (!sizes_fit(header, file.size())) return refuse("its size differs from what its header says");
  const std::size_t checked = file.size() - sizeof(Checksum);
  const Checksum expected = checksum_of(file.data(), checked);
  if (std::memcmp(&expected, file.data() + checked, sizeof expected) != 0) return refuse("its checksum does not match");

  const char* text = reinterpret_cast<const char*>(file.data()) + sizeof header;
  CacheFileView view;
  view.key_text = {text, header.key_size};
  view.metadata = {text + header.key_size, header.metadata_size};
  view.binary = file.subspan(sizeof header + header.key_size + header.metadata_size, header.binary_size);
  return view;
}

}  // namespace tenon::runtime
