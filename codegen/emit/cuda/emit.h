// The CUDA emitters, one for each kernel class, and what they share to make a Source of a body.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/emit/source.h"

namespace tenon::codegen::cuda {

Source emit_map(const Kernel& kernel, const Target& target);
/// Through tiles in shared memory (MapSchedule::tile_axis).
Source emit_transposing_map(const Kernel& kernel, const Target& target);
/// From rows in shared memory (MapSchedule::staged).
Source emit_gathering_map(const Kernel& kernel, const Target& target);
Source emit_reduce(const Kernel& kernel, const Target& target);
Source emit_contract(const Kernel& kernel, const Target& target);
Source emit_attend(const Kernel& kernel, const Target& target);

/// The second function of a split reduction (source.h).
struct Finisher {
  Writer body{1};
  Dim grid = 0;
  int block = 256;
  Dim scratch_bytes = 0;
};

/// Memory that blocks which run at once meet in (Source::scratch_bytes, zeroed_bytes).
struct Meeting {
  Dim scratch_bytes = 0, zeroed_bytes = 0;
};

constexpr int kAllRegisters = 1;  ///< as `resident`: a block may use all registers that it can have

/// `body` (at depth 1) as a kernel of `threads` threads a block: prelude, signature, dimensions, body.
/// `resident`: blocks for which an SM must have registers; 0: the compiler's choice.
Source finish(const Kernel& kernel, const Writer& body, LaunchRule launch, const Target& target, int resident = 0,
              const Meeting& meeting = {});
/// The same with a second function.
Source finish(const Kernel& kernel, const Writer& body, LaunchRule launch, const Target& target,
              const Finisher& finisher, int resident = 0);

/// The line at which a kernel waits for those ahead of it in the stream, if it may begin before they end. What they
/// have written is read behind it; what needs no memory of theirs, barriers and a model's weights, may stand ahead of
/// it.
void join_stream(Writer& out, const Target& target);
/// The same as a function, `join`, for a main loop that begins its barriers first.
void join_later(Writer& out, const Target& target);

/// "__launch_bounds__(256)", with the cluster if there is one.
std::string bounds_of(const LaunchRule& launch, int resident);
/// The pieces of the prelude that `text` needs, then the text.
std::string with_prelude(const std::string& text);

/// ceil(count / size).
Dim blocks_of(const Dim& count, std::int64_t size);

/// A digit of a mixed-radix number: "i1" below an extent.
struct Digit {
  std::string name;
  Dim extent;
};
/// Definitions of `digits` from `linear` (of unsigned_index_type), the last varying fastest; the first takes what is
/// left.
void decode_digits(Writer& out, const Kernel& kernel, const std::vector<Digit>& digits, const std::string& linear);

/// "(int)(blockIdx.x * 256 + threadIdx.x)"-like definitions of the axes [first, last) from the linear index `linear`
/// (of unsigned_index_type), innermost last.
void decode_axes(Writer& out, const Kernel& kernel, std::size_t first, std::size_t last, const std::string& linear);

/// The product of the extents of axes [first, last).
Dim extent_of(const Kernel& kernel, std::size_t first, std::size_t last);

}  // namespace tenon::codegen::cuda
