// The order of a kernel's rows.
#pragma once

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Has the rows of a Reduce kernel that read the same large operand follow each other: a batch that shares rows of
/// positions, or of a mask, becomes the innermost kept axis where more passes between two uses of such a row than the
/// L2 keeps.
void order_rows(Kernel& kernel, const Target& target);

}  // namespace tenon::codegen
