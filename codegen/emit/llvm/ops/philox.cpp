// Philox 4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11: ten rounds on a counter of four
// words under a key of two.
#include <array>

#include "codegen/emit/llvm/ops/ops.h"

namespace tenon::codegen::simd {
namespace {

struct Product {
  Value* high;
  Value* low;
};

// 32 x 32 to 64 bits.
Product multiply(Unit& unit, std::uint32_t factor, Value* word) {
  auto& b = unit.b;
  Type* wide = vector_of(b.getInt64Ty(), lanes_of(word));
  Value* product = b.CreateMul(b.CreateZExt(word, wide), llvm::ConstantInt::get(wide, factor));
  Value* high = b.CreateLShr(product, llvm::ConstantInt::get(wide, 32));
  return {b.CreateTrunc(high, word->getType()), b.CreateTrunc(product, word->getType())};
}

std::array<Value*, 2> halves(Unit& unit, Value* wide) {
  auto& b = unit.b;
  Type* word = vector_of(b.getInt32Ty(), lanes_of(wide));
  return {b.CreateTrunc(wide, word), b.CreateTrunc(b.CreateLShr(wide, constant_like(wide, 32)), word)};
}

}  // namespace

Value* emit_philox(Unit& unit, Value* seed, Value* index, std::int64_t stream, int word) {
  auto& b = unit.b;
  Value* block = word < 0 ? b.CreateLShr(index, constant_like(index, 2)) : index;
  auto key = halves(unit, seed);
  const auto low = halves(unit, block);
  const auto high = halves(unit, constant_like(index, stream));
  std::array<Value*, 4> counter{low[0], low[1], high[0], high[1]};
  for (int round = 0; round < 10; ++round) {
    const Product first = multiply(unit, 0xD2511F53U, counter[0]);
    const Product second = multiply(unit, 0xCD9E8D57U, counter[2]);
    counter = {b.CreateXor(b.CreateXor(second.high, counter[1]), key[0]), second.low,
               b.CreateXor(b.CreateXor(first.high, counter[3]), key[1]), first.low};
    key[0] = b.CreateAdd(key[0], constant_like(key[0], static_cast<std::int32_t>(0x9E3779B9U)));
    key[1] = b.CreateAdd(key[1], constant_like(key[1], static_cast<std::int32_t>(0xBB67AE85U)));
  }
  if (word >= 0) return counter[static_cast<std::size_t>(word)];
  Value* which = b.CreateAnd(b.CreateTrunc(index, counter[0]->getType()), constant_like(counter[0], 3));
  const auto is = [&](int n) { return b.CreateICmpEQ(which, constant_like(which, n)); };
  return b.CreateSelect(is(0), counter[0],
                        b.CreateSelect(is(1), counter[1], b.CreateSelect(is(2), counter[2], counter[3])));
}

}  // namespace tenon::codegen::simd
