// The module, its types and its control flow; and dimensions, read from their canonical text.
#include "codegen/emit/llvm/unit.h"

#include <algorithm>
#include <cctype>

#include "ir/graph/check.h"

namespace tenon::codegen::simd {

namespace {

std::vector<bool> find_uses_of_results(const Kernel& kernel) {
  std::vector<bool> uses;
  const auto in_index = [&](const Index& index) {
    const std::vector<int> values = index.values();
    return std::any_of(values.begin(), values.end(), [&](int id) { return uses[static_cast<std::size_t>(id)]; });
  };
  const auto in_guard = [&](const Guard& guard) { return in_index(guard.index); };
  for (const Instr& instr : kernel.body) {
    bool found = instr.kind == InstrKind::reduce || instr.kind == InstrKind::contract;
    for (const InstrId arg : instr.args) found = found || uses[static_cast<std::size_t>(arg)];
    found = found || in_index(instr.index) || in_index(instr.access.offset);
    found = found || std::any_of(instr.guards.begin(), instr.guards.end(), in_guard);
    found = found || std::any_of(instr.access.guards.begin(), instr.access.guards.end(), in_guard);
    uses.push_back(found);
  }
  return uses;
}

}  // namespace

Unit::Unit(const Kernel& k, const Target& t)
    : kernel(k), target(t), module(k.name, context), b(context), uses_results(find_uses_of_results(k)) {
  module.setTargetTriple("x86_64-unknown-linux-gnu");
  module.setDataLayout("e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128");
}

TaskRange begin_function(Unit& unit, const std::string& name, std::size_t pointer_count) {
  auto& b = unit.b;
  Type* pointer = b.getPtrTy();
  Type* index = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, index, index}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, unit.module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("target-cpu", unit.target.cpu);
  function->addFnAttr("target-features", unit.target.features);
  function->addFnAttr("prefer-vector-width", std::to_string(8 * unit.target.vector_bytes));
  const char* names[] = {"pointers", "dims", "begin", "end"};
  for (unsigned i = 0; i < 4; ++i) function->getArg(i)->setName(names[i]);
  unit.function = function;
  b.SetInsertPoint(llvm::BasicBlock::Create(unit.context, "entry", function));

  if (!unit.zeros) {
    auto* bytes = llvm::ArrayType::get(b.getInt8Ty(), 64);
    auto* zeros = new llvm::GlobalVariable(unit.module, bytes, true, llvm::GlobalValue::PrivateLinkage,
                                           llvm::ConstantAggregateZero::get(bytes), "zeros");
    zeros->setAlignment(llvm::Align(64));
    unit.zeros = zeros;
  }
  unit.operands.clear();
  unit.dim_values.clear();
  unit.stored_as.clear();
  for (std::size_t i = 0; i < pointer_count; ++i) {
    Value* slot = b.CreateConstInBoundsGEP1_64(pointer, function->getArg(0), i);
    const std::string label = i < unit.kernel.operands.size() ? unit.kernel.operands[i].name : "scratch";
    unit.operands.push_back(b.CreateLoad(pointer, slot, label));
  }
  for (std::size_t i = 0; i < unit.kernel.dims.size(); ++i) {
    Value* slot = b.CreateConstInBoundsGEP1_64(index, function->getArg(1), i);
    unit.dim_values[unit.kernel.dims[i]] = b.CreateLoad(index, slot, unit.kernel.dims[i]);
  }
  auto* start = llvm::BasicBlock::Create(unit.context, "start", function);
  b.CreateBr(start);
  b.SetInsertPoint(start);
  return {function->getArg(2), function->getArg(3)};
}

void end_function(Unit& unit) { unit.b.CreateRetVoid(); }

// ---- types --------------------------------------------------------------------------------------------------------

int native_lanes(const Target& target) { return target.vector_bytes / 4; }

Type* compute_type_of(Unit& unit, DType dtype) {
  switch (dtype) {
    case DType::bool_: return unit.b.getInt1Ty();
    case DType::f64: return unit.b.getDoubleTy();
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f8e4m3:
    case DType::f8e5m2: return unit.b.getFloatTy();
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::i32:
    case DType::i64: return storage_type_of(unit, dtype);
  }
  return nullptr;
}

Type* storage_type_of(Unit& unit, DType dtype) {
  if (dtype == DType::f32) return unit.b.getFloatTy();
  if (dtype == DType::f64) return unit.b.getDoubleTy();
  return unit.b.getIntNTy(static_cast<unsigned>(8 * size_of(dtype)));
}

Type* vector_of(Type* type, int lanes) {
  return lanes == 1 ? type : llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes));
}

int lanes_of(const Value* value) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type ? static_cast<int>(type->getNumElements()) : 1;
}

Value* splat(Unit& unit, Value* value, int lanes) {
  if (lanes == 1 || value->getType()->isVectorTy()) return value;
  return unit.b.CreateVectorSplat(static_cast<unsigned>(lanes), value);
}

Value* piece(Unit& unit, Value* value, int from, int count) {
  if (lanes_of(value) == 1) return splat(unit, value, count);
  std::vector<int> lanes;
  for (int i = from; i < from + count; ++i) lanes.push_back(i < lanes_of(value) ? i : 0);
  return unit.b.CreateShuffleVector(value, lanes);
}

Value* concatenate(Unit& unit, std::vector<Value*> pieces) {
  while (pieces.size() > 1) {
    std::vector<Value*> pairs;
    for (std::size_t i = 0; i < pieces.size(); i += 2) {
      std::vector<int> lanes;
      for (int lane = 0; lane < 2 * lanes_of(pieces[i]); ++lane) lanes.push_back(lane);
      pairs.push_back(unit.b.CreateShuffleVector(pieces[i], pieces[i + 1], lanes));
    }
    pieces = std::move(pairs);
  }
  return pieces[0];
}

Value* lane_numbers(Unit& unit, Type* type, int lanes) {
  (void)unit;
  if (lanes == 1) return llvm::ConstantInt::get(type, 0);
  std::vector<llvm::Constant*> numbers;
  for (int i = 0; i < lanes; ++i) numbers.push_back(llvm::ConstantInt::get(type, static_cast<std::uint64_t>(i)));
  return llvm::ConstantVector::get(numbers);
}

// A constant whose value only the loader decides, as far as LLVM knows.
Value* hidden_lane_numbers(Unit& unit, Type* type, int lanes) {
  auto* numbers = llvm::cast<llvm::Constant>(lane_numbers(unit, type, lanes));
  if (lanes == 1 || unit.target.vector_bytes < 64) return numbers;
  const std::string name = "lanes_" + std::to_string(lanes) + "_i" + std::to_string(type->getIntegerBitWidth());
  llvm::GlobalVariable* global = unit.module.getNamedGlobal(name);
  if (!global) {
    global = new llvm::GlobalVariable(unit.module, numbers->getType(), true, llvm::GlobalValue::PrivateLinkage, numbers,
                                      name, nullptr, llvm::GlobalValue::NotThreadLocal, std::nullopt, true);
    global->setAlignment(llvm::Align(64));
  }
  llvm::LoadInst* load = unit.b.CreateAlignedLoad(numbers->getType(), global, llvm::Align(64), "lanes");
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(unit.context, {}));
  return load;
}

Value* first_lanes(Unit& unit, Value* count, int lanes) {
  auto& b = unit.b;
  Value* limit = b.CreateTrunc(minimum_of(unit, count, constant(unit, lanes)), b.getInt32Ty());
  return b.CreateICmpSLT(hidden_lane_numbers(unit, b.getInt32Ty(), lanes), splat(unit, limit, lanes), "mask");
}

Value* constant(Unit& unit, std::int64_t value) { return unit.b.getInt64(static_cast<std::uint64_t>(value)); }

Value* constant_like(const Value* like, std::int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}

Value* real_like(const Value* like, double value) { return llvm::ConstantFP::get(like->getType(), value); }

// ---- dimensions -----------------------------------------------------------------------------------------------------

namespace {

// Reads what Dim::str prints: sums of products of integers, symbols and floordiv(sum, integer).
class DimReader {
 public:
  DimReader(Unit& unit, const std::string& text) : unit_(unit), text_(text) {}

  Value* sum() {
    Value* value = product();
    while (accept(" + ")) value = unit_.b.CreateAdd(value, product());
    return value;
  }

 private:
  Value* product() {
    Value* value = factor();
    while (accept("*")) value = unit_.b.CreateMul(value, factor());
    return value;
  }

  Value* factor() {
    if (accept("floordiv(")) {
      Value* numerator = sum();
      TENON_CHECK(accept(", "), "dimension " + text_);
      auto* divisor = llvm::cast<llvm::ConstantInt>(factor());
      TENON_CHECK(accept(")"), "dimension " + text_);
      // Towards -inf: the arithmetic shift of a power of two, else truncation after shifting negative numerators.
      auto& b = unit_.b;
      Value* negative = b.CreateICmpSLT(numerator, constant(unit_, 0));
      Value* shifted = b.CreateSub(numerator, constant(unit_, divisor->getSExtValue() - 1));
      return b.CreateSDiv(b.CreateSelect(negative, shifted, numerator), divisor);
    }
    std::size_t end = at_ + (text_[at_] == '-');
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_')) ++end;
    const std::string word = text_.substr(at_, end - at_);
    at_ = end;
    if (std::isdigit(static_cast<unsigned char>(word.back())) &&
        (word[0] == '-' || std::isdigit(static_cast<unsigned char>(word[0]))))
      return constant(unit_, std::stoll(word));
    const auto found = unit_.dim_values.find(word);
    TENON_CHECK(found != unit_.dim_values.end(),
                "no parameter for dimension " + word + " of kernel " + unit_.kernel.name);
    return found->second;
  }

  bool accept(const std::string& token) {
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }

  Unit& unit_;
  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

Value* emit_dim(Unit& unit, const Dim& dim) {
  if (dim.is_constant()) return constant(unit, dim.constant());
  const std::string text = dim.str();
  if (const auto found = unit.dim_values.find(text); found != unit.dim_values.end()) return found->second;
  const llvm::IRBuilderBase::InsertPointGuard guard(unit.b);
  unit.b.SetInsertPoint(unit.function->getEntryBlock().getTerminator());
  return unit.dim_values[text] = DimReader(unit, text).sum();
}

// ---- control flow
// -----------------------------------------------------------------------------------------------------

llvm::AllocaInst* variable(Unit& unit, Type* type, const std::string& name) {
  const llvm::IRBuilderBase::InsertPointGuard guard(unit.b);
  unit.b.SetInsertPoint(&unit.function->getEntryBlock(), unit.function->getEntryBlock().begin());
  return unit.b.CreateAlloca(type, nullptr, name);
}

void emit_loop(Unit& unit, Value* begin, Value* end, Value* step, const std::string& name,
               const std::function<void(Value*)>& body) {
  auto& b = unit.b;
  auto* head = b.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(unit.context, name, unit.function);
  auto* after = llvm::BasicBlock::Create(unit.context, name + ".end", unit.function);
  b.CreateCondBr(b.CreateICmpSLT(begin, end), inside, after);
  b.SetInsertPoint(inside);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2, name);
  i->addIncoming(begin, head);
  body(i);
  Value* next = b.CreateNSWAdd(i, step);
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), inside, after);
  after->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(after);
}

void emit_if(Unit& unit, Value* condition, const std::function<void()>& body) {
  auto& b = unit.b;
  auto* inside = llvm::BasicBlock::Create(unit.context, "then", unit.function);
  auto* after = llvm::BasicBlock::Create(unit.context, "done", unit.function);
  b.CreateCondBr(condition, inside, after);
  b.SetInsertPoint(inside);
  body();
  b.CreateBr(after);
  after->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(after);
}

Value* minimum_of(Unit& unit, Value* a, Value* b) { return unit.b.CreateSelect(unit.b.CreateICmpSLT(a, b), a, b); }
Value* maximum_of(Unit& unit, Value* a, Value* b) { return unit.b.CreateSelect(unit.b.CreateICmpSGT(a, b), a, b); }

Value* ceil_div(Unit& unit, Value* a, std::int64_t divisor) {
  if (divisor == 1) return a;
  return unit.b.CreateUDiv(unit.b.CreateAdd(a, constant(unit, divisor - 1)), constant(unit, divisor));
}

}  // namespace tenon::codegen::simd
