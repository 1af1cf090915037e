// Philox against the known-answer vectors that Random123 publishes (examples/kat_vectors, philox4x32 10).
#include "ir/ops/random.h"

#include <gtest/gtest.h>

namespace tenon::ir {
namespace {

TEST(Philox, EqualsRandom123sPublishedVectors) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomBits, FourElementsShareABlock) {
  const PhiloxCounter block = philox4x32_10({1, 0, 7, 0}, {5, 0});
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(random_bits(5, 7, 4 + i), block[i]);
}

TEST(RandomBits, AWordOfEachBlock) { EXPECT_EQ(random_bits(5, 7, 9, 2), philox4x32_10({9, 0, 7, 0}, {5, 0})[2]); }

TEST(RandomBits, SeedStreamAndIndexAreSixtyFourBitsWide) {
  EXPECT_EQ(random_bits(0x100000002, 0x300000004, 0x1400000014), philox4x32_10({5, 5, 4, 3}, {2, 1})[0]);
}

}  // namespace
}  // namespace tenon::ir
