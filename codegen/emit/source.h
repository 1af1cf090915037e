// Source: what an emitter makes of a Kernel — text (CUDA C++) or an LLVM module as text — with its entry and its
// launch rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "codegen/launch/launch.h"
#include "codegen/target/target.h"

namespace tenon::codegen {

/// How many blocks (CUDA) or tasks (CPU) a launch has, as dimension expressions that are evaluated once the sizes are
/// known. A grid of 0 blocks is not launched.
struct LaunchRule {
  Dim grid_x = 1;
  int block = 256;               ///< threads; CPU: unused
  int shared_bytes = 0;          ///< dynamic shared memory
  int cluster = 1;               ///< CUDA: neighbouring blocks that form a cluster, which the function's text says
  bool dependent = false;        ///< CUDA: waits by itself for the kernels ahead of it, so it may be launched early
  bool constant_inputs = false;  ///< CUDA: takes the run's inputs for constant: they must be there when it begins

  /// CUDA, a pack: the blocks of each member, whose sum grid_x is. The numbers of blocks up to each but the last are
  /// parameters behind the dims, so that a member with nothing to do has no blocks.
  std::vector<Dim> members = {};
};

struct Source {
  std::string text;   ///< CUDA C++, or LLVM assembly
  std::string entry;  ///< the function's name
  LaunchRule launch;
  std::vector<std::string> dims;  ///< symbols passed as int64 after the pointers, in order

  // A second function of the same signature that runs after all of the first, on `finish_grid` tasks or blocks (of
  // `finish_block` threads), and combines what they left in `scratch_bytes` bytes of scratch, passed as one more
  // pointer behind the operands'. Empty: none.
  std::string finish_entry = {};
  Dim finish_grid = 0;
  int finish_block = 1;
  Dim scratch_bytes = 0;

  // CUDA: what a pack takes of a kernel, the statements of its entry and the blocks for which an SM must have registers
  // (emit.h).
  std::string body = {};
  int resident = 0;
};

/// CUDA C++ for `kernel`; includes no header. Parameters: one pointer per operand, that of the scratch if there is
/// some, then the dims as long long.
Source emit_cuda(const Kernel& kernel, const Target& target);

/// The same for a launch: of several members one function that runs each on blocks of its own, of threads enough for
/// the largest. Parameters: the pointers of all members, then the dims and where each member's blocks end, as long
/// long.
Source emit_cuda(const Launch& launch, const Target& target);

#ifdef TENON_WITH_CPU
/// LLVM assembly for `kernel`: void entry(ptr pointers, ptr dims, i64 begin, i64 end) works on tasks [begin, end) of
/// launch.grid_x; `pointers` is an array of operand pointers, `dims` of int64.
Source emit_llvm(const Kernel& kernel, const Target& target);
#endif

}  // namespace tenon::codegen
