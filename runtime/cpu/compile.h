// LLVM assembly to machine code for a CPU target. The passes are few: generated code is vectorised already, so that
// only registers have to be found and repeated expressions dropped. Thread-safe.
#pragma once

#include <string>

#include "codegen/target/target.h"

namespace tenon::runtime::cpu {

struct CompileStatistics {
  double parse_ms = 0, passes_ms = 0, codegen_ms = 0;
};

struct Object {
  std::string bytes;  ///< a relocatable object file: what the kernel cache keeps
  CompileStatistics statistics;
};

/// Error(compile) with LLVM's diagnostic when the text is not valid.
Object compile(const std::string& assembly, const codegen::Target& target);
/// The machine code as text, for people.
std::string assembly_text(const std::string& llvm_assembly, const codegen::Target& target);

}  // namespace tenon::runtime::cpu
