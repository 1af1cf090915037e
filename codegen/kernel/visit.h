// Walks over everything in a kernel that holds an index.
#pragma once

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Calls visit(atom) for every atom of `index`, nested ones included.
template <typename Visit>
void visit_atoms(const Index& index, const Visit& visit) {
  for (const IndexTerm& term : index.terms()) {
    visit(*term.atom);
    visit_atoms(term.atom->operand, visit);
  }
}

/// Calls visit(guard) for every guard of a kernel (const or not).
template <typename KernelRef, typename Visit>
void visit_guards(KernelRef& kernel, const Visit& visit) {
  for (auto& instr : kernel.body) {
    for (auto& guard : instr.guards) visit(guard);
    for (auto& guard : instr.access.guards) visit(guard);
  }
  for (auto& store : kernel.stores)
    for (auto& guard : store.access.guards) visit(guard);
}

/// Calls visit(index) for every index of a kernel (const or not).
template <typename KernelRef, typename Visit>
void visit_indices(KernelRef& kernel, const Visit& visit) {
  for (auto& instr : kernel.body) {
    visit(instr.index);
    visit(instr.access.offset);
  }
  for (auto& store : kernel.stores) visit(store.access.offset);
  visit_guards(kernel, [&](auto& guard) { visit(guard.index); });
}

}  // namespace tenon::codegen
