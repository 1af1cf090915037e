// See long_sums.h.
#include "codegen/emit/llvm/reduce/long_sums.h"

#include "codegen/analysis/rounds.h"

namespace tenon::codegen::simd {
namespace {

Type* doubles(Unit& unit, int lanes) { return vector_of(unit.b.getDoubleTy(), lanes); }

Value* widened(Unit& unit, Value* value) { return unit.b.CreateFPExt(value, doubles(unit, lanes_of(value))); }

Value* load_blocks(Unit& unit, llvm::AllocaInst* blocks) {
  return unit.b.CreateAlignedLoad(blocks->getAllocatedType()->getArrayElementType(), blocks, blocks->getAlign());
}
void store_blocks(Unit& unit, Value* value, llvm::AllocaInst* blocks) {
  unit.b.CreateAlignedStore(value, blocks, blocks->getAlign());
}

// An array of one, which LLVM leaves in memory.
llvm::AllocaInst* make_blocks(Unit& unit, int lanes) {
  llvm::AllocaInst* blocks = variable(unit, llvm::ArrayType::get(doubles(unit, lanes), 1), "blocks");
  blocks->setAlignment(llvm::Align(static_cast<std::uint64_t>(std::max(8, unit.target.vector_bytes))));
  store_blocks(unit, llvm::Constant::getNullValue(doubles(unit, lanes)), blocks);
  return blocks;
}

std::vector<Partial> read_all(Unit& unit, const std::vector<Accumulator>& accumulators) {
  std::vector<Partial> parts;
  for (const Accumulator& accumulator : accumulators) parts.push_back(read(unit, accumulator));
  return parts;
}

}  // namespace

llvm::AllocaInst* LongSums::add(const Instr& reduce, const std::vector<Accumulator>& accumulators) {
  if (turns_ <= kBlockTurns || !adds_reals(reduce)) return nullptr;
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(accumulators[0].value->getAllocatedType());
  const int lanes = vector ? static_cast<int>(vector->getNumElements()) : 1;
  sums_.push_back({&reduce, accumulators, make_blocks(unit_, lanes)});
  if (nested_ && !pending_) {
    pending_ = variable(unit_, unit_.b.getInt64Ty(), "pending");
    unit_.b.CreateStore(constant(unit_, 0), pending_);
  }
  return sums_.back().blocks;
}

void LongSums::end_block() const {
  for (const Sum& sum : sums_) {
    const Partial block = merge_all(unit_, *sum.reduce, read_all(unit_, sum.accumulators));
    store_blocks(unit_, unit_.b.CreateFAdd(load_blocks(unit_, sum.blocks), widened(unit_, block.value)), sum.blocks);
    for (const Accumulator& accumulator : sum.accumulators)
      write(unit_, accumulator, identity_of(unit_, *sum.reduce, lanes_of(block.value)));
  }
}

void LongSums::after_run(Value* turns) {
  if (sums_.empty() || !nested_) return;
  auto& b = unit_.b;
  Value* pending = b.CreateAdd(b.CreateLoad(b.getInt64Ty(), pending_), turns);
  Value* enough = b.CreateICmpSGE(pending, constant(unit_, kBlockTurns));
  b.CreateStore(b.CreateSelect(enough, constant(unit_, 0), pending), pending_);
  emit_if(unit_, enough, [&] { end_block(); });
}

Partial LongSums::collect(const Instr& reduce, const std::vector<Accumulator>& accumulators) const {
  const Partial last = merge_all(unit_, reduce, read_all(unit_, accumulators));
  for (const Sum& sum : sums_)
    if (sum.accumulators[0].value == accumulators[0].value)
      return {unit_.b.CreateFAdd(load_blocks(unit_, sum.blocks), widened(unit_, last.value)), nullptr};
  return last;
}

void LongSums::loop(Value* begin, Value* end, std::int64_t step, const std::string& name,
                    const std::function<void(Value*)>& body) const {
  if (sums_.empty()) return emit_loop(unit_, begin, end, constant(unit_, step), name, body);
  auto& b = unit_.b;
  Value* size = constant(unit_, step * kBlockTurns);
  emit_loop(unit_, begin, end, size, name + ".block", [&](Value* first) {
    Value* last = b.CreateNSWAdd(first, size);
    emit_loop(unit_, first, minimum_of(unit_, last, end), constant(unit_, step), name, body);
    emit_if(unit_, b.CreateICmpSLT(last, end), [&] { end_block(); });
  });
}

void scale_blocks(Unit& unit, llvm::AllocaInst* blocks, Value* factor) {
  Value* sum = load_blocks(unit, blocks);
  Value* zero = real_like(sum, 0);  // of nothing, or of elements at -inf only, it stays 0 whatever the factor
  Value* scaled = unit.b.CreateFMul(sum, widened(unit, factor));
  store_blocks(unit, unit.b.CreateSelect(unit.b.CreateFCmpOEQ(sum, zero), zero, scaled), blocks);
}

Partial narrowed(Unit& unit, const Instr& reduce, const Partial& sum) {
  Type* type = vector_of(compute_type_of(unit, element_dtype(unit.kernel, reduce)), lanes_of(sum.value));
  return sum.value->getType() == type ? sum : Partial{unit.b.CreateFPTrunc(sum.value, type), nullptr};
}

}  // namespace tenon::codegen::simd
