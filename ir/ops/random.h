// Philox 4x32-10, the counter-based generator of J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC'11: ten rounds of multiply and xor turn a counter and a key into four random words. No state: any element's bits
// can be computed alone, anywhere, again.
#pragma once

#include <array>
#include <cstdint>

namespace tenon::ir {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;  // the golden ratio
    key[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  return counter;
}

/// Element `index` of Op::random_bits: word index % 4 of block index / 4, or with `word` >= 0 that word of block
/// `index`. The counter is (block, stream) and the key the seed, low halves first.
constexpr std::uint32_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, int word = -1) {
  const std::uint64_t block = word < 0 ? index / 4 : index;
  const auto lane = static_cast<std::size_t>(word < 0 ? index % 4 : static_cast<std::uint64_t>(word));
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  return philox4x32_10({low(block), high(block), low(stream), high(stream)}, {low(seed), high(seed)})[lane];
}

}  // namespace tenon::ir
