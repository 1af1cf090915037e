// See interleave.h.
#include "codegen/emit/llvm/interleave.h"

#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <unordered_set>

namespace tenon::codegen::simd {
namespace {

using Chain = std::vector<llvm::Instruction*>;

// The instructions of `block` behind `last`, or all when it is null.
Chain behind(llvm::BasicBlock& block, const llvm::Instruction* last) {
  Chain chain;
  bool seen = last == nullptr;
  for (llvm::Instruction& instr : block) {
    if (seen) chain.push_back(&instr);
    seen = seen || &instr == last;
  }
  return chain;
}

bool may_move(const llvm::Instruction* instr) {
  const bool calls = llvm::isa<llvm::CallBase>(instr) && !llvm::isa<llvm::IntrinsicInst>(instr);
  return !calls && !instr->mayHaveSideEffects() && !instr->isTerminator();
}

// One of each chain in turn, those that wait for another chain's left out until it has come.
void take_turns(llvm::BasicBlock& block, const std::vector<Chain>& chains) {
  std::unordered_set<const Value*> to_come;
  for (const Chain& chain : chains) to_come.insert(chain.begin(), chain.end());
  std::vector<std::size_t> next(chains.size(), 0);
  while (!to_come.empty())
    for (std::size_t c = 0; c < chains.size(); ++c) {
      if (next[c] == chains[c].size()) continue;
      llvm::Instruction* instr = chains[c][next[c]];
      if (std::any_of(instr->op_begin(), instr->op_end(), [&](const Value* v) { return to_come.count(v) > 0; }))
        continue;
      instr->moveBefore(block, block.end());
      to_come.erase(instr);
      ++next[c];
    }
}

}  // namespace

void evaluate_interleaved(Unit& unit, std::vector<Scope>& scopes, const std::vector<InstrId>& values) {
  llvm::BasicBlock& block = *unit.b.GetInsertBlock();
  std::vector<Chain> chains;
  bool movable = block.getTerminator() == nullptr;
  for (Scope& scope : scopes) {
    const llvm::Instruction* last = block.empty() ? nullptr : &block.back();
    for (const InstrId value : values) evaluate(unit, scope, value);
    chains.push_back(behind(block, last));
    movable = movable && std::all_of(chains.back().begin(), chains.back().end(), may_move);
  }
  if (movable && chains.size() > 1) take_turns(block, chains);
}

}  // namespace tenon::codegen::simd
