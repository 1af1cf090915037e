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

/// CUDA, sm_90 on: boxes of an operand that one thread copies to or from shared memory (CUDA C++ Programming Guide,
/// "Asynchronous Data Copies using the Tensor Memory Accelerator"). A parameter of the function, `const
/// __grid_constant__`, of 128 bytes. It is encoded once for exact sizes; each run fills in the operand's address.
struct TensorMap {
  int pointer = 0;  ///< which of the launch's pointers it is over
  Dim offset = 0;   ///< elements from there to the first; a multiple of 16 bytes
  DType dtype = DType::f32;
  std::vector<Dim> extents;  ///< elements, the contiguous dimension first; up to five
  std::vector<Dim> strides;  ///< elements between neighbours, of each dimension but the first; multiples of 16 bytes
  std::vector<int> box;      ///< elements of a copy along each dimension, up to 256
  int swizzle_bytes = 0;     ///< 32, 64 or 128: 16-byte pieces of so wide lines change places, so that columns have
                             ///< banks of their own; 0: none
};

/// How many blocks (CUDA) or tasks (CPU) a function is launched on, as dimension expressions that are evaluated once
/// the sizes are known, and what else it takes. A grid of 0 blocks is not launched.
struct LaunchRule {
  Dim grid_x = 1;
  bool resident = false;         ///< CUDA: no more blocks than the device runs at once; they share the work of grid_x
  int block = 256;               ///< threads; CPU: unused
  int shared_bytes = 0;          ///< dynamic shared memory
  int cluster = 1;               ///< CUDA: neighbouring blocks that form a cluster, which the function's text says
  int together = 1;              ///< CUDA: blocks that wait for each other: the grid is whole numbers of them, no more
                                 ///< than the device runs at once, and none starts before all can
  bool dependent = false;        ///< CUDA: waits by itself for the kernels ahead of it, so it may be launched early
  bool constant_inputs = false;  ///< CUDA: takes the run's inputs for constant: they must be there when it begins
  std::vector<TensorMap> tensor_maps = {};  ///< CUDA: parameters behind the dims

  /// CUDA, a pack: the blocks of each member, whose sum grid_x is. The numbers of blocks up to each but the last are
  /// parameters behind the dims, so that a member with nothing to do has no blocks.
  std::vector<Dim> members = {};
};

struct Source {
  std::string text;   ///< CUDA C++, or LLVM assembly
  std::string entry;  ///< the function's name
  LaunchRule launch;
  std::vector<std::string> dims;  ///< symbols passed as int64 after the pointers, in order

  // A second function that runs after all of the first and combines what that left in the scratch memory. It has the
  // same pointers and dims. Empty: none.
  std::string finish_entry = {};
  LaunchRule finish = {};

  // Memory beside the operands, passed as one more pointer each behind theirs; 0: none. What is zeroed is 0 when the
  // function begins, and the function leaves it so: counters that blocks meet at.
  Dim scratch_bytes = 0;
  Dim zeroed_bytes = 0;

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
