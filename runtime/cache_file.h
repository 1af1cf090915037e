// One cache entry as the bytes of one file, and back. Pure functions: no file is touched here.
// Relies on xxh3-128 to notice every truncation and flipped bit; it is no defence against someone who may write the
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::runtime {

/// Bumped whenever the layout of an entry or the meaning of its metadata changes; part of every key.
constexpr std::uint32_t cache_format_version = 1;

/// All that decides what a kernel's binary is. Two keys are the same kernel only if every field is equal.
struct CacheKey {
  std::string tenon;     ///< Tenon's version and commit
  std::string compiler;  ///< "nvrtc 13.0 build 65be…", or LLVM's version and the CPU's features
  std::string arch;      ///< "sm_90a", "x86-64"
  std::string flags;     ///< the exact flags, one a line
  std::string source;    ///< the whole source text

  /// The fields and the format version as one text, each with its length, so that no two keys give the same text.
  std::string text() const;
};

/// What is kept of one kernel.
struct CacheEntry {
  std::string metadata;  ///< launch rule, resources: whatever the backend needs to load the binary without compiling
  std::vector<std::byte> binary;
  bool operator==(const CacheEntry&) const = default;
};

/// 128-bit xxh3 of `text` as 32 lower-case hex digits: the stem of the entry's file name.
std::string digest_hex(std::string_view text);

/// The file of an entry: {magic, format version, sizes, key text, metadata, binary, checksum of all that}.
std::vector<std::byte> encode_cache_file(std::string_view key_text, const CacheEntry& entry);

/// A file's parts; the views point into the bytes they were read from.
struct CacheFileView {
  std::string_view key_text;
  std::string_view metadata;
  std::span<const std::byte> binary;
};

/// The parts of `file`, or nothing when it is not exactly what encode_cache_file made: then `why` says what is wrong.
std::optional<CacheFileView> decode_cache_file(std::span<const std::byte> file, std::string& why);

}  // namespace tenon::runtime
