// See product.h.
#include "codegen/emit/llvm/tensor/product.h"

#include <fmt/format.h>

#include "codegen/emit/llvm/ops/ops.h"

namespace tenon::codegen::simd {
namespace {

llvm::Function* declare_micro(Unit& unit, const std::string& name) {
  auto& b = unit.b;
  auto* signature = llvm::FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy(), b.getInt64Ty(), b.getInt1Ty()}, false);
  auto* function = llvm::Function::Create(signature, llvm::Function::InternalLinkage, name, unit.module);
  function->setAttributes(unit.function->getAttributes());
  function->addFnAttr(llvm::Attribute::NoInline);
  const char* names[] = {"a", "b", "c", "depth", "first"};
  for (unsigned i = 0; i < 5; ++i) function->getArg(i)->setName(names[i]);
  return function;
}

// One step of the depth: sums[r][v] += a[r] * b[v].
void multiply_step(Unit& unit, const MicroKernel& shape, Value* a, Value* b, std::vector<Value*>& sums) {
  auto& builder = unit.b;
  Type* vector = vector_of(shape.type, shape.lanes);
  const auto alignment = llvm::Align(shape.type->getScalarSizeInBits() / 8);
  std::vector<Value*> right;
  for (int v = 0; v < shape.vectors; ++v)
    right.push_back(builder.CreateAlignedLoad(
        vector, builder.CreateConstInBoundsGEP1_64(shape.type, b, static_cast<std::uint64_t>(v * shape.lanes)),
        alignment));
  for (int r = 0; r < shape.rows; ++r) {
    Value* from = builder.CreateConstInBoundsGEP1_64(shape.type, a, static_cast<std::uint64_t>(r * shape.a_row));
    Value* left = splat(unit, builder.CreateAlignedLoad(shape.type, from, alignment), shape.lanes);
    for (int v = 0; v < shape.vectors; ++v) {
      Value*& sum = sums[static_cast<std::size_t>(r * shape.vectors + v)];
      sum = fused_multiply_add(unit, left, right[static_cast<std::size_t>(v)], sum);
    }
  }
}

void store_sums(Unit& unit, const MicroKernel& shape, Value* c, Value* first, const std::vector<Value*>& sums) {
  auto& b = unit.b;
  const auto alignment = llvm::Align(shape.type->getScalarSizeInBits() / 8);
  const auto each = [&](const auto& visit) {
    for (int r = 0; r < shape.rows; ++r)
      for (int v = 0; v < shape.vectors; ++v)
        visit(
            b.CreateConstInBoundsGEP1_64(shape.type, c, static_cast<std::uint64_t>(r * shape.c_row + v * shape.lanes)),
            sums[static_cast<std::size_t>(r * shape.vectors + v)]);
  };
  emit_if(unit, first, [&] { each([&](Value* at, Value* sum) { b.CreateAlignedStore(sum, at, alignment); }); });
  emit_if(unit, b.CreateNot(first), [&] {
    each([&](Value* at, Value* sum) {
      Value* before = b.CreateAlignedLoad(sum->getType(), at, alignment);
      b.CreateAlignedStore(b.CreateFAdd(before, sum), at, alignment);
    });
  });
}

}  // namespace

llvm::Function* micro_kernel(Unit& unit, const MicroKernel& shape, const std::string& name) {
  llvm::Function* function = declare_micro(unit, name);
  auto& b = unit.b;
  const llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::Function* outer = std::exchange(unit.function, function);
  auto* entry = llvm::BasicBlock::Create(unit.context, "entry", function);
  auto* loop = llvm::BasicBlock::Create(unit.context, "k", function);
  auto* done = llvm::BasicBlock::Create(unit.context, "k.end", function);
  b.SetInsertPoint(entry);
  Value* depth = function->getArg(3);
  b.CreateCondBr(b.CreateICmpSGT(depth, constant(unit, 0)), loop, done);

  b.SetInsertPoint(loop);
  auto* k = b.CreatePHI(b.getInt64Ty(), 2, "k");
  std::vector<llvm::PHINode*> phis;
  std::vector<Value*> sums;
  Value* zero = llvm::Constant::getNullValue(vector_of(shape.type, shape.lanes));
  for (int i = 0; i < shape.rows * shape.vectors; ++i) {
    phis.push_back(b.CreatePHI(zero->getType(), 2, fmt::format("c{}_{}", i / shape.vectors, i % shape.vectors)));
    sums.push_back(phis.back());
  }
  Value* a = advance(unit, shape.type, function->getArg(0), b.CreateNSWMul(k, constant(unit, shape.a_depth)));
  Value* right = advance(unit, shape.type, function->getArg(1), b.CreateNSWMul(k, constant(unit, shape.width())));
  multiply_step(unit, shape, a, right, sums);
  Value* next = b.CreateNSWAdd(k, constant(unit, 1));
  k->addIncoming(constant(unit, 0), entry);
  k->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpSLT(next, depth), loop, done);

  b.SetInsertPoint(done);
  std::vector<Value*> totals;
  for (std::size_t i = 0; i < phis.size(); ++i) {
    phis[i]->addIncoming(zero, entry);
    phis[i]->addIncoming(sums[i], loop);
    auto* total = b.CreatePHI(zero->getType(), 2);
    total->addIncoming(zero, entry);
    total->addIncoming(sums[i], loop);
    totals.push_back(total);
  }
  store_sums(unit, shape, function->getArg(2), function->getArg(4), totals);
  b.CreateRetVoid();
  unit.function = outer;
  return function;
}

void multiply_rows(Unit& unit, Scope& scope, llvm::Function* micro, const MicroKernel& shape, Value* height, Value* a,
                   Value* b, Value* c, Value* depth, Value* first) {
  loop_in(unit, scope, constant(unit, 0), height, constant(unit, shape.rows), "rows", [&](Scope&, Value* row) {
    Value* from = advance(unit, shape.type, a, unit.b.CreateMul(row, constant(unit, shape.a_row)));
    Value* to = advance(unit, shape.type, c, unit.b.CreateMul(row, constant(unit, shape.c_row)));
    unit.b.CreateCall(micro, {from, b, to, depth, first});
  });
}

void pack(Unit& unit, Scope& scope, InstrId value, const Span& row, const Span& lane, int lanes, Type* type, Value* to,
          int stride) {
  auto& b = unit.b;
  loop_in(unit, scope, row.begin, row.end, constant(unit, 1), "pack", [&](Scope& inside, Value* r) {
    bind(inside, row.axis, r);
    Value* line = advance(unit, type, to, b.CreateMul(b.CreateSub(r, row.begin), constant(unit, stride)));
    for_lanes(unit, inside, lane.axis, lane.begin, lane.end, lanes, 1, [&](std::vector<Scope>& scopes) {
      Value* base = scopes[0].axes[static_cast<std::size_t>(lane.axis)];
      Value* at = advance(unit, type, line, b.CreateSub(base, lane.begin));
      b.CreateAlignedStore(evaluate_lanes(unit, scopes[0], value), at, llvm::Align(type->getScalarSizeInBits() / 8));
    });
  });
}

namespace {

// The sums so far in double, `before` and those of the last blocks: at each vector, its place in both.
void add_blocks(Unit& unit, Scope& scope, const LongProduct& product, const Sums& sums,
                const std::function<void(Value* sum, Value* at, Value* total)>& visit) {
  auto& b = unit.b;
  Type* vector = vector_of(product.type, sums.lanes);
  loop_in(unit, scope, constant(unit, 0), sums.count, constant(unit, sums.lanes), "sums", [&](Scope&, Value* i) {
    Value* at = advance(unit, product.type, sums.at, i);
    Value* total = advance(unit, b.getDoubleTy(), product.blocks, i);
    visit(b.CreateFPExt(b.CreateAlignedLoad(vector, at, llvm::Align(4)), vector_of(b.getDoubleTy(), sums.lanes)), at,
          total);
  });
}

Value* load_total(Unit& unit, Value* total, int lanes) {
  return unit.b.CreateAlignedLoad(vector_of(unit.b.getDoubleTy(), lanes), total, llvm::Align(8));
}

}  // namespace

void for_depth(Unit& unit, Scope& scope, const LongProduct& product, Value* begin, Value* end, const Sums& sums,
               const std::function<void(Scope&, Value*, Value*)>& body) {
  auto& b = unit.b;
  const auto block_from = [&](Scope& outer, Value* from, Value* to) {
    loop_in(unit, outer, from, to, constant(unit, product.depth), "block",
            [&](Scope& inside, Value* k) { body(inside, k, b.CreateICmpEQ(k, from)); });
  };
  if (!product.needed()) return block_from(scope, begin, end);
  Value* size = constant(unit, std::int64_t{product.depth} * LongProduct::kBlocks);
  loop_in(unit, scope, begin, end, size, "blocks", [&](Scope& blocks, Value* k) {
    Value* next = b.CreateNSWAdd(k, size);
    block_from(blocks, k, minimum_of(unit, next, end));
    if_in(unit, blocks, b.CreateICmpSLT(next, end), [&](Scope& inside) {
      Value* first = b.CreateICmpEQ(k, begin);
      add_blocks(unit, inside, product, sums, [&](Value* sum, Value*, Value* total) {
        Value* before = load_total(unit, total, sums.lanes);
        before = b.CreateSelect(first, llvm::Constant::getNullValue(before->getType()), before);
        b.CreateAlignedStore(b.CreateFAdd(before, sum), total, llvm::Align(8));
      });
    });
  });
  if_in(unit, scope, b.CreateICmpSLT(b.CreateNSWAdd(begin, size), end), [&](Scope& inside) {
    add_blocks(unit, inside, product, sums, [&](Value* sum, Value* at, Value* total) {
      Value* all = b.CreateFAdd(load_total(unit, total, sums.lanes), sum);
      b.CreateAlignedStore(b.CreateFPTrunc(all, vector_of(product.type, sums.lanes)), at, llvm::Align(4));
    });
  });
}

Value* thread_scratch(Unit& unit, Value* bytes) {
  auto& b = unit.b;
  auto* signature = llvm::FunctionType::get(b.getPtrTy(), {b.getInt64Ty()}, false);
  return b.CreateCall(unit.module.getOrInsertFunction("tenon_scratch", signature), {bytes}, "scratch");
}

Value* advance(Unit& unit, Type* type, Value* from, Value* elements) { return unit.b.CreateGEP(type, from, elements); }

}  // namespace tenon::codegen::simd
