// Quotients and remainders of small integers by a literal, as products whose upper bits are the quotient.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// floor(x / divisor) = ((x + plus) * multiple >> shift) - plus / divisor in 32 bits without a sign: no sum is
/// negative, and no product has more bits.
struct SmallQuotient {
  std::int64_t divisor = 1;
  std::int64_t plus = 0;  ///< a multiple of the divisor
  std::int64_t multiple = 1;
  int shift = 0;
};

/// Of x from `low` to `high` by a positive divisor. Nothing where no multiple is exact for all of them.
std::optional<SmallQuotient> small_quotient(std::int64_t low, std::int64_t high, std::int64_t divisor);

/// Of a floor_div or mod of integers whose range is known (exact.h). Nothing of others.
std::optional<SmallQuotient> small_quotient(const Kernel& kernel, const Instr& instr);

/// Whether a mod by a literal changes none of the values that it is given.
bool is_own_remainder(const Kernel& kernel, const Instr& instr);

}  // namespace tenon::codegen
