// The public Array and the interpreter's HostArray, both ways.
#pragma once

#include "ir/interpret/interpret.h"
#include "tenon/array.h"

namespace tenon::src {

/// Error(argument) unless the array has as many bytes as its shape and dtype say.
void check_bytes(const Array& array);
ir::HostArray to_host(const Array& array);
Array from_host(ir::HostArray array);

}  // namespace tenon::src
