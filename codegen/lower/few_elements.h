// Reductions of a few neighbouring elements as maps.
#pragma once

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A kernel that reduces two to four neighbouring elements (the channels of a picture, pairs) and stores none of them
/// becomes a map over its rows, whose points load what lies side by side as vectors of several rows: a thread of a
/// reduction has one row, and moves as few bytes (f16 [.., 432, 2] on an H200: 255 us, a copy 123). Other kernels stay
/// as they are: false.
bool combine_few_elements(Kernel& kernel);

}  // namespace tenon::codegen
